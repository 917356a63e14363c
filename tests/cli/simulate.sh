#!/bin/sh
# redflag simulate as a user meets it: output, settings, bad input, both formats, pipes, plots.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "simulate.sh: $*" >&2
    exit 1
}

# expect STATUS TEXT ARGUMENTS...: redflag must end with the status and print the text, on either stream
expect() {
    status=$1 text=$2 got=0
    shift 2
    "$redflag" "$@" >out 2>err </dev/null || got=$?
    [ "$got" -eq "$status" ] || fail "redflag $*: status $got, not $status: $(cat err)"
    [ -z "$text" ] || grep -qF -- "$text" out err || fail "redflag $*: '$text' is missing: $(cat out err)"
}

one_line_of_errors() {
    [ "$(wc -l <err)" -eq 1 ] || fail "one line on standard error was expected: $(cat err)"
}

# number KEY: the first number of that name in the JSON
number() {
    sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" out | head -n 1
}

"$redflag" trace generate --length 60000 --threads 4 --variables 3000 --race-rate 0.2 --seed 3 -o t.rft
"$redflag" trace convert -o t.std t.rft

# text; races do not change the status
expect 0 'slowdown' simulate t.rft
grep -q 'by permission' out || fail "the stages are missing"
expect 0 '' simulate "$root/examples/bank.std"
grep -q 'races  *[1-9]' out || fail "bank.std has races"

# JSON: what was promised is there and adds up
expect 0 '' simulate --format json t.rft
for key in cycles baseline_cycles slowdown permission hardware software evictions; do
    [ -n "$(number $key)" ] || fail "the JSON has no $key"
done
python=$(command -v python3 || true)
[ -z "$python" ] || "$python" - out <<'END' || fail "the JSON is wrong"
import json, sys
with open(sys.argv[1]) as f:
    r = json.load(f)
checks = r["checks"]
assert checks["permission"] + checks["hardware"] + checks["software"] + checks["untracked"] == r["accesses"]
assert abs(r["cycles"] / r["baseline_cycles"] - r["slowdown"]) < 0.001
assert r["slowdown"] >= 1 and checks["software"] > 0 and r["racy_bytes"] > 0
END
cp out first.json

# the formats agree, from files and pipes; and so do two runs
expect 0 '' simulate --format json t.std
grep -v '"trace"' out >a
grep -v '"trace"' first.json >b
cmp -s a b || fail "text and binary differ"
# shellcheck disable=SC2002 # a pipe is what is tested
cat t.rft | "$redflag" simulate --format json - | grep -v '"trace"' >c
cmp -s b c || fail "a pipe differs from the file"

# the same racy bytes as generic finds, on a small machine, too
expect 0 '' simulate --format json -s l1_bytes=1K -s l2_bytes=2K -s llc_bytes=16K -s clock_bits=3 --cores 2 t.rft
[ "$(number racy_bytes)" = "$(sed -n 's/^ *"racy_bytes": \([0-9]*\).*/\1/p' first.json)" ] || fail "a small machine finds other races"
[ "$(number evictions)" -gt 1000 ] || fail "small caches were to evict metadata"
"$redflag" analyze -d generic --format json t.rft >generic.json || [ $? -eq 66 ] || fail "generic"
[ "$(number racy_bytes)" -eq $(($(grep -c '"kind"' generic.json) * 8)) ] || fail "generic finds races on other bytes"

# sites and variables
expect 0 'extra cycles' simulate --by site --top 3 t.rft
grep -q '^site' out || fail "no table of sites"
[ "$(sed -n '/^site/,$p' out | wc -l)" -eq 5 ] || fail "three sites and how many more were expected: $(cat out)"
expect 0 '' simulate --by variable --by site --format json t.rft
grep -q '"variables": \[' out || fail "no variables in the JSON"

# settings
expect 0 'llc_bytes' simulate --print-config
cp out config.txt
expect 0 '' simulate -c config.txt --format json t.rft
cmp -s out first.json || fail "the printed settings are not the default"
printf 'cores = 2 # few\n\nflush = eager\n' >few.txt
expect 0 '2 cores' simulate -c few.txt t.rft
printf 'cores = 2\nwidth = 3\n' >bad.txt
expect 2 "bad.txt:2: there is no setting 'width'" simulate -c bad.txt t.rft
one_line_of_errors
expect 2 'cores takes a number from 1 to 64' simulate --cores 0 t.rft
one_line_of_errors
expect 2 'line_bytes must be a power of two' simulate -s line_bytes=48 t.rft
one_line_of_errors
expect 2 'No such file' simulate -c missing.txt t.rft
one_line_of_errors

# bad usage, unreadable input
expect 2 'no trace is named' simulate
expect 2 "unknown option '--frobnicate'" simulate --frobnicate t.rft
expect 2 "unknown format 'yaml'" simulate --format yaml t.rft
expect 2 "unknown format 'svg'" simulate --format svg t.rft
expect 2 'one trace at a time' simulate t.rft t.std
expect 2 '--by takes site or variable' simulate --by name t.rft
expect 2 'No such file' simulate missing.rft
one_line_of_errors
printf 'T1|w(x)\nT1|jump(x)\n' >bad.std
expect 2 'bad.std:2: ' simulate bad.std
one_line_of_errors
expect 2 'is both input and output' simulate -o t.rft t.rft
size=$(wc -c <t.rft)
head -c $((size / 2)) t.rft >cut.rft
expect 3 'slowdown' simulate cut.rft

# a sweep
expect 0 '<svg' simulate --sweep --sweep-cores 2,4 --sweep-sizes 512K,1M t.rft
[ "$(grep -c '<circle' out)" -eq 4 ] || fail "four marks were expected"
expect 0 '512K' simulate --sweep --sweep-cores 2,4 --sweep-sizes 512K,1M --format text t.rft
expect 0 '"llc_bytes": 524288' simulate --sweep --sweep-cores 2 --sweep-sizes 512K --format json t.rft
expect 2 'llc_bytes' simulate --sweep --sweep-sizes 3K t.rft
one_line_of_errors
expect 2 '--sweep-cores takes' simulate --sweep-cores 1,,2 t.rft
expect 2 'cores takes a number' simulate --sweep-cores 65 t.rft
