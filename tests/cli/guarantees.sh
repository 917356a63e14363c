#!/usr/bin/env bash
# Each row of doc/detectors.md inside running programs: random programs, all of whose runs are one execution (guarantees.c), are recorded, and run
# with each detector; what it reports is judged by the oracle on the recording (guarantees_judge.c).
#   guarantees.sh [FIRST [LAST]]     seeds; DETECTORS="multilock pacer" for some
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
first=${1:-1} last=${2:-6}
redflag=$(realpath "${REDFLAG:?}")
library=$(dirname "$redflag")/libredflag.a
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC
cd "$scratch"
size=$(sed -n 's/^#define BYTES //p' "$top/tests/cli/guarantees.c")

fail() {
    echo "guarantees: $1" >&2
    [ ! -s wrong ] || sed 's/^/    /' wrong >&2
    exit 1
}

"$redflag" cc -g -O1 -pthread -I "$top" "$top/tests/cli/guarantees.c" -o program || fail "the program does not build"
read -ra libraries <<<"$(pkg-config --libs libzstd libxxhash libdw)"
gcc -std=c11 -D_GNU_SOURCE -O1 -I "$top" "$top/tests/cli/guarantees_judge.c" "$top/tests/oracle.c" "$library" "${libraries[@]}" -lpthread -lm \
    -o judge || fail "the judge does not build"

# DETECTOR, or DETECTOR-MANNER, and the options that it has
manners="fasttrack-spin:detector=fasttrack:sync=spin
fasttrack-fib:detector=fasttrack:sync=fib
fasttrack-escape:detector=fasttrack:escape=1
acculock-tap:detector=acculock:stats=1
multilock-tap:detector=multilock:stats=1
pacer:detector=pacer:rate=1
pacer-tap:detector=pacer:rate=1:stats=1
pacer-half:detector=pacer:rate=0.5:period=20"
for detector in fasttrack generic djit goldilocks acculock multilock lockset eraser racetrack hybrid multirace literace none; do
    manners="$detector:detector=$detector
$manners"
done

judged=0
for ((seed = first; seed <= last; seed++)); do
    REDFLAG_OPTIONS=detect_deadlocks=0 "$redflag" record -q -o trace.rft -- ./program "$seed" >out 2>err || fail "seed $seed cannot be recorded: $(cat err)"
    recorded=$(sed -n 's/^memory //p' out)
    while IFS= read -r manner; do
        name=${manner%%:*} detector=${manner%%:*}
        [ "$name" = pacer-half ] || detector=${name%-*}
        case " ${DETECTORS:-$detector} " in *" $detector "*) ;; *) continue ;; esac
        status=0
        REDFLAG_OPTIONS=${manner#*:}:seed=$seed:format=jsonl:output=$PWD/reports:suppress_equal_stacks=0:suppress_equal_addresses=0:detect_deadlocks=0 \
            timeout 100 ./program "$seed" >out 2>err || status=$?
        case $status in 0 | 66) ;; *) fail "seed $seed, $name: status $status: $(cat err)" ;; esac
        base=$(sed -n 's/^memory //p' out)
        : >offsets
        while read -r certainty at length; do
            at=$((at - base))
            [ $at -lt 0 ] || [ $at -ge "$size" ] || echo "$at $length $certainty"
        done < <(sed -n 's/.*"certainty": "\([a-z]*\)".*"previous": false,"address": "\(0x[0-9a-f]*\)","size": \([0-9]*\).*/\1 \2 \3/p' reports 2>/dev/null) >>offsets
        ./judge trace.rft "$recorded" "$size" "$detector" offsets >wrong || fail "seed $seed, $name: it cannot be judged"
        [ ! -s wrong ] || fail "seed $seed, $name: $(wc -l <offsets) reports"
        judged=$((judged + 1))
        rm -f reports
    done <<<"$manners"
done
echo "guarantees: $judged runs hold what is promised"
[ "$judged" -gt 0 ]
