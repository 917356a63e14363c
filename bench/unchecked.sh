#!/bin/sh
# What the static pre-filter saves (Tables 1 and 2 of the Goldilocks paper): the sites of each kernel that are in no pair of
# `redflag static` are left out by `redflag run --unchecked`. Processor time, the least of RUNS runs.
#   bench/unchecked.sh [KERNEL...]     REDFLAG names the command, DETECTOR the detector (fasttrack); PERCENT of the kernels' work is done (default 20)
set -eu
cd "$(dirname "$0")/.."
redflag=$(realpath "${REDFLAG:-build/redflag}")
runs=${RUNS:-2}
percent=-DKERNEL_PERCENT=${PERCENT:-20}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
[ $# -gt 0 ] || set -- hash sort tree matmul queue bytes lockpair

cost() { # COMMAND...
    for _ in $(seq "$runs"); do
        bash -c 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>&1' bash "$@" 2>&1
    done | awk '{ t = $1 + $2; if (NR == 1 || t < least) least = t } END { printf "%.2f", least }'
}

ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", (b > 0 ? a / b : 0) }'
}

echo '| Kernel | Sites | Race-free | Native, s | All checked, s | slowdown | Race-free left out, s | slowdown |'
echo '|---|---|---|---|---|---|---|---|'
for kernel; do
    source=bench/kernels/$kernel.c
    gcc -O2 -g "$percent" -I. -pthread "$source" -o "$dir/native" -lm
    "$redflag" cc -O2 -g "$percent" -I. -pthread "$source" -o "$dir/checked" -lm
    REDFLAG_CC=clang "$redflag" cc --bitcode -O1 -g "$percent" -I. -pthread -c "$source" -o "$dir/kernel.o"
    "$redflag" static "$dir/kernel.bc" >"$dir/pairs" || [ $? -eq 1 ]
    "$redflag" sites --no-libraries "$dir/checked" >"$dir/sites"
    # FILE:LINE:COLUMN, and the name last. A site whose line is in a pair stays; so does one that has no line.
    awk -F '\t' '
        FNR == NR { n = split($0, site, " "); for (i = 1; i <= n; i++) { sub(/.*\//, "", site[i]); racy[site[i]] = 1 } next }
        { line = $1; sub(/:[0-9]+$/, "", line); sub(/.*\//, "", line) }
        line ~ /:[0-9]+$/ && !(line in racy) { print $NF }' "$dir/pairs" "$dir/sites" >"$dir/unchecked"
    native=$(cost "$dir/native") all=$(cost "$redflag" run -d "${DETECTOR:-fasttrack}" "$dir/checked")
    rest=$(cost "$redflag" run -d "${DETECTOR:-fasttrack}" --unchecked="$dir/unchecked" "$dir/checked")
    printf '| %s | %s | %s | %s | %s | %s | %s | %s |\n' "$kernel" "$(wc -l <"$dir/sites")" "$(wc -l <"$dir/unchecked")" \
        "$native" "$all" "$(ratio "$all" "$native")" "$rest" "$(ratio "$rest" "$native")"
done
