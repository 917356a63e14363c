#!/bin/sh
# make install: the tree is complete, a program built with it finds its race, one built with pkg-config reads a trace, DESTDIR is not remembered, and uninstall
# leaves nothing behind. REDFLAG names the command inside the build directory to install from.
set -eu
cd "$(dirname "$0")/../.."
build=$(dirname "$REDFLAG")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR PREFIX

fail() {
    echo "install: $1" >&2
    exit 1
}

prefix=$scratch/prefix
make --no-print-directory B="$build" PREFIX="$prefix" install
for file in bin/redflag lib/libredflag.a lib/pkgconfig/redflag.pc share/man/man1/redflag.1 share/doc/redflag/LICENSE \
    share/man/man1/redflag-run.1 lib/libredflag-rt.so.0 lib/libredflag-rt.so lib/redflag/tsan/libtsan.so.2 lib/libredflag-chase.so.0 lib/redflag/chase/libtsan.so.2 \
    lib/redflag/tsan/libtsan.so include/redflag/core/event.h include/redflag/core/ops.def include/redflag/trace/trace.h include/redflag.h; do
    [ -s "$prefix/$file" ] || fail "$file is missing"
done
[ "$("$prefix/bin/redflag" --version)" = "redflag $(cat VERSION)" ] || fail "bin/redflag --version is not $(cat VERSION)"

# From there alone, the race of the example is found: the program of ours by itself, that of plain gcc through `run`.
unset REDFLAG_CC REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH
"$prefix/bin/redflag" cc -g -pthread examples/counter.c -o "$scratch/counter"
readelf -d "$scratch/counter" | grep -q "$prefix/lib" || fail "the program does not know where the runtime is"
gcc -fsanitize=thread -g -pthread examples/counter.c -o "$scratch/unmodified"
for run in "$scratch/counter" "$prefix/bin/redflag run $scratch/unmodified"; do
    status=0
    # Words.
    # shellcheck disable=SC2086
    $run >"$scratch/output" 2>&1 || status=$?
    [ "$status" -eq 66 ] || fail "'$run' ended with $status: $(cat "$scratch/output")"
    grep -q 'counter.c:11' "$scratch/output" || fail "'$run' does not name the line: $(cat "$scratch/output")"
done

cat >"$scratch/count.c" <<'C'
#include <stdio.h>
#include <stdlib.h>
#include "trace/trace.h"

int main(int argc, char **argv)
{
    char *error = NULL;
    struct rf_reader *reader = argc == 2 ? rf_reader_open(argv[1], RF_FORMAT_AUTO, &error) : NULL;
    if (!reader) {
        fprintf(stderr, "%s\n", error ? error : "usage: count TRACE");
        free(error);
        return 2;
    }
    size_t events = 0;
    struct rf_batch batch;
    enum rf_trace_status status;
    while ((status = rf_reader_next(reader, &batch)) == RF_TRACE_MORE)
        events += batch.count;
    printf("%zu\n", events);
    rf_reader_close(reader);
    return status == RF_TRACE_END ? 0 : 1;
}
C
PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
[ "$(pkg-config --modversion redflag)" = "$(cat VERSION)" ] || fail "redflag.pc has another version"
# The words of pkg-config are the arguments.
# shellcheck disable=SC2046
gcc -std=c11 -Wall -Wextra -Werror -o "$scratch/count" "$scratch/count.c" $(pkg-config --cflags --libs redflag)
expected=$(grep -c '^[a-z]' examples/bank.std)
counted=$("$scratch/count" examples/bank.std)
[ "$counted" = "$expected" ] || fail "the library counted $counted events in examples/bank.std, which has $expected"

# Each installed header must stand on its own, with nothing but the installed tree to include from.
(echo redflag.h; cd "$prefix/include/redflag" && find . -name '*.h') | while read -r header; do
    printf '#include "%s"\n' "${header#./}" >"$scratch/header.c"
    # shellcheck disable=SC2046
    gcc -std=c11 -fsyntax-only $(pkg-config --cflags redflag) "$scratch/header.c" || fail "$header does not compile alone"
done

make --no-print-directory B="$build" PREFIX=/opt/redflag DESTDIR="$scratch/stage" install
(cd "$prefix" && find . -type f | sort) >"$scratch/direct"
(cd "$scratch/stage/opt/redflag" && find . -type f | sort) >"$scratch/staged"
cmp "$scratch/direct" "$scratch/staged" || fail "DESTDIR changes what is installed"
if grep -q "$scratch" "$scratch/stage/opt/redflag/lib/pkgconfig/redflag.pc"; then fail "redflag.pc remembers DESTDIR"; fi

make --no-print-directory B="$build" PREFIX="$prefix" uninstall
left=$(find "$prefix" -type f -o -type l)
[ -z "$left" ] || fail "uninstall left: $left"
