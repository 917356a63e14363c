#!/bin/sh
# redflag analyze and compare as a user meets them: exit statuses, bad input, both formats, pipes, several workers.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "analyze.sh: $*" >&2
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

# races and none
expect 66 'write-read on balance' analyze "$root/examples/bank.std"
grep -q 'first  event 17, thread bob, w at bank.c:25' out || fail "the first access is not as it should be"
grep -q 'second event 21, thread fees, r at bank.c:41' out || fail "the second access is not as it should be"
expect 0 'no race' analyze "$root/examples/weblech.std"
expect 66 'may happen under another schedule' analyze -d acculock "$root/examples/weblech.std"
expect 66 'goldilocks: 1 race' analyze -d all "$root/examples/bank.std"

# what a variable costs: a cell, and nothing else where one thread reads at a time; threads and locks are not its metadata
"$redflag" trace generate --length 200000 --variables 20000 --sharing 0 -o size.rft
for jobs in 1 2; do
    expect 0 '"bytes_per_variable": 15.000' analyze -d fasttrack -f json -j $jobs size.rft
    expect 0 '"bytes_per_variable": 24.000' analyze -d eraser -f json -j $jobs size.rft
done

# bad usage: one line, status 2
expect 2 "unknown detector 'nonsense'" analyze -d fasttrack,nonsense "$root/examples/bank.std"
one_line_of_errors
expect 2 "unknown option '--frobnicate'" analyze --frobnicate x
one_line_of_errors
expect 2 'no trace is named' analyze
expect 2 '--rate takes a number from 0 to 1' analyze --rate 2 x
expect 2 '--jobs takes a number' analyze --jobs 0 x
expect 2 '--pair takes two sites' analyze --pair a x
expect 2 'unknown format' analyze --format yaml x
expect 2 'one trace at a time' compare "$root/examples/bank.std" "$root/examples/weblech.std"

# unreadable input
expect 2 'No such file' analyze missing.std
one_line_of_errors
expect 2 'Is a directory' analyze .
printf 'T1|w(x)\nT1|jump(x)\n' >bad.std
expect 2 'bad.std:2: ' analyze bad.std
one_line_of_errors
printf 'T1|w(x)|a\n' >good.std
expect 2 'No such file' analyze good.std missing.std
grep -q 'good.std: 1 event' out || fail "the readable trace was not analysed"

# the formats agree, from files and pipes, with one worker and with several
"$redflag" trace generate --length 300000 --threads 6 --variables 20000 --race-rate 0.2 --seed 7 -o t.rft
"$redflag" trace convert -o t.std t.rft
names() { sed -e '1d' "$1"; }
for source in t.std t.rft; do
    for jobs in 1 2 3; do
        "$redflag" analyze -d fasttrack,acculock,goldilocks -j $jobs $source >$source.$jobs || [ $? -eq 66 ] || fail "$source"
        "$redflag" analyze -d fasttrack,acculock,goldilocks -j $jobs - <$source >pipe.1 || [ $? -eq 66 ] || fail "pipe"
        # shellcheck disable=SC2002 # a pipe is what is tested
        cat $source | "$redflag" analyze -d fasttrack,acculock,goldilocks -j $jobs - >pipe.2 || [ $? -eq 66 ] || fail "pipe"
        names $source.$jobs >a
        names pipe.1 >b
        names pipe.2 >c
        { cmp -s a b && cmp -s a c; } || fail "$source with $jobs workers: a pipe gives other results than the file"
        names t.std.1 | cmp -s - a || fail "$source with $jobs workers differs from t.std with one"
    done
done
grep -q "write-write on" t.std.1 || fail "the generated trace was to have races"

# every detector, random traces of all events, several workers: the same races, and the same operations counted
for seed in 1 2 3 4 5 6 7 8 9 10 11 12; do
    "$redflag" trace generate --shape random --length 400 --threads 6 --variables 40 --weight copy=0 --seed $seed -o random.std
    for jobs in 1 2 3; do
        "$redflag" analyze -d all --rate 0.3 --period 20 -j $jobs random.std >random.$jobs || [ $? -eq 66 ] || fail "random.std"
    done
    { cmp -s random.1 random.2 && cmp -s random.1 random.3; } || fail "seed $seed: workers disagree"
done
for jobs in 1 2 3; do
    "$redflag" analyze -d all --rate 0.3 -j $jobs t.rft >all.$jobs || [ $? -eq 66 ] || fail "t.rft"
done
{ cmp -s all.1 all.2 && cmp -s all.1 all.3; } || fail "workers disagree on t.rft: $(diff all.1 all.3 | head -5)"
for jobs in 1 3; do
    "$redflag" analyze -d fasttrack,djit,pacer --rate 0.1 --stats -j $jobs t.rft | grep -vE 'seconds|bytes' >stats.$jobs
done
cmp -s stats.1 stats.3 || fail "several workers count other operations: $(diff stats.1 stats.3)"

# detectors that can all be sharded, whose shares the decoder writes: until the first barrier, which comes late and goes over chunks
awk '{ print } NR > 150000 && NR % 5003 < 3 { print substr($0, 1, index($0, "|")) "bar(b)|1" }' t.std >late.std
"$redflag" trace generate --shape random --length 60000 --threads 6 --variables 40000 --weight copy=0,bar=0 --seed 4 -o all-but.rft
"$redflag" trace convert -o late.rft late.std
for trace in late.rft all-but.rft t.rft; do
    for jobs in 1 2 3; do
        "$redflag" analyze -d fasttrack,acculock,djit -j $jobs $trace >sharded.$jobs || [ $? -eq 66 ] || fail "$trace"
    done
    { cmp -s sharded.1 sharded.2 && cmp -s sharded.1 sharded.3; } || fail "$trace: workers disagree: $(diff sharded.1 sharded.3 | head -5)"
    grep -q 'thread T' sharded.1 || fail "$trace has no races"
done
dd if=t.rft of=cut.rft bs=1 count=$(($(wc -c <t.rft) / 2)) 2>dd.err
for jobs in 1 3; do
    expect 3 'a chunk is cut; 147456 events are good' analyze -j $jobs cut.rft
    cp out cut.$jobs
done
cmp -s cut.1 cut.3 || fail "workers disagree on a trace that is cut: $(diff cut.1 cut.3 | head -5)"

# a trace that moves objects, with several workers: histories go along
printf 'T1|fork(T2)|1\nT1|w(a)|2\nT1|copy(a,b)|3\nT2|w(b)|4\n' >moved.std
for jobs in 1 2 4; do
    expect 66 'first  event 2, thread T1, w at 2' analyze -j $jobs moved.std
    # shellcheck disable=SC2002
    cat moved.std | "$redflag" analyze -j $jobs - >out || [ $? -eq 66 ] || fail "moved.std from a pipe"
    grep -q 'write-write on b' out || fail "moved.std from a pipe: $(cat out)"
done

# the first access is that part of its transaction which did what the detector says
printf 'T1|commit(r:y;w:x)|1\nT2|w(x)|2\n' >commit.std
expect 66 'first  event 1, thread T1, w in commit at 1' analyze commit.std

# truncated: what is good is analysed, which is said, with status 3, races or not
size=$(wc -c <t.rft)
head -c $((size - 20)) t.rft >cut.rft
expect 3 'cut.rft: offset' analyze cut.rft
grep -q 'truncated: only the part before the damage' out || fail "the report does not say that it is a part"
grep -q 'write' out || fail "the races of the good part are missing"
expect 3 '"truncated": true' analyze --format json cut.rft
: >empty.rft
expect 3 'empty.rft' analyze empty.rft

# output: to a file, to a full disk
expect 66 '' analyze -o report.json --format json "$root/examples/bank.std"
grep -q '"variable": "balance"' report.json || fail "-o wrote something else"
if [ -w /dev/full ]; then
    expect 2 'cannot write the report' analyze -o /dev/full "$root/examples/bank.std"
    one_line_of_errors
fi
expect 2 'No such file' analyze -o no/such/dir "$root/examples/bank.std"

# a limit on the size of files: a pipe cannot be copied, so only the site of the first access is missing
# shellcheck disable=SC2002 # a pipe is what is tested
cat "$root/examples/bank.std" | (ulimit -f 0 && "$redflag" analyze - | cat) | grep -q 'write-read on balance' ||
    fail "a limit on the size of files ends the run"

# compare: every detector has a row, in each form
expect 66 'Racy variables that the row reports' compare "$root/examples/bank.std"
for detector in generic djit fasttrack lockset eraser racetrack multirace hybrid acculock multilock goldilocks pacer literace \
    litehb alias; do
    grep -q "^$detector " out || fail "compare has no row for $detector"
done
expect 66 '| fasttrack' compare --format md "$root/examples/bank.std"
expect 66 '"not_reported_by"' compare --format json "$root/examples/bank.std"

# litehb: the pair, in its order
printf 'T1|w(x)|src/a.c:1\nT2|w(x)|src/b.c:2\n' >pair.std
expect 66 'write-write on x' analyze -d litehb --pair a.c:1,b.c:2 pair.std
expect 0 'no race' analyze -d litehb --pair b.c:2,a.c:1 pair.std
expect 66 'write-write on x' analyze -d litehb --full --pair src/a.c:1,src/b.c:2 pair.std
expect 0 'no race' analyze -d litehb --pair .c:1,b.c:2 pair.std # the end of a path, not of a name
expect 2 '--pair SITE1,SITE2' analyze -d litehb pair.std

# an access that lies across what two workers share out is one race
for i in 1 2 3 4 5 6 7 8; do
    printf 'T1|w(0x%xfff8:16)|a\nT2|w(0x%xfff8:16)|b\n' $i $i
done >across.std
for jobs in 1 2 3; do
    expect 66 'fasttrack: 8 races' analyze -j $jobs across.std
    grep -q 'write-write on 0x3fff8 (16 bytes)' out || fail "$jobs workers tear a race in two: $(cat out)"
done

# help
expect 0 'usage: redflag analyze' analyze --help
expect 0 'usage: redflag compare' compare --help
