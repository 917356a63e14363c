#!/usr/bin/env bash
# The passes of `redflag cc --inline` (inline/fewer.cc): fewer checks with clang, of the same bytes in the same epochs.
#   SEEDS  of random programs that are compared with and without them (tests/plugin/same); some of the default ones are there since they found a fault
set -euo pipefail
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck disable=SC2034 # tests/plugin/same knows it
me=fewer.sh
# shellcheck disable=SC1091
. "$root/tests/plugin/same"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS
SEEDS=${SEEDS:-1 3 5 6 7 8 11 12}
export REDFLAG_CC=clang REDFLAG_CXX=clang++
inline=$(dirname "$redflag")/lib/redflag/redflag-inline
{ [ -e "$inline" ] && command -v clang >/dev/null; } || { echo "fewer: built without clang or LLVM: skipped"; exit 0; }

# build EVERY FLAG... -o OUTPUT: what --inline does, but that hooks stay calls
build() {
    local every=${1:+--every-access} output="${*: -1}" words=("${@:2:$#-3}") what=-c
    clang -fsanitize=thread "${words[@]/#-S/-c}" -emit-llvm -o "$output.bc"
    # shellcheck disable=SC2086 # a word or none
    "$inline" $every - "$output.bc"
    case $output in *.s) what=-S ;; esac
    clang -w -O2 -Xclang -disable-llvm-passes $what "$output.bc" -o "$output"
}

# Loops as they are written: how often clang unrolls them is not ours to say. Lines tell what is too far apart to be joined.
hooks_are_left clang -O2 -g1 -fno-vectorize -fno-slp-vectorize -fno-unroll-loops
same_bytes
names_lines cc --inline
for optimise in -O1 -O2 -O3; do
    computes_the_same "c++ --inline" "$optimise"
done

# checks FLAG...: how many are in samples.c, as inlined or as called
checks() {
    "$redflag" cc --inline "$@" -c "$root/tests/plugin/samples.c" -o checks.o
    objdump -dr checks.o | grep -c '__tsan_[a-z_]*\(read\|write\)'
}

# -- where every access has its own ------------------------------------------------------------------------------------------------------

every=$(checks -O1 --every-access)
[ "$(checks -O1)" -lt "$every" ] || fail "--every-access has no more checks"
[ "$(checks -O1 --bitcode)" -ge "$every" ] || fail "--bitcode leaves out checks"
[ "$(checks -O0)" = "$(checks -O0 --every-access)" ] || fail "without optimisation checks are missing"
