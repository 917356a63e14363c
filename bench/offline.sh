#!/bin/sh
# Speed and size of the offline analyser, as a Markdown table on standard output.
#
#   EVENTS   length of the traces (default 100000000)
#   REPEAT   runs of each measurement, of which the fastest counts (default 3)
#   WORK     directory for the traces (default a temporary one; about 300 MB)
#   RAPID    a command that analyses an STD trace given as -f=std -p=FILE, to be measured beside ours (RAPID's HBEpoch)
set -eu
redflag=${REDFLAG:-build/redflag}
events=${EVENTS:-100000000}
repeat=${REPEAT:-3}
if [ -n "${WORK:-}" ]; then
    work=$WORK
    mkdir -p "$work"
else
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
fi
"${CC:-cc}" -O2 -o "$work/measure" "$(dirname "$0")/measure.c"

say() {
    echo "bench: $*" >&2
}

# figures ARGUMENTS...: sets wall, cpu, rss of `redflag analyze ARGUMENTS`, on the first core if it is one worker
figures() {
    say "analyze $*"
    # shellcheck disable=SC2046 # three numbers
    set -- $("$work/measure" "$repeat" "$redflag" analyze "$@")
    wall=$1 rss=$3
}

# least SO_FAR: the smaller of that and the last wall
least() {
    awk "BEGIN { print ($wall < $1) ? $wall : $1 }"
}

calc() {
    awk "BEGIN { printf \"$1\", $2 }"
}

row() {
    printf '| %s | %s | %s |\n' "$1" "$2" "$3"
}

# generate NAME OPTIONS...
generate() {
    name=$1
    shift
    [ -s "$work/$name" ] && return
    say "generating $name"
    "$redflag" trace generate "$@" -o "$work/$name.new.${name##*.}"
    mv "$work/$name.new.${name##*.}" "$work/$name"
}

generate "p8-$events.rft" --length "$events" --threads 8
generate "p64-$events.rft" --length "$events" --threads 64
generate "p8-$((events / 10)).rft" --length $((events / 10)) --threads 8
generate "p8-$((events / 50)).std" --length $((events / 50)) --threads 8 --numeric-sites
long=$work/p8-$events.rft many=$work/p64-$events.rft short=$work/p8-$((events / 10)).rft text=$work/p8-$((events / 50)).std

echo "| What | Measured | Goal |"
echo "|---|---:|---:|"

# What is compared with each other takes turns: a machine that is shared is slower at some times than at others.
fast=1e9 many_fast=1e9 accu=1e9 many_accu=1e9 two=1e9
rounds=$repeat repeat=1
while [ "$rounds" -gt 0 ]; do
    rounds=$((rounds - 1))
    figures -d fasttrack --jobs 2 "$long" && two=$(least "$two")
    figures -d acculock "$long" && accu=$(least "$accu")
    figures -d fasttrack "$long" && fast=$(least "$fast") fast_rss=$rss
    figures -d fasttrack "$many" && many_fast=$(least "$many_fast")
    figures -d acculock "$many" && many_accu=$(least "$many_accu")
done
row "fasttrack, 8 threads, one worker, million events/s" "$(calc %.1f "$events / $fast / 1e6")" "40"
row "fasttrack, 64 threads, one worker, million events/s" "$(calc %.1f "$events / $many_fast / 1e6")" ""
row "acculock, time over fasttrack" "$(calc %.2fx "$accu / $fast")" "1.3x or less"
row "acculock, 64 threads, time over fasttrack" "$(calc %.2fx "$many_accu / $many_fast")" "1.3x or less"
row "fasttrack, --jobs 2, speed-up" "$(calc %.2fx "$fast / $two")" "1.6x or more"
figures -d fasttrack "$short"
row "fasttrack, peak memory, $events events over a tenth of them" "$(calc %.2fx "$fast_rss / $rss")" "1x: flat"
bytes=$("$redflag" analyze -d fasttrack --format json "$long" | sed -n 's/.*"bytes_per_variable": *\([0-9.]*\).*/\1/p')
row "fasttrack, bytes of metadata for an 8-byte variable" "$bytes" "16 or less"

say "generic, once"
figures -d generic "$many"
row "generic, 64 threads, time over fasttrack" "$(calc %.1fx "$wall / $many_fast")" "4x or more"
figures -d djit "$many"
row "djit, 64 threads, time over fasttrack" "$(calc %.1fx "$wall / $many_fast")" ""
figures -d goldilocks "$long"
row "goldilocks, million events/s" "$(calc %.1f "$events / $wall / 1e6")" ""
figures -d pacer --rate 0.03 "$long"
row "pacer at 3%, million events/s" "$(calc %.1f "$events / $wall / 1e6")" ""
figures -d eraser "$long"
row "eraser, million events/s" "$(calc %.1f "$events / $wall / 1e6")" ""
figures -d multilock "$long"
row "multilock, million events/s" "$(calc %.1f "$events / $wall / 1e6")" ""

repeat=3
figures -d fasttrack "$text"
row "fasttrack on STD text, million events/s" "$(calc %.1f "$events / 50 / $wall / 1e6")" ""
if [ -n "${RAPID:-}" ]; then
    ours=$wall
    say "RAPID on the same text"
    # shellcheck disable=SC2086,SC2046 # a command with its arguments; three numbers
    set -- $("$work/measure" 1 $RAPID -f=std "-p=$text")
    row "RAPID's HBEpoch on the same text, time over ours" "$(calc %.1fx "$1 / $ours")" "10x or more"
fi
