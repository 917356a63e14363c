#!/usr/bin/env bash
# go.sh: kernels in Go under our detector and under the one that comes with Go, in one run. Milliseconds of processor time, user and
# system, the least of ROUNDS (5); rounds of the three programs alternate, so that a busy machine is busy for all of them.
# The last line is the geometric mean of how much faster ours is than the bundled one.
set -euo pipefail
cd "$(dirname "$0")/.."
B=${B:-build}
ROUNDS=${ROUNDS:-5}
SCALE=${SCALE:-2}
redflag=$PWD/$B/redflag
work=$PWD/$B/bench/go
mkdir -p "$work"
export GO111MODULE=off GOFLAGS='' GOCACHE=${GOCACHE:-$work/cache} GORACE=atexit_sleep_ms=0
unset REDFLAG_OPTIONS GOMAXPROCS
go build -o "$work/plain" bench/go/main.go
go build -race -o "$work/bundled" bench/go/main.go
"$redflag" go build -o "$work/ours" bench/go/main.go

for kernel in matmul sort mutex atomics spawn http; do
    for ((round = 0; round < ROUNDS; round++)); do
        for program in plain bundled ours; do
            echo "$kernel $program $(timeout 300 "$work/$program" "$kernel" "$SCALE")"
        done
    done
done | awk '
{
    if (!(($1, $2) in least) || $3 < least[$1, $2])
        least[$1, $2] = $3
    if (!($1 in seen)) {
        seen[$1] = 1
        order[++kernels] = $1
    }
}
END {
    printf "%-8s %9s %9s %9s %15s %12s %14s\n", "kernel", "plain", "bundled", "ours", "bundled/plain", "ours/plain", "bundled/ours"
    for (i = 1; i <= kernels; i++) {
        k = order[i]
        p = least[k, "plain"]; b = least[k, "bundled"]; o = least[k, "ours"]
        printf "%-8s %9.1f %9.1f %9.1f %14.1fx %11.1fx %13.2fx\n", k, p, b, o, b / p, o / p, b / o
        sum += log(b / o)
    }
    printf "%-8s %75.2fx\n", "mean", exp(sum / kernels)
}'
