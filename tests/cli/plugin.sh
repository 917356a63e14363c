#!/usr/bin/env bash
# gcc's plugin (plugin/), which `redflag cc` uses: fewer checks, of the same bytes in the same epochs.
#   SEEDS  of random programs that are compared with and without it (default "1 2 3 4 5 6 7 8")
set -euo pipefail
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC REDFLAG_CXX

fail() {
    echo "plugin.sh: $*" >&2
    exit 1
}

compgen -G "$(dirname "$redflag")/lib/redflag/redflag-gcc-*.so" >/dev/null || fail "it was not built: is gcc-12-plugin-dev there?"

# -- which checks are left: each function of plugin.c says it ------------------------------------------------------------------------

# hooks FILE: function by function, the hooks in the order of the text
hooks() {
    awk '/^[a-z_0-9]+:/ { name = $1; sub(":", "", name) }
         /(call|jmp)[ \t]+__tsan_/ && $2 !~ /func_|init/ { sub("__tsan_", "", $2); sub("@PLT", "", $2); list[name] = list[name] " " $2 }
         END { for (name in list) print name list[name] }' "$1" | sort
}

"$redflag" cc -O2 -S "$root/tests/plugin/samples.c" -o fewer.s
"$redflag" cc --every-access -O2 -S "$root/tests/plugin/samples.c" -o every.s
hooks fewer.s >fewer
hooks every.s >every
sed -n 's|^/\* fewer: \(.*\) \*/$|\1|p' "$root/tests/plugin/samples.c" | sort >want
diff want fewer || fail "samples.c has other checks than it says"
[ "$(grep -c prefetch fewer.s)" = 2 ] || fail "a history is not fetched with what it is about"
[ "$(wc -w <every)" -gt "$(wc -w <fewer)" ] || fail "--every-access has no more checks"
"$redflag" cc -O0 -S "$root/tests/plugin/samples.c" -o plain.s
"$redflag" cc --every-access -O0 -S "$root/tests/plugin/samples.c" -o plain-every.s
[ "$(hooks plain.s)" = "$(hooks plain-every.s)" ] || fail "without optimisation checks are missing"

# -- random programs check the same bytes in every epoch ------------------------------------------------------------------------------

gcc -O1 -o generate "$root/tests/plugin/generate.c"
gcc -O1 -I"$root" -c "$root/tests/plugin/hooks.c" -o hooks.o
fewer=0 every=0
for seed in ${SEEDS:-1 2 3 4 5 6 7 8}; do
    ./generate "$seed" >program.c
    for optimise in -O1 -O2 -O3; do
        flags="-w -g0 -fno-strict-aliasing -I$root $optimise -c program.c"
        # shellcheck disable=SC2086 # words
        {
            "$redflag" cc $flags -o fewer.o
            "$redflag" cc --every-access $flags -o every.o
        }
        for build in fewer every; do
            gcc "$build.o" hooks.o -o "$build.exe"
            "./$build.exe" >"$build.txt" || fail "seed $seed, $optimise: $build.exe fails"
        done
        cmp fewer.txt every.txt || fail "seed $seed, $optimise: other bytes are checked, or something else is computed"
        fewer=$((fewer + $(objdump -dr fewer.o | grep -c '__tsan_[a-z_]*\(read\|write\)')))
        every=$((every + $(objdump -dr every.o | grep -c '__tsan_[a-z_]*\(read\|write\)')))
    done
done
[ $((fewer * 100)) -lt $((every * 95)) ] || fail "$fewer of $every checks are left: that is nearly all"

# -- reports name the access that was in the loop ---------------------------------------------------------------------------------------

"$redflag" cc -O2 -g -pthread "$root/tests/plugin/race.c" -o race
status=0
./race 2>report || status=$?
[ "$status" = 66 ] || fail "a race of two loops: status $status"
for word in READ WRITE; do
    line=$(grep -n "/\* $word \*/" "$root/tests/plugin/race.c" | cut -d : -f 1)
    grep -q "race.c:$line" report || fail "the report does not name line $line"
done

for optimise in -O1 -O2 -O3 "-O2 -fnon-call-exceptions"; do
    # shellcheck disable=SC2086 # words
    "$redflag" c++ -w $optimise -pthread "$root/tests/plugin/objects.cc" -o objects
    ./objects || fail "objects.cc, $optimise: status $?"
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
echo "random programs: $fewer of $every checks are left"
