#!/bin/sh
# `redflag chase`: races that are there are found, with both stacks; others never. Waits are so long that the other thread comes, and end as
# soon as it has come: nothing here depends on how fast the machine is.
set -eu
redflag=${REDFLAG:?}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS

fail() {
    echo "chase.sh: $*" >&2
    exit 1
}

cp "$here/chase.c" scenes.c
line() {
    awk -v word="$1 $2" '/\/\*/ && index($0 " ", word " ") { print FILENAME ":" FNR; exit }' scenes.c
}
pair() {
    echo "$(line FIRST "$1"),$(line SECOND "$1")"
}

# chase STATUS SCENE [ROUNDS [ARGUMENT]]: with $options, in $app
chase() {
    want=$1 scene=$2
    shift 2
    status=0
    # shellcheck disable=SC2086
    timeout 120 "$redflag" chase --pair "$(pair "$scene")" --stats $options -- "$app" "$scene" "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || fail "$scene in $app with $options: status $status, not $want: $(cat err)"
    [ "$want" -ne 66 ] || grep -q 'data race' err || fail "$scene: no report: $(cat err)"
    [ "$want" -ne 0 ] || grep -q '^done' out || fail "$scene: the program did not end as it should"
    grep -q 'within the budget' err || fail "$scene: over the budget: $(cat err)"
}

patient='--delay 20s --max-overhead 100% --least 60min'
busy='--delay 1ms --max-overhead 100% --least 60min'
REDFLAG_CC=gcc "$redflag" cc -g -O1 -I"$root" -foptimize-sibling-calls -w -o gcc-app scenes.c -ldl
REDFLAG_CC=clang "$redflag" cc -g -O1 -I"$root" -w -o clang-app scenes.c -ldl

for app in ./gcc-app ./clang-app; do
    # found: one wait suffices
    options=$patient
    for scene in mixed tail heap; do
        chase 66 "$scene" 200
    done
    [ $app = ./clang-app ] || chase 66 ranges 200 # clang calls a function for copies
    chase 66 plain 200
    grep -A 3 'Write of size 4.* by thread' err | grep -q '#0 deeper.*scenes.c:[0-9]*' || fail "the second stack: $(cat err)"
    grep -A 4 'Write of size 4.* by thread' err | grep -q '#1 plain_second' || fail "the caller of the second: $(cat err)"
    grep -A 2 'Previous write' err | grep -q '#0 plain_first' || fail "the first stack: $(cat err)"
    grep -q "global 'shared' of size 4" err || fail "the variable: $(cat err)"
    # one site, of the two that the line has
    name=$("$redflag" sites --at "$(line FIRST same)" $app | awk -F '\t' '/write/ { print $4 }')
    status=0
    # shellcheck disable=SC2086
    "$redflag" chase --pair "$name,$name" $patient "$app" same >out 2>err || status=$?
    [ "$status" -eq 66 ] || fail "a site with itself: $status"
    # the other order is another pair
    status=0
    # shellcheck disable=SC2086
    "$redflag" chase --pair "$(line SECOND plain),$(line FIRST plain)" $patient "$app" plain >out 2>err || status=$?
    [ "$status" -eq 66 ] || fail "the other order: $status"
    # through the PLT
    options="$patient --no-patch-calls"
    chase 66 plain 200
    grep -q ' 0 taken out, [1-9][0-9]* not patched' err || fail "patched all the same: $(cat err)"
    chase 66 mixed 200

    # LiteHB and FullHB see the same race, and the locks
    for detector in litehb fullhb; do
        for scene in plain mixed ranges heap locked rwlock handover bytes; do
            [ $scene$app != ranges./clang-app ] || continue
            want=66
            case $scene in locked | rwlock | handover | bytes) want=0 ;; esac
            status=0
            "$redflag" chase -d $detector --pair "$(pair $scene)" "$app" $scene 30 >out 2>err || status=$?
            [ $status -eq $want ] || fail "$detector: $scene in $app: $status: $(cat err)"
        done
    done

    # never: there is no race
    options=$busy
    for scene in locked rwlock handover bytes forks; do
        chase 0 "$scene" 100
        grep -q ' [1-9][0-9]* waits, 0 collisions' err || fail "$scene: $(cat err)"
    done
    chase 0 signals 100
    chase 0 mappings
done

app=./gcc-app options='--max-overhead 0% --least 60min'
chase 0 plain 50
grep -q ' 0 waits' err || fail "waited without a budget: $(cat err)"

# without a build id; in a library; in one that is loaded later
REDFLAG_CC=gcc "$redflag" cc -g -O1 -I"$root" -w -Wl,--build-id=none -o nameless scenes.c -ldl
app=./nameless options=$patient
chase 66 plain 200
cat >plugin.c <<'END'
#include <unistd.h>
void work(int *p, int rounds)
{
    for (int i = 0; i < rounds; i++, usleep(500))
        *p = i;
}
END
REDFLAG_CC=gcc "$redflag" cc -g -O1 -fPIC -shared -o plugin.so plugin.c
status=0
# shellcheck disable=SC2086
"$redflag" chase --pair "$(line FIRST plain),plugin.c:5" --module ./plugin.so $patient ./gcc-app plugin 200 ./plugin.so >out 2>err || status=$?
[ "$status" -eq 66 ] || fail "a library that is loaded later: $status $(cat err)"
grep -q '#0 work .*plugin.c:5' err || fail "the library's frame: $(cat err)"

# reports go the usual ways
app=./gcc-app
# shellcheck disable=SC2086
"$redflag" chase --pair "$(pair plain)" $patient --format jsonl --output report.jsonl --exitcode 5 -- $app plain >out 2>err && status=0 || status=$?
[ "$status" -eq 5 ] || fail "--exitcode: $status"
"$redflag" sites --at "$(line SECOND plain)" $app | cut -f 4 >names
python3 - report.jsonl names <<'END' || fail "JSON: $(cat report.jsonl)"
import json, sys
reports = [r for r in map(json.loads, open(sys.argv[1])) if r.get("accesses")]
assert len(reports) == 1, reports
top = reports[0]["accesses"][0]["stack"][0]
assert top["build_id"] + "+" + top["offset"] in open(sys.argv[2]).read().split(), top
END
echo 'race:deeper' >suppressions
options="$patient --suppressions suppressions"
chase 0 plain 100

# nothing at all: all hooks of plain accesses are taken out
for app in ./gcc-app ./clang-app; do
    "$redflag" chase --no-pair --stats $app locked 10 >out 2>err || fail "--no-pair: $?"
    count=$(objdump -d --no-show-raw-insn -j .text $app | grep -cE '(call|jmp).*<__tsan_(func_|read|write|unaligned|volatile|vptr)')
    grep -q " 0 hooks at the first site, 0 at the second, $count taken out" err || fail "--no-pair: $count calls, but $(cat err)"
done

# what is wrong is said in one line, before the program starts
refused() {
    status=0
    "$redflag" chase "$@" >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "chase $*: status $status"
    [ "$(wc -l <err)" -eq 1 ] || fail "chase $*: $(cat err)"
    [ ! -s out ] || fail "chase $*: it ran"
}
refused
refused ./gcc-app
refused --pair scenes.c:1 ./gcc-app plain
refused --pair scenes.c:1,scenes.c:2 ./gcc-app plain
refused --pair "$(pair plain)" --delay 10 ./gcc-app plain
refused --pair "$(pair plain)" --delay=-1ms ./gcc-app plain
refused --pair "$(pair plain)" --max-overhead 101% ./gcc-app plain
refused --pair "$(pair plain)" --max-overhead x ./gcc-app plain
refused --pair "$(pair plain)" --seed x ./gcc-app plain
refused --pair "$(pair plain)" -d eraser ./gcc-app plain
refused --no-pair -d litehb ./gcc-app plain
refused --pair "$(pair plain)" --nothing ./gcc-app plain
refused --pair "$(pair plain)" --module ./none ./gcc-app plain
refused --pair "$(pair plain)" /bin/true
refused --pair "$(pair reads)" ./gcc-app reads
refused --pair "$(pair atomics)" ./gcc-app atomics

# Sites are changed in the text, but nothing can be written and executed while the program runs.
"$redflag" cc -g -O1 -I"$root" -pthread "$root/tests/programs/code-protected.c" -o protected
site=code-protected.c:$(grep -n 'looked++' "$root/tests/programs/code-protected.c" | cut -d: -f1)
"$redflag" chase --pair "$site,$site" --delay 1ms ./protected 2>err || fail "text that can be written: $(cat err)"
