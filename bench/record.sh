#!/usr/bin/env bash
# What recording costs: processor time of the program under `redflag record`, beside that of the native one and of `redflag run`, and
# that of the recorder. Programs are those that `make bench` has built: B=build bench/record.sh [PROGRAM...]
#
#   VARIANT  whose binaries are recorded: gcc-redflag (default), what `redflag cc` makes; gcc, an unchanged one with every access
#   ROUNDS   how often each is run, in turns; the least time counts (default 5)
#   TEXT     what is compressed (default: the largest text that `make bench` has made of at most 8 MB)
set -eu
B=${B:-build}
work=$(cd "$B/bench" && pwd -P)
redflag=$(cd "$B" && pwd)/redflag
variant=${VARIANT:-gcc-redflag}
rounds=${ROUNDS:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
text=${TEXT:-$(find "$work" -maxdepth 1 -name 'text-*' -size -8200k | sort -t- -k2n | tail -n 1)}
text=$(realpath "$text")
cd "$scratch"
TIMEFORMAT='%U %S'

command_of() { # PROGRAM VARIANT
    local program
    program=$(find "$work/$2" -maxdepth 1 -type f -name "$1" -perm -u+x)
    [ -n "$program" ] || return 0
    case $1 in
    pigz) echo "$program -p2 -c $text" ;;
    pbzip2) echo "$program -p2 -c $text" ;;
    zstd) echo "$program -T2 -q -c $text" ;;
    xz) echo "$program -T2 -1 -c $text" ;;
    *) echo "$program" ;;
    esac
}

# Reads "user system" of the last line of a file; prints the less of their sum and the second argument.
least_of() {
    tail -n 1 "$1" | awk -v least="${2:-}" '{ sum = $1 + $2; printf "%.3f", least == "" || sum < least ? sum : least }'
}

printf '| program | native, s | run | record | recorder, s | events | bytes an event |\n|---|---:|---:|---:|---:|---:|---:|\n'
for program in "${@:-pigz}"; do
    native=$(command_of "$program" native) watched=$(command_of "$program" "$variant")
    if [ -z "$native" ] || [ -z "$watched" ]; then
        echo "record: $program was not built under $work" >&2
        continue
    fi
    least_native='' least_run='' least_record='' least_all=''
    for _ in $(seq "$rounds"); do
        # shellcheck disable=SC2086 # words
        { time $native >/dev/null 2>&1; } 2>native.time
        # shellcheck disable=SC2086
        { time "$redflag" run --report-bugs=0 --exitcode=0 -- $watched >/dev/null 2>&1; } 2>run.time
        # shellcheck disable=SC2016,SC2086
        { time "$redflag" record --force -o t.rft -- \
            bash -c 'TIMEFORMAT="%U %S"; { time "$@" >/dev/null 2>&1; } 2>program.time' bash $watched 2>said; } 2>all.time
        least_native=$(least_of native.time "$least_native")
        least_run=$(least_of run.time "$least_run")
        least_record=$(least_of program.time "$least_record")
        least_all=$(least_of all.time "$least_all")
    done
    events=$(sed -n 's/.*: \([0-9]*\) events of.*/\1/p' said)
    awk -v program="$program" -v native="$least_native" -v run="$least_run" -v record="$least_record" \
        -v all="$least_all" -v events="$events" -v bytes="$(stat -c %s t.rft)" 'BEGIN {
        printf "| %s | %.2f | %.1fx | %.1fx | %.1f | %d | %.2f |\n", program, native, run / native, record / native, all - record, events,
            bytes / events }'
done
