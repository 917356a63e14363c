# redflag: build, test, install. `make help` lists the targets.

PREFIX ?= /usr/local
B := build

CC ?= gcc
PKGS := libzstd libxxhash
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
RF_CFLAGS = -std=c11 -D_GNU_SOURCE -I. $(WARN) $(CFLAGS) $(shell pkg-config --cflags $(PKGS))
RF_LIBS = $(shell pkg-config --libs $(PKGS)) -lpthread -lm

ROOMS := core trace replay report
SRCS := $(wildcard $(ROOMS:%=%/*.c))
OBJS := $(SRCS:%.c=$(B)/obj/%.o)
CLI := $(patsubst %.c,$(B)/obj/%.o,$(wildcard cli/*.c))
UNIT := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/*.c))

all: $(B)/redflag

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(RF_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/redflag: $(CLI) $(OBJS)
	$(CC) $(RF_CFLAGS) $(LDFLAGS) -o $@ $^ $(RF_LIBS)

$(B)/tests/%: tests/unit/%.c $(OBJS)
	@mkdir -p $(@D)
	$(CC) $(RF_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(OBJS) $(RF_LIBS) -lcmocka

unit: $(UNIT)
	@set -e; for t in $(UNIT); do $$t; done

check: all unit

clean:
	rm -rf $(B)

.PHONY: all unit check clean
-include $(shell find $(B) -name '*.d' 2>/dev/null)
