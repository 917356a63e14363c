#!/bin/sh
# The slowdown of checked transactions against unchecked ones: Table 3 of the Goldilocks paper. Processor time, the least of RUNS runs.
#   bench/multiset.sh [OPERATIONS]     REDFLAG names the command, DETECTORS those to measure, THREADS how many
set -eu
cd "$(dirname "$0")/.."
redflag=${REDFLAG:-build/redflag}
operations=${1:-2000}
runs=${RUNS:-3}
export ITM_DEFAULT_METHOD="${METHOD:-ml_wt}" # software, as in the paper; METHOD=htm for hardware transactions, where there are
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
gcc -O2 -g -fgnu-tm -pthread bench/multiset.c -o "$dir/unchecked"
"$redflag" cc -O2 -g -fgnu-tm -pthread bench/multiset.c -o "$dir/checked"

# cost COMMAND...: user and system seconds, the least of the runs
cost() {
    for _ in $(seq "$runs"); do
        bash -c 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>&1' bash "$@" 2>&1
    done | awk '{ t = $1 + $2; if (NR == 1 || t < least) least = t } END { printf "%.3f", least }'
}

printf '| Threads | Unchecked, s |'
for detector in ${DETECTORS:-fasttrack goldilocks}; do printf ' %s, s | slowdown |' "$detector"; done
printf '\n|---|---|'
for detector in ${DETECTORS:-fasttrack goldilocks}; do printf -- '---|---|'; done
echo
for threads in ${THREADS:-5 10 20 50 100 200 500}; do
    plain=$(cost "$dir/unchecked" "$threads" "$operations")
    printf '| %s | %s |' "$threads" "$plain"
    for detector in ${DETECTORS:-fasttrack goldilocks}; do
        checked=$(cost "$redflag" run -d "$detector" "$dir/checked" "$threads" "$operations")
        printf ' %s | %s |' "$checked" "$(awk -v a="$checked" -v b="$plain" 'BEGIN { printf "%.1f", (b > 0 ? a / b : 0) }')"
    done
    echo
done
