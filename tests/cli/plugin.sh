#!/usr/bin/env bash
# gcc's plugin (plugin/), which `redflag cc` uses: fewer checks, of the same bytes in the same epochs.
#   SEEDS  of random programs that are compared with and without it (tests/plugin/same)
set -euo pipefail
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck disable=SC2034 # tests/plugin/same knows it
me=plugin.sh
# shellcheck disable=SC1091
. "$root/tests/plugin/same"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC REDFLAG_CXX

compgen -G "$(dirname "$redflag")/lib/redflag/redflag-gcc-*.so" >/dev/null || fail "it was not built: is gcc-12-plugin-dev there?"

# build EVERY FLAG...: the plugin leaves calls of hooks by itself
build() {
    local every=${1:+--every-access}
    shift
    # shellcheck disable=SC2086 # a word or none
    "$redflag" cc $every "$@"
}

hooks_are_left fewer -O2
"$redflag" cc -O0 -S "$root/tests/plugin/samples.c" -o plain.s
"$redflag" cc --every-access -O0 -S "$root/tests/plugin/samples.c" -o plain-every.s
[ "$(hooks plain.s)" = "$(hooks plain-every.s)" ] || fail "without optimisation checks are missing"
[ "$(grep -c prefetch fewer.s)" = 2 ] || fail "a history is not fetched with what it is about"
same_bytes
names_lines cc
for optimise in -O1 -O2 -O3 "-O2 -fnon-call-exceptions"; do
    computes_the_same c++ "$optimise"
done

# -- it stands in nobody's way -----------------------------------------------------------------------------------------------------------

echo 'int twice(int *x) { return x[0] + x[0]; }' >one.c
echo 'int twice(int *x); int main(void) { int y = 4; return twice(&y) - 8; }' >two.c
"$redflag" cc -O2 -flto one.c two.c -o lto
./lto || fail "-flto: status $?"
echo 'static inline int thrice(int x) { return 3 * x; }' >header.h
"$redflag" cc -O2 header.h -o header.h.gch
echo '#include "header.h"
int main(void) { return thrice(0); }' >three.c
"$redflag" cc -O2 -Winvalid-pch -Werror three.c -o three
./three || fail "a precompiled header: status $?"
