#!/bin/sh
# What AccuLock and MultiLock-HB cost beside FastTrack, as the Markdown table of doc/detectors.md: processor time over that of the program
# without instrumentation, and over each other. PROGRAMS, SCALE, PERCENT and ROUNDS are those of bench/run.sh, and smaller here: all of it
# takes some minutes. What takes more than LIMIT seconds is left out.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
B=${B:-$top/build}
case $B in /*) ;; *) B=$top/$B ;; esac
export B
SCALE=${SCALE:-10} PERCENT=${PERCENT:-10} ROUNDS=${ROUNDS:-2} LIMIT=${LIMIT:-20} FIGURES=no \
    VARIANTS="gcc-unchanged gcc+detector=acculock gcc+detector=multilock" "$top/bench/run.sh" >/dev/null

awk '
    {
        sub(/@.*/, "", $1); sub(/gcc[+]detector=/, "", $2); sub(/gcc-unchanged/, "fasttrack", $2)
        if (!($1 in known)) { known[$1] = 1; program[++programs] = $1 }
        if (!(($1, $2) in cpu) || $4 < cpu[$1, $2]) cpu[$1, $2] = $4
    }
    function column(i, value, base) {
        if (value > 0 && base > 0) { sum[i] += log(value / base); n[i]++; return sprintf(" %.2fx |", value / base) }
        return " - |"
    }
    END {
        print "| Processor time | native, s | `fasttrack` | `acculock` | `multilock` | `acculock` / `fasttrack` | `multilock` / `acculock` |"
        print "|---|---:|---:|---:|---:|---:|---:|"
        for (p = 1; p <= programs; p++) {
            x = program[p]; native = cpu[x, "native"]; fast = cpu[x, "fasttrack"]; accu = cpu[x, "acculock"]; multi = cpu[x, "multilock"]
            print "| " x " | " sprintf("%.2f", native) " |" column(1, fast, native) column(2, accu, native) column(3, multi, native) \
                column(4, accu, fast) column(5, multi, accu)
        }
        printf "| geometric mean | |"
        for (i = 1; i <= 5; i++) printf " %s |", n[i] ? sprintf("%.2fx", exp(sum[i] / n[i])) : "-"
        print ""
    }' "$B/bench/results"
