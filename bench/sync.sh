#!/bin/sh
# What it costs to make a step atomic: none, spin, cas and fib, each with and without escape analysis, as Markdown tables on standard
# output, like Wood's Figures 5.13 and 5.15 and his Table 5.2. doc/sync.md explains them.
#
#   KERNELS   which of bench/kernels (default: matmul sort hash atomics queue tree copy bytes)
#   ROUNDS    how often each is run; the least processor time counts (default 2)
#   PERCENT   of the kernels' work (default 5: all of it takes less than four minutes)
#   LIMIT     seconds for a run; what takes longer is left out (default 20)
#
# 1. Everything takes turns, program by program and variant by variant, so that a busy machine disturbs all alike. Processor time of
#    user and system together is compared, not wall time.
# 2. Counts come from runs of their own (--stats), in which every access goes the long way.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
B=${B:-build}
mkdir -p "$B/bench/sync"
B=$(cd "$B" && pwd)
work=$B/bench/sync
rounds=${ROUNDS:-2}
percent=${PERCENT:-5}
limit=${LIMIT:-20}
kernels=${KERNELS:-matmul sort hash atomics queue tree copy bytes}
variants="native none none+esc spin spin+esc cas cas+esc fib fib+esc"
quiet="report_bugs=0:exitcode=0:report_thread_leaks=0:atexit_sleep_ms=0"

for kernel in $kernels; do
    gcc -O2 -g -DKERNEL_PERCENT="$percent" -I"$here/.." -pthread -o "$work/$kernel-native" "$here/kernels/$kernel.c" -lm
    gcc -O2 -g -DKERNEL_PERCENT="$percent" -fsanitize=thread -I"$here/.." -pthread -o "$work/$kernel" "$here/kernels/$kernel.c" -lm
done
gcc -O2 -D_GNU_SOURCE -o "$work/measure" "$here/measure.c"

# options VARIANT: for REDFLAG_OPTIONS
options() {
    case $1 in
    *+esc) echo "sync=${1%+esc}:escape=1:$quiet" ;;
    *) echo "sync=$1:$quiet" ;;
    esac
}

: >"$work/results"
round=1
while [ "$round" -le "$rounds" ]; do
    for kernel in $kernels; do
        for variant in $variants; do
            echo "bench: round $round of $rounds: $kernel, $variant" >&2
            if [ "$variant" = native ]; then
                figures=$("$work/measure" 5 "$work/$kernel-native") # some take milliseconds
            else
                figures=$(LD_LIBRARY_PATH=$B/lib/tsan REDFLAG_OPTIONS=$(options "$variant") timeout "$limit" "$work/measure" 1 "$work/$kernel") ||
                    continue
            fi
            echo "$kernel $variant $figures" >>"$work/results"
        done
    done
    round=$((round + 1))
done

# table BASE TITLE: the least processor time of each, divided by that of the base
table() {
    echo "### $2"
    echo
    awk -v base="$1" -v order="$variants" -v kernels="$kernels" '
        { key = $1 " " $2; if (!(key in least) || $4 < least[key]) least[key] = $4 }
        END {
            count = split(order, variant, " "); rows = split(kernels, kernel, " ")
            printf "| Program |"; for (v = 1; v <= count; v++) if (variant[v] != base) printf " %s |", variant[v]
            printf "\n|---|"; for (v = 1; v <= count; v++) if (variant[v] != base) printf "---:|"
            print ""
            for (k = 1; k <= rows; k++) {
                printf "| %s |", kernel[k]
                for (v = 1; v <= count; v++) {
                    if (variant[v] == base) continue
                    below = least[kernel[k] " " base]
                    ratio = below > 0 ? least[kernel[k] " " variant[v]] / below : 0
                    if (ratio > 0) { sum[v] += log(ratio); n[v]++; printf " %.2f |", ratio } else printf " - |"
                }
                print ""
            }
            printf "| geometric mean |"
            for (v = 1; v <= count; v++) if (variant[v] != base) printf " %.2f |", n[v] ? exp(sum[v] / n[v]) : 0
            print ""
        }' "$work/results"
    echo
}

table native "Processor time, native = 1"
table cas "Processor time, cas = 1"

echo "### Transitions"
echo
echo "| Program | | not escaped | pure | local | fence | first | single | to Shared | multiple | in parts |"
echo "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
for kernel in $kernels; do
    for variant in fib fib+esc; do
        LD_LIBRARY_PATH=$B/lib/tsan REDFLAG_OPTIONS=$(options $variant):stats=1 timeout "$limit" "$work/$kernel" 2>"$work/stats" >/dev/null ||
            continue
        sed -n 's/^redflag: statistics: [a-zA-Z, ()]*: \([0-9]*\) \([0-9.]*\)%$/\1 \2/p' "$work/stats" |
            awk -v name="$kernel" -v variant=$variant '{ row = row sprintf(" %d (%.4g%%) |", $1, $2) } END { print "| " name " | " variant " |" row }'
    done
done
