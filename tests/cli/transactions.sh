#!/bin/sh
# Transactions of gcc -fgnu-tm: every way in which libitm runs them, every detector that knows them, and a recording of them come to one
# verdict; the multiset of the benchmark keeps its elements.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC ITM_DEFAULT_METHOD

fail() {
    echo "transactions.sh: $*" >&2
    exit 1
}

expect() {
    wanted=$1 status=0
    shift
    timeout -k 5 100 "$@" >output 2>&1 </dev/null || status=$?
    [ "$status" -eq "$wanted" ] || fail "'$*' ended with $status instead of $wanted: $(cat output)"
}

for program in list:0 lock:66 rolled-back:0 threads:0; do
    name=${program%:*} verdict=${program#*:}
    "$redflag" cc -g -O1 -fgnu-tm -pthread -I "$root" "$root/tests/programs/transaction-$name.c" -o "$name"
    for method in ml_wt gl_wt serialirr serialirr_onwrite serial htm; do
        expect "$verdict" env ITM_DEFAULT_METHOD=$method "./$name"
    done
    for detector in generic goldilocks; do
        expect "$verdict" "$redflag" run -d $detector "./$name"
    done
    expect 0 "$redflag" record -q -o "$name.std" -- "./$name"
    grep -q '|commit(' "$name.std" || fail "$name.std has no commit"
    for detector in fasttrack generic goldilocks; do
        expect "$verdict" "$redflag" analyze -d $detector "$name.std"
    done
done

"$redflag" cc -O1 -g -fgnu-tm -pthread "$root/bench/multiset.c" -o multiset
expect 0 ./multiset 8 200
expect 0 "$redflag" run -d goldilocks ./multiset 8 100
