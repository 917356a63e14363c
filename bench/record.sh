#!/usr/bin/env bash
# What recording costs: processor time of the program under `redflag record`, beside that of the native one and of `redflag run`, and
# that of the recorder. Programs are those that `make bench` has built: B=build bench/record.sh [PROGRAM...]
set -eu
B=${B:-build}
work=$(cd "$B/bench" && pwd -P)
redflag=$(cd "$B" && pwd)/redflag
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
text=$(find "$work" -maxdepth 1 -name 'text-*' | sort -t- -k2n | head -n 1)
TIMEFORMAT='%U %S'

command_of() { # PROGRAM VARIANT
    local program
    program=$(find "$work/$2" -type f -name "$1" -perm -u+x | head -n 1)
    [ -n "$program" ] || return 0
    case $1 in
    pigz) echo "$program -p2 -c $text" ;;
    pbzip2) echo "$program -p2 -c $text" ;;
    zstd) echo "$program -T2 -q -c $text" ;;
    xz) echo "$program -T2 -1 -c $text" ;;
    *) echo "$program" ;;
    esac
}

seconds() { # reads "user system" of the last line of a file
    tail -n 1 "$1" | awk '{ printf "%.2f", $1 + $2 }'
}

printf '| program | native, s | run | record | recorder, s | events | bytes an event |\n|---|---:|---:|---:|---:|---:|---:|\n'
for program in "${@:-pigz}"; do
    native=$(command_of "$program" native) watched=$(command_of "$program" gcc)
    if [ -z "$native" ] || [ -z "$watched" ]; then
        echo "record: $program was not built under $work" >&2
        continue
    fi
    # shellcheck disable=SC2086 # words
    { time $native >/dev/null 2>&1; } 2>native.time
    # shellcheck disable=SC2086
    { time "$redflag" run --report-bugs=0 --exitcode=0 -- $watched >/dev/null 2>&1; } 2>run.time
    # shellcheck disable=SC2016,SC2086
    { time "$redflag" record --force -o t.rft -- \
        bash -c 'TIMEFORMAT="%U %S"; { time "$@" >/dev/null 2>&1; } 2>program.time' bash $watched 2>said; } 2>all.time
    events=$(sed -n 's/.*: \([0-9]*\) events of.*/\1/p' said)
    awk -v program="$program" -v native="$(seconds native.time)" -v run="$(seconds run.time)" -v record="$(seconds program.time)" \
        -v all="$(seconds all.time)" -v events="$events" -v bytes="$(stat -c %s t.rft)" 'BEGIN {
        printf "| %s | %.2f | %.1fx | %.1fx | %.1f | %d | %.2f |\n", program, native, run / native, record / native, all - record, events,
            bytes / events }'
done
