# redflag: build, test, install. `make help` lists the targets.
#
# 1. Files are found by wildcard: a new source, unit test (tests/unit/test_*.c), shell test (tests/cli/*.sh) or fuzz target
#    (tests/fuzz/fuzz_*.c) needs no line here.
# 2. Everything that is built lies under $(B); two builds with different flags use two directories: make CC=clang B=build/clang
# 3. $(B)/flags remembers the compiler and its flags, so that changing either rebuilds instead of mixing objects.

B := build
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
VERSION := $(shell cat VERSION)

ifeq ($(origin CC),default)
CC := gcc
endif
# Functions and lines for debuggers and profilers; variables, too (CFLAGS="-O2 -g"), would make each build longer.
CFLAGS ?= -O2 -g1
SANITIZE ?=
V ?=
# All cores for the targets that call make themselves, unless the caller said how many.
ALL_CORES = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j"$$(nproc)")
Q := $(if $(V),,@)
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith

# pkg-config runs once, and only when something is compiled: on a fresh machine it is not there before scripts/setup ran.
PKGS := libzstd libxxhash
# What the library needs only where it finds symbols for reports, which its users need not.
SYMBOL_PKGS := libdw
PKG_CFLAGS = $(eval PKG_CFLAGS := $$(shell pkg-config --cflags $(PKGS)))$(PKG_CFLAGS)
PKG_LIBS = $(eval PKG_LIBS := $$(shell pkg-config --libs $(PKGS) $(SYMBOL_PKGS)))$(PKG_LIBS)
RF_CFLAGS = -std=c11 -D_GNU_SOURCE -DRF_VERSION='"$(VERSION)"' -I. $(WARN) $(CFLAGS) \
	$(if $(SANITIZE),-fsanitize=$(SANITIZE) -fno-sanitize-recover=all -fno-omit-frame-pointer) $(PKG_CFLAGS)
RF_LIBS = $(PKG_LIBS) -lpthread -lm
TEST_LIBS := -lcmocka -ljansson

# The engine is every room that lives neither in the user's process nor on the command line.
ENGINE := core detect sync shadow sample trace report sites replay hardware
LIB := $(B)/libredflag.a
LIB_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard $(ENGINE:%=%/*.c) $(ENGINE:%=%/*/*.c)))
# What a fleet shares is the command's: the library's users need no database.
FLEET := $(B)/libfleet.a
FLEET_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard fleet/*.c))
FLEET_LIBS := -lsqlite3 -ljansson -ldl
CLI_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard cli/*.c))
TEST_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard tests/*.c))
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzzers/%,$(wildcard tests/fuzz/fuzz_*.c))
C_FILES = $(wildcard $(foreach room,$(ENGINE) $(ENGINE:%=%/*) fleet guest guest/* go cli inline plugin tests tests/* bench examples,$(room)/*.c $(room)/*.h $(room)/*.inc)) $(wildcard inline/*.cc plugin/*.cc)

# What lives in the user's process: one shared library, which is also found under the name of gcc's runtime.
RT := $(B)/lib/libredflag-rt.so.0
# What programs may include.
HEADER := $(B)/include/redflag.h
# ... libtsan.so.2 when the program runs, libtsan.so when gcc links it; a directory of their own, so that it is all the loader sees.
RT_NAMES := libtsan.so.2 libtsan.so libredflag-rt.so.0
# The two that take longest come first, so that no core waits for the last of them.
RT_LONG := guest/slow_access.c guest/libc.c
RT_OBJS := $(patsubst %,$(B)/obj/%.o,$(basename $(RT_LONG) $(filter-out $(RT_LONG) guest/chase/% guest/inline/%,$(wildcard guest/*.c guest/*/*.c guest/*.S))))
# The compiler's own calls of these must not reach the functions of that name that the guest gives to the program.
RT_RENAME := $(foreach f,memcpy memmove memset memcmp strlen,--redefine-sym $f=rf_internal_$f)
RT_CFLAGS = -std=gnu11 -D_GNU_SOURCE -DRF_VERSION='"$(VERSION)"' -DRF_PIECE=4064u -I. $(WARN) -O2 -g1 -fPIC -fvisibility=hidden \
	-fno-stack-protector -fno-builtin -fno-exceptions -fomit-frame-pointer -ftls-model=initial-exec -mno-red-zone $(GUEST_CFLAGS)

# The detector of Go programs: one C file, which cgo compiles when `redflag go` builds one. Compiled here, too, to know that it can be.
GO_DIR := $(B)/lib/go
# Of the other detectors of detect/ a program may have one inside: name and source, as go/detectors.def lists them.
GO_OTHERS := $(shell sed -n 's/^RF_GO_DETECTOR(\(.*\), \(.*\))/\1:\2/p' go/detectors.def)
GO_FILES := $(GO_DIR)/redflag.c $(GO_DIR)/other_none.c $(foreach o,$(GO_OTHERS),$(GO_DIR)/other_$(firstword $(subst :, ,$o)).c)
GO_CHECKED := $(B)/obj/go/race.o
GO_CFLAGS = -std=gnu11 -I. $(WARN) -O2 -g1

# The library of `redflag chase`, under the same names in a directory of its own. It shares some of the runtime's sources.
CHASE := $(B)/lib/libredflag-chase.so.0
CHASE_OWN := $(patsubst %,$(B)/obj/%.o,$(basename $(wildcard guest/chase/*.c guest/chase/*.S)))
CHASE_OBJS := $(CHASE_OWN) $(patsubst %,$(B)/obj/guest/%.o,maps memory modules options pair patch report_show report_spawn report_wire system)
# LLVM is needed by one command only, so it is a program of its own, which is built where LLVM is.
LLVM_CONFIG := $(firstword $(shell command -v llvm-config-14 llvm-config 2>/dev/null))
STATIC := $(if $(LLVM_CONFIG),$(B)/lib/redflag/redflag-static)
STATIC_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard static/*.c))
# `redflag cc --inline` needs hooks as bitcode, too, which only clang makes.
CLANG := $(firstword $(shell command -v clang-14 clang 2>/dev/null))
# Passes are C++, and know LLVM 14.
INLINE := $(if $(and $(CLANG),$(shell command -v g++),$(if $(LLVM_CONFIG),$(filter 14.%,$(shell $(LLVM_CONFIG) --version)))),$(B)/lib/redflag/redflag-inline $(B)/lib/redflag/hooks.bc)
INLINE_OBJS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard inline/*.c))
# LLVM is C++ where its passes are; they have no exceptions, as it has none.
FEWER_OBJS := $(patsubst %.cc,$(B)/obj/%.o,$(wildcard inline/*.cc))
FEWER_CFLAGS = -std=c++17 -I. -isystem $(shell $(LLVM_CONFIG) --includedir) -Wall -Wextra -Werror -O2 -g1 -fno-rtti -fno-exceptions
# What `redflag cc` gives to gcc, which takes plugins of C++ that were made for just its version: built where gcc's headers for them are.
PLUGIN_HEADERS := $(patsubst %/gcc-plugin.h,%,$(wildcard $(shell gcc -print-file-name=plugin 2>/dev/null)/include/gcc-plugin.h))
PLUGIN := $(if $(PLUGIN_HEADERS),$(B)/lib/redflag/redflag-gcc-$(shell gcc -dumpfullversion).so)
PLUGIN_COPIES = $(subst /redflag-gcc-,/redflag-copies-gcc-,$(PLUGIN))
PLUGIN_OBJS := $(patsubst %.cc,$(B)/obj/%.o,$(wildcard plugin/*.cc))
PLUGIN_CFLAGS = -std=c++17 -I. -isystem $(PLUGIN_HEADERS) -Wall -Wextra -Werror -O2 -g1 -fPIC -fno-rtti -fno-exceptions

all: $(RT) $(B)/redflag $(STATIC) $(INLINE) $(PLUGIN) $(LIB) $(CHASE) $(HEADER) $(GO_FILES)

rt: $(RT) $(HEADER)

# Where `redflag cc` finds it: beside the command, as it is when installed.
$(HEADER): include/redflag.h
	@mkdir -p $(@D)
	@cp $< $@

$(LIB_OBJS) $(CLI_OBJS) $(FLEET_OBJS) $(STATIC_OBJS) $(INLINE_OBJS) $(TEST_OBJS): $(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  cc    $@")
	$(Q)$(CC) $(RF_CFLAGS) -MMD -MP -c -o $@ $<

# Where it makes programs faster. Elsewhere it only takes longer to build: so do the hundreds of small functions of guest/libc.c.
$(patsubst %.c,$(B)/obj/%.o,$(wildcard trace/*.c replay/*.c) hardware/usual.c $(addprefix replay/detectors/,fasttrack.c acculock.c multilock.c)): \
	CFLAGS := $(CFLAGS:-O2=-O3)
$(B)/obj/guest/libc.o: RT_CFLAGS += -Os

$(patsubst %.c,$(B)/obj/%.o,$(wildcard guest/*.c guest/*/*.c)): $(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  cc    $@")
	$(Q)$(CC) $(RT_CFLAGS) -MMD -MP -c -o $@ $<
	$(Q)$(if $(filter guest/copies.c,$<),,objcopy $(RT_RENAME) $@)

$(patsubst %.S,$(B)/obj/%.o,$(wildcard guest/*.S guest/chase/*.S)): $(B)/obj/%.o: %.S $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  as    $@")
	$(Q)$(CC) -I. $(GUEST_CFLAGS) -MMD -MP -c -o $@ $<

$(RT): $(RT_OBJS)
	@mkdir -p $(@D)/tsan
	$(if $(V),,@echo "  link  $@")
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,now -Wl,-z,noexecstack -Wl,--version-script=guest/exports.map -o $@ $^ -ldl -lpthread
	@ln -sf $(@F) $(@D)/libredflag-rt.so
	@set -e; for name in $(RT_NAMES); do ln -sf ../$(@F) $(@D)/tsan/$$name; done

$(GO_CHECKED): go/race.c $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  cc    $@")
	$(Q)$(CC) $(GO_CFLAGS) -MMD -MP -c -o $@ $<

$(GO_DIR)/redflag.c: $(GO_CHECKED) go/amalgamate
	@mkdir -p $(@D)
	$(if $(V),,@echo "  go    $@")
	$(Q)go/amalgamate go/race.c >$@

$(filter $(GO_DIR)/other_%,$(GO_FILES)): $(GO_DIR)/other_%.c: go/detectors.def go/amalgamate $(wildcard go/other* go/detectors/* guest/detectors/* guest/online.inc guest/*.h detect/* core/* shadow/*)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  go    $@")
	$(Q)go/amalgamate $(or $(patsubst $*:%,%,$(filter $*:%,$(GO_OTHERS))),go/other_none.c) >$@
	$(Q)$(if $(filter $*:%,$(GO_OTHERS)),printf '%s\n' 'extern const struct rf_online *const rf_go_other;' \
		'const struct rf_online *const rf_go_other = &rf_online_$*;' >>$@)

$(B)/obj/guest/chase-names.S: guest/chase/names $(RT) $(CHASE_OBJS)
	$(Q)guest/chase/names $(RT) "$$($(CC) -print-file-name=libc.so.6)" $(CHASE_OBJS) >$@

$(CHASE): $(CHASE_OBJS) $(B)/obj/guest/chase-names.S
	@mkdir -p $(@D)/chase
	$(if $(V),,@echo "  link  $@")
	$(Q)$(CC) -shared -Wl,-soname,$(@F) -Wl,-z,now -Wl,-z,noexecstack -Wl,--version-script=guest/exports.map -Wl,-z,defs -o $@ $^ -ldl -lpthread
	@set -e; for name in $(RT_NAMES); do ln -sf ../$(@F) $(@D)/chase/$$name; done

# From nothing each time: an archive that is only added to would keep the object of a source that was removed.
$(LIB): $(LIB_OBJS)
	@rm -f $@
	$(if $(V),,@echo "  ar    $@")
	$(Q)ar rcs $@ $^

$(STATIC_OBJS) $(INLINE_OBJS): RF_CFLAGS += -isystem $(shell $(LLVM_CONFIG) --includedir)

$(STATIC): $(STATIC_OBJS)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  link  $@")
	$(Q)$(CC) $(RF_CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(LLVM_CONFIG) --ldflags --libs core bitreader linker target)

$(FEWER_OBJS): $(B)/obj/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  c++   $@")
	$(Q)g++ $(FEWER_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/lib/redflag/redflag-inline: $(INLINE_OBJS) $(FEWER_OBJS)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  link  $@")
	$(Q)g++ $(CFLAGS) $(LDFLAGS) -o $@ $^ $(shell $(LLVM_CONFIG) --ldflags --libs core bitreader bitwriter linker passes)

$(B)/lib/redflag/hooks.bc: guest/inline/hooks.c guest/hot.h $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  bc    $@")
	$(Q)$(CLANG) -std=gnu11 -I. $(WARN) -O2 -g0 -fPIC -ffreestanding -emit-llvm -c -o $@ $<

$(PLUGIN_OBJS): $(B)/obj/%.o: %.cc $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  c++   $@")
	$(Q)g++ $(PLUGIN_CFLAGS) -MMD -MP -c -o $@ $<

$(PLUGIN): $(PLUGIN_OBJS)
	@mkdir -p $(@D)
	$(if $(V),,@echo "  link  $@")
	$(Q)g++ -shared -o $@ $^
	@ln -sf $(@F) $(PLUGIN_COPIES)

$(FLEET): $(FLEET_OBJS)
	$(if $(V),,@echo "  ar    $@")
	$(Q)rm -f $@
	$(Q)ar rcs $@ $^

$(B)/obj/fleet/postgres.o: RF_CFLAGS += $(shell pkg-config --cflags libpq 2>/dev/null)

$(B)/redflag: $(CLI_OBJS) $(FLEET) $(LIB)
	$(if $(V),,@echo "  link  $@")
	$(Q)$(CC) $(RF_CFLAGS) $(LDFLAGS) -o $@ $^ $(RF_LIBS) $(FLEET_LIBS)

$(UNIT): $(B)/tests/%: tests/unit/%.c $(TEST_OBJS) $(FLEET) $(LIB) $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  test  $@")
	$(Q)$(CC) $(RF_CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(TEST_OBJS) $(FLEET) $(LIB) $(RF_LIBS) $(FLEET_LIBS) $(TEST_LIBS)

$(FUZZERS): $(B)/fuzzers/%: tests/fuzz/%.c $(LIB) $(B)/flags
	@mkdir -p $(@D)
	$(if $(V),,@echo "  fuzz  $@")
	$(Q)$(CC) $(RF_CFLAGS) -fsanitize=fuzzer $(LDFLAGS) -MMD -MP -MF $@.d -MT $@ -o $@ $< $(LIB) $(RF_LIBS)

$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$FLAGS" | cmp -s - $@ || printf '%s\n' "$$FLAGS" >$@
$(B)/flags: export FLAGS = $(CC) $(RF_CFLAGS) $(RT_CFLAGS) $(GO_CFLAGS) $(LDFLAGS) $(PLUGIN_CFLAGS)

##   all            the command $(B)/redflag, the runtime and the library $(LIB); it runs from the tree
##   rt             the runtime alone, $(B)/lib/libredflag-rt.so.0
##   demo           a race found on your terminal, in seconds
##   check          every test: both compilers, sanitizers, command line, fuzzing, man pages, scripts
##   unit           the unit tests alone
##   programs       the programs of tests/programs alone: PROGRAMS="mutex-* heap-*" for some, RUNS=1 for a quick look
##   programs-detectors  the same with every detector that runs online: DETECTORS="djit eraser" for some; takes long
##   policies       the programs, and random ones, under every policy of --sync, with and without --escape; takes long
##   tsan-suite     ThreadSanitizer's own tests, downloaded: TESTS="mutexset* java_*" for some, RUNTIME=gcc or clang to compare
##   lardvm         the virtual machine of examples/lardvm, $(B)/lardvm
##   fuzz           each fuzz target for FUZZ_SECONDS (60)
##   soak           random programs with known races for SOAK_SECONDS (600)
##   bench          the runtime beside gcc's and clang's on real programs: fetches their Debian sources into $(B)/bench, takes long
##   bench-production  what chasing one race and Caper cost and find: writes doc/benchmarks-production.md; 8 minutes
##   bench-sync     what the policies of --sync cost, with and without --escape
##   bench-offline  how fast recorded traces are analysed
##   lint           clang-tidy over all sources but the tests
##   format         clang-format over all sources
##   setup          install the Debian packages that are missing (demo, check, fuzz, lint and format do it themselves)
##   install        into DESTDIR and PREFIX (/usr/local); uninstall takes the same away
##   clean          remove $(B)
##   Settings: B=DIRECTORY CC=gcc|clang CFLAGS=... SANITIZE=address,undefined V=1 (show the commands)
help:
	@sed -n 's/^## //p' Makefile | sed 's|$$(LIB)|$(LIB)|; s|$$(B)|$(B)|'

setup:
	@scripts/setup build check

demo:
	@scripts/setup build
	@$(MAKE) --no-print-directory $(ALL_CORES) rt $(B)/redflag
	@REDFLAG=$(B)/redflag scripts/demo

tests: $(UNIT)

unit: $(UNIT)
	@set -e; for t in $(UNIT); do $$t; done

programs: all
	@B=$(B) tests/programs/run $(PROGRAMS)

# What each promises: tests/programs/run.
DETECTORS ?= generic djit goldilocks acculock multilock pacer literace lockset eraser racetrack multirace hybrid none
programs-detectors: all
	@B=$(B) DETECTORS="$(DETECTORS)" COMPILERS="$(or $(COMPILERS),gcc)" OPTIMISE="$(or $(OPTIMISE),-O2)" RUNS=$(or $(RUNS),1) \
		WORK=$(abspath $(B))/programs/detectors tests/programs/run $(PROGRAMS)

# sync=none loses races when threads meet at a word, as those of the soak do.
policies: all
	@set -e; for options in sync=none sync=spin sync=fib sync=cas:escape=1 sync=fib:escape=1 sync=fib:stats=1; do \
		echo "policies: $$options"; \
		B=$(B) OPTIONS=$$options RUNS=1 COMPILERS=gcc OPTIMISE=-O2 tests/programs/run $(PROGRAMS); \
		[ $$options = sync=none ] || REDFLAG=$(B)/redflag OPTIONS=$$options tests/soak/run 301 310 20; \
	done

# The example of doc/embedding.md: a virtual machine that uses include/redflag.h.
lardvm: all
	$(Q)$(B)/redflag cc -O1 -g -Wall -Wextra -Werror $(wildcard examples/lardvm/*.c) -o $(B)/lardvm

SOAK_SECONDS ?= 600
soak: all
	@REDFLAG=$(B)/redflag SECONDS_LIMIT=$(SOAK_SECONDS) tests/soak/run 1 1000000 100

tsan-suite:
	@scripts/setup build check suite
	@$(MAKE) --no-print-directory $(ALL_CORES) all
	@B=$(B) scripts/tsan-suite --runtime=$(or $(RUNTIME),redflag) $(TESTS)

check:
	@scripts/setup build check
	@B=$(B) scripts/check

fuzzers: $(FUZZERS)

fuzz:
	@scripts/setup build check
	@$(MAKE) --no-print-directory $(ALL_CORES) fuzzers B=$(B)/fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined
	@set -e; for f in $(FUZZERS:$(B)/%=$(B)/fuzz/%); do scripts/fuzz $(FUZZ_SECONDS) $$f; done

bench: all
	@B=$(B) bench/run.sh

bench-production: all
	@B=$(B) bench/production.py

bench-sync: all
	@B=$(B) bench/sync.sh

bench-offline: all
	@B=$(B) REDFLAG=$(B)/redflag bench/offline.sh

lint:
	@scripts/setup build check lint
	@printf '%s\n' $(filter-out tests/%,$(filter %.c,$(C_FILES))) | xargs -P "$$(nproc)" -I FILE clang-tidy --quiet FILE -- $(RF_CFLAGS)
	@echo "lint: $(words $(filter-out tests/%,$(filter %.c,$(C_FILES)))) sources are clean"

format:
	@scripts/setup lint
	clang-format -i $(C_FILES)

BIN_DIR = $(DESTDIR)$(PREFIX)/bin
LIB_DIR = $(DESTDIR)$(PREFIX)/lib
INCLUDE_DIR = $(DESTDIR)$(PREFIX)/include/redflag
MAN_DIR = $(DESTDIR)$(PREFIX)/share/man/man1
DOC_DIR = $(DESTDIR)$(PREFIX)/share/doc/redflag
MAN_PAGES = $(wildcard doc/man/*.1)

install: all
	install -d $(BIN_DIR) $(LIB_DIR)/pkgconfig $(MAN_DIR) $(DOC_DIR)/examples
	install -m 755 $(B)/redflag $(BIN_DIR)
	install -m 644 $(LIB) $(LIB_DIR)
	install -m 755 $(RT) $(CHASE) $(LIB_DIR)
	install -D -m 644 include/redflag.h $(DESTDIR)$(PREFIX)/include/redflag.h
	ln -sf $(notdir $(RT)) $(LIB_DIR)/libredflag-rt.so
	install -d $(LIB_DIR)/redflag/tsan $(LIB_DIR)/redflag/go
	install -m 644 $(GO_FILES) $(LIB_DIR)/redflag/go
	$(if $(STATIC),install -m 755 $(STATIC) $(LIB_DIR)/redflag)
	$(if $(INLINE),install -m 755 $(firstword $(INLINE)) $(LIB_DIR)/redflag && install -m 644 $(lastword $(INLINE)) $(LIB_DIR)/redflag)
	$(if $(PLUGIN),install -m 644 $(PLUGIN) $(LIB_DIR)/redflag && ln -sf $(notdir $(PLUGIN)) $(LIB_DIR)/redflag/$(notdir $(PLUGIN_COPIES)))
	set -e; for name in $(RT_NAMES); do ln -sf ../../$(notdir $(RT)) $(LIB_DIR)/redflag/tsan/$$name; done
	install -d $(LIB_DIR)/redflag/chase
	set -e; for name in $(RT_NAMES); do ln -sf ../../$(notdir $(CHASE)) $(LIB_DIR)/redflag/chase/$$name; done
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@PKGS@|$(PKGS)|' redflag.pc.in >$(LIB_DIR)/pkgconfig/redflag.pc
	@echo 'install the headers into $(INCLUDE_DIR)'; set -e; for f in $(wildcard $(foreach room,$(ENGINE),$(room)/*.h $(room)/*.def $(room)/*.inc)); do \
		install -D -m 644 $$f $(INCLUDE_DIR)/$$f; done
	install -m 644 $(MAN_PAGES) $(MAN_DIR)
	install -m 644 $(wildcard README.md NEWS LICENSE doc/*.md) $(DOC_DIR)
	install -m 644 $(wildcard examples/*.std examples/*.c) $(DOC_DIR)/examples
	install -d $(DOC_DIR)/examples/lardvm/programs
	install -m 644 $(wildcard examples/lardvm/*.[ch] examples/lardvm/*.md) $(DOC_DIR)/examples/lardvm
	install -m 644 $(wildcard examples/lardvm/programs/*.lard) $(DOC_DIR)/examples/lardvm/programs

uninstall:
	rm -f $(BIN_DIR)/redflag $(LIB_DIR)/libredflag.a $(LIB_DIR)/libredflag-rt.so.0 $(LIB_DIR)/libredflag-chase.so.0 $(LIB_DIR)/libredflag-rt.so $(LIB_DIR)/pkgconfig/redflag.pc
	rm -f $(DESTDIR)$(PREFIX)/include/redflag.h
	rm -rf $(LIB_DIR)/redflag
	rm -f $(MAN_PAGES:doc/man/%=$(MAN_DIR)/%)
	rm -rf $(INCLUDE_DIR) $(DOC_DIR)

clean:
	rm -rf $(B)

FORCE:
.PHONY: FORCE policies bench-sync lardvm soak all rt help setup demo tests unit programs programs-detectors tsan-suite check fuzzers fuzz bench bench-production bench-offline lint format install uninstall clean
.DELETE_ON_ERROR:
-include $(patsubst %.o,%.d,$(LIB_OBJS) $(CLI_OBJS) $(FLEET_OBJS) $(STATIC_OBJS) $(INLINE_OBJS) $(FEWER_OBJS) $(PLUGIN_OBJS) $(TEST_OBJS) $(RT_OBJS) $(CHASE_OWN) $(GO_CHECKED)) $(UNIT:%=%.d) $(FUZZERS:%=%.d)
