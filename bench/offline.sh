#!/bin/sh
# Speed and size of the offline analyser, as a Markdown table on standard output.
#
#   EVENTS   length of the traces (default 100000000)
#   REPEAT   turns of what is compared with each other, of which the fastest counts (default 6: four minutes with the traces made)
#   WORK     directory for the traces (default a temporary one; about 300 MB)
#   RAPID    a command that analyses an STD trace given as -f=std -p=FILE, to be measured beside ours (RAPID's HBEpoch)
set -eu
redflag=${REDFLAG:-build/redflag}
events=${EVENTS:-100000000}
repeat=1 rounds=${REPEAT:-6}
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

# figures ARGUMENTS...: sets wall and rss of `redflag analyze ARGUMENTS`, the least and the largest of $repeat runs
figures() {
    say "analyze $*"
    # shellcheck disable=SC2046 # three numbers
    set -- $("$work/measure" "$repeat" "$redflag" analyze "$@")
    wall=$1 rss=$3
}

# turn NAME ARGUMENTS...: one more run, whose time is kept under that name
turn() {
    name=$1
    shift
    figures "$@"
    echo "$wall" >>"$work/turns.$name"
}

# least NAME: the fastest of its turns
least() {
    sort -n "$work/turns.$1" | head -n 1
}

# middle NAME OTHER: the median of the ratios that neighbouring turns have
middle() {
    paste "$work/turns.$1" "$work/turns.$2" | awk '{ print $1 / $2 }' | sort -n | awk '{ r[NR] = $1 } END { print (r[int((NR + 1) / 2)] + r[int(NR / 2) + 1]) / 2 }'
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
rm -f "$work"/turns.*
for round in $(seq "$rounds"); do
    turn fast -d fasttrack "$long" && fast_rss=$rss
    turn two -d fasttrack --jobs 2 "$long"
    turn accu -d acculock "$long"
    turn many_fast -d fasttrack "$many"
    turn many_accu -d acculock "$many"
    [ $((round % 4)) -ne 1 ] || turn generic -d generic "$many"
done
fast=$(least fast) many_fast=$(least many_fast)
row "fasttrack, 8 threads, one worker, million events/s" "$(calc %.1f "$events / $fast / 1e6")" "40"
row "fasttrack, 64 threads, one worker, million events/s" "$(calc %.1f "$events / $many_fast / 1e6")" ""
row "acculock, time over fasttrack" "$(calc %.2fx "$(least accu) / $fast")" "1.3x or less"
row "acculock, 64 threads, time over fasttrack" "$(calc %.2fx "$(least many_accu) / $many_fast")" "1.3x or less"
row "fasttrack, --jobs 2, speed-up" "$(calc %.2fx "$fast / $(least two)")" "1.6x or more"
row "the same, median of the turns" "$(calc %.2fx "$(middle fast two)")" "1.6x or more"
row "acculock over fasttrack, median of the turns" "$(calc %.2fx "$(middle accu fast)")" "1.3x or less"
figures -d fasttrack "$short"
row "fasttrack, peak memory, $events events over a tenth of them" "$(calc %.2fx "$fast_rss / $rss")" "1x: flat"
bytes=$("$redflag" analyze -d fasttrack --format json "$long" | sed -n 's/.*"bytes_per_variable": *\([0-9.]*\).*/\1/p')
row "fasttrack, bytes of metadata for an 8-byte variable" "$bytes" "16 or less"

row "generic, 64 threads, time over fasttrack" "$(calc %.1fx "$(least generic) / $many_fast")" "4x or more"
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
