#!/usr/bin/env bash
# What each detector that runs online costs: the small kernels, as a Markdown table. User seconds, the least of ROUNDS (2), over those of
# the program without instrumentation; and instructions, which a busy machine does not change, over those of the empty hooks (`none`),
# where the processor counts them.
#   KERNELS="sort hash" DETECTORS="none fasttrack pacer@0.01" B=build bench/detectors.sh         NAME@RATE: pacer at that rate
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
B=${B:-$top/build}
case $B in /*) ;; *) B=$top/$B ;; esac
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
kernels=${KERNELS:-matmul sort hash queue tree bytes}
detectors=${DETECTORS:-none fasttrack acculock multilock djit generic goldilocks pacer@0 pacer@0.01 pacer@0.03 pacer@0.1 pacer@1 literace eraser lockset}
limit=${LIMIT:-120}

for kernel in $kernels; do
    gcc -O2 -g -pthread -I"$top" "$top/bench/kernels/$kernel.c" -o "$scratch/$kernel.native" -lm
    gcc -fsanitize=thread -O2 -g -pthread -I"$top" "$top/bench/kernels/$kernel.c" -o "$scratch/$kernel" -lm
done

# cost VARIANT KERNEL: user seconds and instructions, or nothing if it takes too long
cost() {
    local variant=$1 program=$scratch/$2 options=exitcode=0:report_bugs=0
    case $variant in
    native) program=$program.native ;;
    *@*) options=$options:detector=${variant%@*}:rate=${variant#*@} ;;
    *) options=$options:detector=$variant ;;
    esac
    for ((round = 0; round < ${ROUNDS:-2}; round++)); do
        LD_LIBRARY_PATH=$B/lib/tsan REDFLAG_OPTIONS=$options timeout "$limit" \
            perf stat -x, -e instructions:u,user_time -o "$scratch/perf" "$program" >/dev/null 2>&1 || return 0
        awk -F, '/instructions/ { i = $1 } /user_time/ { t = $1 / 1e9 } END { print t, i }' "$scratch/perf"
    done | sort -g | head -n 1
}

{
    for kernel in $kernels; do
        for variant in native none $detectors; do
            echo "$kernel $variant $(cost "$variant" "$kernel")"
        done
    done
} | awk '
    !($2 in order) { order[$2] = ++count; name[count] = $2 }
    !($1 in kernel) { kernel[$1] = ++kernels; kernel_name[kernels] = $1 }
    { time[$1, $2] = $3; work[$1, $2] = $4 }
    END {
        printf "| Detector |"; for (k = 1; k <= kernels; k++) printf " %s |", kernel_name[k]; print " geometric mean | instructions / none |"
        printf "|---|"; for (k = 1; k <= kernels; k++) printf "---|"; print "---|---|"
        for (i = 1; i <= count; i++) {
            v = name[i]; sum = n = m = isum = 0; printf "| %s |", v
            for (k = 1; k <= kernels; k++) {
                x = kernel_name[k]
                if (time[x, v] == "") { printf " - |"; continue }
                r = time[x, v] / time[x, "native"]; printf " %.2f |", r; sum += log(r); n++
                if (work[x, v] > 0 && work[x, "none"] > 0) { isum += log(work[x, v] / work[x, "none"]); m++ }
            }
            print (n ? sprintf(" %.2f |", exp(sum / n)) : " - |") (m ? sprintf(" %.2f |", exp(isum / m)) : " - |")
        }
    }'
