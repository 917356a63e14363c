#!/usr/bin/env bash
# What PACER costs by rate, and what it did, as the Markdown tables of doc/pacer.md:
#   time and memory at r = 0, 1, 3, 10 and 100% beside native, empty hooks (`none`) and FastTrack, on programs of bench/run.sh;
#   effective rates, as in PACER's Table 1, and counts of operations, as in its Table 3, of the kernels in COUNTED. To count, a run looks at
#   every access, under one lock, so these are runs of their own, of PERCENT of the kernels' work.
# PROGRAMS, SCALE and ROUNDS are those of bench/run.sh, and smaller here: all of it takes some minutes.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
export B=${B:-$top/build}
case $B in /*) ;; *) B=$top/$B ;; esac
counted=${COUNTED:-queue hash}
export LIMIT=${LIMIT:-25} # seconds for a run; what takes longer is left out

pacer=
for rate in 0 0.01 0.03 0.1 1; do
    pacer="$pacer gcc+detector=pacer,rate=$rate"
done
PROGRAMS=${PROGRAMS:-pigz pbzip2 zstd xz x264 memcached redis kernels} SCALE=${SCALE:-10} ROUNDS=${ROUNDS:-1} \
    FIGURES=no VARIANTS="gcc+detector=none $pacer gcc-unchanged" "$top/bench/run.sh" |
    sed -e 's/gcc+detector=none/empty hooks/; s/gcc+detector=pacer,rate=/r = /g; s/gcc-unchanged/fasttrack/'

# value NAME: of a statistic of the last run
value() {
    sed -n "s/^redflag: $1: \\([0-9]*\\)\$/\\1/p" "$stats"
}

share() {
    awk -v part="$1" -v whole="$2" 'BEGIN { if (whole > 0) printf "%.2f%%", 100 * part / whole; else printf "-" }'
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
stats=$scratch/stats
names='sampling slow joins,sampling fast joins,non-sampling slow joins,non-sampling fast joins,sampling deep copies,sampling shallow copies,non-sampling deep copies,non-sampling shallow copies,sampling slow reads,sampling slow writes,non-sampling slow reads,non-sampling fast reads,non-sampling slow writes,non-sampling fast writes'
counts=
for kernel in $counted; do
    gcc -O2 -g -DKERNEL_PERCENT="${PERCENT:-5}" -fsanitize=thread -I"$top" -pthread -o "$scratch/kernel" "$top/bench/kernels/$kernel.c" -lm
    for rate in 0.01 0.03 0.1 1; do
        LD_LIBRARY_PATH=$B/lib/tsan REDFLAG_OPTIONS=detector=pacer:rate=$rate:stats=1:seed=1:report_bugs=0:exitcode=0 \
            timeout 40 "$scratch/kernel" >/dev/null 2>"$stats" || continue
        rates="${rates:-}| $kernel | $rate | $(share "$(value 'accesses sampled')" "$(value accesses)") | $(
            share "$(value 'synchronisations sampled')" "$(value synchronisations)"
        ) |
"
        row="| $kernel | $rate |"
        while IFS= read -r name; do
            row="$row $(value "$name") |"
        done < <(tr , '\n' <<<"$names")
        counts="$counts$row
"
    done
done
printf '\n| Kernel | Rate | Accesses sampled | Synchronisations sampled |\n|---|---|---:|---:|\n%s' "${rates:-}"
printf '\n| Kernel | Rate | %s |\n|---|---|%s\n%s' "${names//,/ | }" "$(tr , '\n' <<<"$names" | awk '{ printf "---:|" }')" "$counts"
