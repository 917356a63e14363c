#!/bin/sh
# redflag trace as a user meets it: outputs that cannot be written, or are the input; pipes that close; odd numbers.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "trace.sh: $*" >&2
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

# a full disk ends everything at once: nobody waits for so many events
for to in std rft; do
    for shape in program random; do
        expect 2 'No space left' trace generate --shape $shape --length 1000000000000000 --to $to -o /dev/full
        one_line_of_errors
    done
done
"$redflag" trace generate --length 300000 -o t.rft
"$redflag" trace generate --length 2000 >sites.std
"$redflag" trace generate --length 2000 --numeric-sites >numeric.std
! grep -qv '|[1-9][0-9]*$' numeric.std || fail "--numeric-sites: a site is not a number"
sed 's/|[^|]*$//' sites.std >a
sed 's/|[^|]*$//' numeric.std | cmp -s - a || fail "--numeric-sites changes more than the sites' names"
expect 2 'No space left' trace convert t.rft -o /dev/full
one_line_of_errors
for command in '--help' 'trace --help' 'trace info t.rft' 'trace info --format json t.rft' 'trace head t.rft' 'analyze t.rft'; do
    got=0
    # shellcheck disable=SC2086
    "$redflag" $command >/dev/full 2>err || got=$?
    [ "$got" -eq 2 ] || fail "redflag $command to a full disk: status $got"
    one_line_of_errors
done

# bad input: what is before it is converted to a whole trace, which is said
printf 'T1|w(x)|a\nT1|acq(l)|b\nT2|bogus(x)|c\nT2|w(x)|d\n' >bad.std
expect 2 "bad.std:3: unknown operation 'bogus'; good.rft has the 2 events before it" trace convert bad.std -o good.rft
one_line_of_errors
expect 0 'events     2,' trace info good.rft
expect 2 'standard output has the 2 events before it' trace convert bad.std
one_line_of_errors
[ "$(wc -l <out)" -eq 2 ] || fail "not the two good lines"
head -c $(($(wc -c <t.rft) * 2 / 3)) t.rft >cut.rft
expect 3 ' events are good; good.rft has the ' trace convert cut.rft -o good.rft
one_line_of_errors
good=$(sed -n 's/.*has the \([1-9][0-9]*\) events before it$/\1/p' err)
expect 0 "events     $good," trace info good.rft
expect 2 'unknown operation' trace head bad.std
! grep -q 'before it' err || fail "head says what it printed"

# an input is not overwritten, by whatever name
cp "$root/examples/bank.std" bank.std
cp bank.std before.std
ln -s bank.std soft.std
ln bank.std hard.std
for out in bank.std ./bank.std soft.std hard.std; do
    expect 2 'both input and output' trace convert bank.std -o $out
    one_line_of_errors
    expect 2 'both input and output' analyze "$root/examples/weblech.std" bank.std -o $out
    one_line_of_errors
    "$redflag" trace convert - -o $out <bank.std 2>err && fail "standard input was overwritten"
done
# shellcheck disable=SC2094
"$redflag" trace convert bank.std >>bank.std 2>err && fail "the output was appended to the input"
cmp bank.std before.std
expect 2 'No such file' trace convert bank.std -o missing/x.rft
one_line_of_errors
expect 2 'No such file' trace convert missing.std -o bank.std
cmp bank.std before.std

# whoever has read enough may go
[ "$("$redflag" trace convert t.rft 2>err | head -n 1 | wc -l)" -eq 1 ] || fail "the first line did not come"
[ ! -s err ] || fail "a closed pipe was complained about: $(cat err)"

# odd numbers are well-formed as well
for shape in program random; do
    for length in 0 1 2 1000; do
        for threads in 1 2 100; do
            "$redflag" trace generate --shape $shape --length $length --threads $threads --locks 0 --variables 0 --sites 0 -o o.rft
            expect 0 '' trace check o.rft
        done
    done
done

# as many events as asked for, if the forks and joins leave room for them
for length in 14 15 16 1000 1001 30000; do
    [ "$("$redflag" trace generate --length $length | wc -l)" -eq $length ] || fail "not $length events"
done

# what RAPID writes
printf '%s\n' 'T0|fork(T1)|1' 'T0|begin|2' 'T0|w(V123.0x4[5])|345' 'T0|end|3' 'T1|begin(7)|2' 'T1|acq(L5)|12' \
    'T1|r(V123.0x4[5])|346' 'T1|rel(L5)|13' 'T1|end(7)|3' 'T0|join(T1)|9' >rapid.std
expect 66 'rapid.std: 6 events' analyze rapid.std
grep -q 'second event 7, thread T1, r at 346' out || fail "the lines of a RAPID trace are not counted: $(cat out)"
