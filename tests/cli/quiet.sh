#!/bin/sh
# Calls of hooks that are not in the code before pacer's first period (guest/quiet.h): the code changes while threads, handlers of signals and
# children run it; what is accessed afterwards is looked at, with whole stacks. What is loaded later works as well.
set -eu
redflag=${REDFLAG:?}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC

fail() {
    echo "quiet.sh: $*" >&2
    exit 1
}

# run PROGRAM ARGUMENT: with one seed after the other, until the code was quiet at the start, $times times. Which seeds those are does not
# depend on luck: half of all.
run() {
    seen=0
    for seed in $(seq 30); do
        status=0
        cp "$1" copy
        timeout 100 "$redflag" run -d pacer --rate 0.5 --period 300 --seed "$seed" ./copy "$2" >out 2>&1 || status=$?
        [ "$status" -ne 3 ] || continue
        [ "$status" -eq 66 ] || fail "$1 $2, seed $seed: status $status: $(cat out)"
        if grep '^wrong: ' out; then
            fail "$1 $2, seed $seed"
        fi
        grep -q 'data race' out || fail "$1 $2, seed $seed: no report: $(cat out)"
        for frame in write_shared read_shared main partner; do
            grep -q " $frame " out || fail "$1 $2, seed $seed: $frame is not in the report: $(cat out)"
        done
        seen=$((seen + 1))
        [ "$seen" -lt "$times" ] || return 0
    done
    fail "$1 $2: the code was quiet $seen times"
}

build() { # NAME COMPILER FLAGS...
    name=$1 compiler=$2
    shift 2
    REDFLAG_CC=$compiler "$redflag" cc -g -w -I"$root" "$@" -o "$name" "$here/quiet.c" || fail "$name does not build"
}

build gcc gcc -O2
build gcc-fixed gcc -O1 -no-pie -fno-pie -fno-plt
build clang clang -O2
times=3
run gcc stays
times=1
run gcc-fixed stays
run clang stays
run gcc gone
run gcc divided

# What is loaded later has its calls; nothing is quiet behind the tap, where accesses are counted, or with a rate of 1.
"$redflag" cc -w -I"$root" -O2 -shared -fPIC -o library.so "$root/tests/programs/near-library.c"
"$redflag" cc -w -I"$root" -O2 -o loader "$root/tests/programs/near-dlopen.c" -ldl
"$redflag" run -d pacer --rate 0.5 --seed 3 ./loader ./library.so >out 2>&1 || fail "near-dlopen ends with status $?: $(cat out)"
for options in "--rate 1" "--rate 0.01 --stats"; do
    status=0
    # shellcheck disable=SC2086
    "$redflag" run -d pacer $options ./gcc stays >out 2>&1 || status=$?
    [ "$status" -eq 3 ] || fail "$options: status $status, not 3: $(cat out)"
done
