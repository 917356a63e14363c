#!/usr/bin/env bash
# How often PACER reports each of ten known races, by rate (PACER, Figures 3 to 5): seeded runs of bench/pacer_races.c.
#   RUNS=300 RATES="0.01 0.03 0.1" B=build bench/pacer.sh >results      prints RATE RACE FOUND RUNS, a line each; all rates at once
#   DETECTOR=literace CALLS=100000                                     another one; functions that were called before their race
#   bench/pacer.sh --table <results                                    the table of doc/pacer.md
#   bench/pacer.sh --plot <results >doc/pacer.svg                      its plot
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
B=${B:-$top/build}
case $B in /*) ;; *) B=$top/$B ;; esac

# The interval of Wilson for a share of n runs, 95%.
wilson='
function wilson(k, n,   z, p, d) {
    z = 1.96; p = k / n; d = 1 + z * z / n
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / d
    centre = (p + z * z / (2 * n)) / d
    low = centre - half < 0 ? 0 : centre - half; high = centre + half > 1 ? 1 : centre + half
}'

table() {
    sort -g | awk "$wilson"'
    function row() {
        if (rate == "") return
        wilson(found, runs); printf "| %s | %d | %.4f | %.4f to %.4f | %d of %d |\n", rate, runs, found / runs, low, high, inside, races
    }
    BEGIN { print "| Rate | Runs x races | Found | 95% interval | Races whose own interval holds the rate |\n|---|---|---|---|---|" }
    $1 != rate { row(); rate = $1; found = runs = inside = races = 0 }
    { found += $3; runs += $4; races++; wilson($3, $4); inside += low <= $1 + 1e-9 && high >= $1 - 1e-9 }
    END { row() }'
}

plot() {
    awk "$wilson"'
    function x(r) { return 60 + 500 * log(r / 0.005) / log(200) }
    function y(r) { return 360 - 320 * (r <= 0.002 ? 0 : log(r / 0.002) / log(500)) }
    BEGIN {
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"600\" height=\"410\" font-family=\"sans-serif\" font-size=\"12\">"
        print "<rect width=\"600\" height=\"410\" fill=\"white\"/>"
        printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#999\" stroke-dasharray=\"4\"/>\n", x(0.005), y(0.005), x(1), y(1)
        n = split("0.01 0.03 0.1 0.25 0.5 1", ticks, " ")
        for (i = 1; i <= n; i++) {
            printf "<text x=\"%.1f\" y=\"378\" text-anchor=\"middle\">%s%%</text>\n", x(ticks[i]), ticks[i] * 100
            printf "<text x=\"54\" y=\"%.1f\" text-anchor=\"end\">%s%%</text>\n", y(ticks[i]) + 4, ticks[i] * 100
        }
        print "<path d=\"M60 40V360H560\" stroke=\"black\" fill=\"none\"/>"
        print "<text x=\"310\" y=\"400\" text-anchor=\"middle\">sampling rate</text>"
        print "<text x=\"14\" y=\"200\" text-anchor=\"middle\" transform=\"rotate(-90 14 200)\">share of runs that report the race</text>"
    }
    {
        wilson($3, $4); at = x($1) + ($2 - 4.5) * 2.2
        printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#7aa\"/><circle cx=\"%.1f\" cy=\"%.1f\" r=\"2\" fill=\"#055\"/>\n", \
            at, y(low), at, y(high), at, y($3 / $4)
    }
    END { print "</svg>" }'
}

case ${1:-} in
--table) table; exit ;;
--plot) plot; exit ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$B/redflag" cc -g -O1 -pthread -I "$top" "$top/bench/pacer_races.c" -o "$scratch/races"
runs=${RUNS:-200}

# seed RATE NUMBER: a hash of both, so that neighbours, and the same run at another rate, have nothing in common
seed() {
    local digits=${1/./}000000
    local z=$(($2 * 0x9e3779b97f4a7c1 + 10#${digits:0:6} * 0x61c8864680b583e))
    z=$(((z ^ (z >> 29 & 0x7ffffffff)) * 0x3f58476d1ce4e5b))
    echo $(((z ^ (z >> 32 & 0xffffffff)) & 0x7fffffff))
}

# at RATE: its lines
at() {
    for ((run = 1; run <= runs; run++)); do
        REDFLAG_OPTIONS=detector=${DETECTOR:-pacer}:rate=$1:seed=$(seed "$1" "$run"):suppress_equal_addresses=0 "$scratch/races" "${CALLS:-0}" 2>&1 |
            sed -n 's/^    #0 write_\([0-9]\) .*/\1/p' | sort -u
    done | awk -v rate="$1" -v runs="$runs" '{ found[$1]++ } END { for (i = 0; i < 10; i++) print rate, i, found[i] + 0, runs }'
}

rates=${RATES:-0.01 0.03 0.1 0.25 0.5}
for rate in $rates; do
    at "$rate" >"$scratch/at.$rate" &
done
wait
for rate in $rates; do
    cat "$scratch/at.$rate"
done
