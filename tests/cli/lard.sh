#!/usr/bin/env bash
# The interface for runtimes of languages: what Figure 4.1 shows, what lardvm's programs do under the runtime, and the tables 4.2 and 4.3
# over their recordings: LARD agrees with the language itself, and each thing that a runtime does not tell does harm somewhere.
set -eu
redflag=${REDFLAG:?}
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC

fail() {
    echo "lard: $1" >&2
    exit 1
}

# status EXPECTED COMMAND...
status() {
    right=$1 got=0
    shift
    "$@" >out 2>err </dev/null || got=$?
    [ "$got" -eq "$right" ] || fail "'$*' ended with $got instead of $right: $(cat out err)"
}

# said TEXT
said() {
    grep -qF -- "$1" out err || fail "'$1' is missing: $(cat out err)"
}

# row VIEW: its six numbers, from the second table
row() {
    awk -v view="$1" '$1 == "view" { there = 1 } there && $1 == view { print $2, $3, $4, $5, $6, $7 }' table
}

compare() {
    got=0
    "$redflag" compare --lard "$@" >table 2>err || got=$?
    [ "$got" -eq 0 ] || [ "$got" -eq 66 ] || fail "compare --lard $*: status $got: $(cat err)"
}

# ---- Figure 4.1: who looks in the wrong way makes a race up (f), misses one (m), or neither (-) ----
# figure NAME AllMem AllSync NoClear NoCopy
figure() {
    "$redflag" cc -g -I"$root" "$root/tests/programs/embed-figure-$1.c" -o figure
    "$redflag" record -q -o figure.rft ./figure
    compare figure.rft
    name=$1
    shift
    set -- LARD - AllMem "$1" AllSync "$2" NoClear "$3" NoCopy "$4" NoIdentity -
    while [ $# -gt 0 ]; do
        read -r _ _ false _ missed _ <<<"$(row "$1")"
        case $2 in
        -) [ "$false $missed" = "0 0" ] || fail "figure $name: $1 has $false false and $missed missed accesses, not none" ;;
        f) [ "$((false > 0 && missed == 0))" = 1 ] || fail "figure $name: $1 should make races up: $false false, $missed missed" ;;
        m) [ "$((missed > 0 && false == 0))" = 1 ] || fail "figure $name: $1 should miss races: $false false, $missed missed" ;;
        x) [ "$missed" -gt 0 ] || [ "$false" -gt 0 ] || fail "figure $name: $1 should be wrong" ;;
        esac
        shift 2
    done
}
# Online, every detector that goes by order finds the race that is there, and no other.
# online NAME STATUS
online() {
    for detector in fasttrack generic djit goldilocks acculock multilock multirace; do
        status "$2" "$redflag" run -d "$detector" ./"$1"
    done
}
figure access f - - -
online figure 0
figure sync x m - -
online figure 66
figure reuse - - f -
online figure 0
figure move x - f m
online figure 66

# ---- synchronisation of the system that no pthreads show: it is recorded, and orders nothing but AllSync ----
cat >unseen.c <<'C'
#include "tests/programs/order.h"
#include <redflag.h>
long n, m;
static struct redflag_clock *clock_of_system;
static void *first(void *unused)
{
    n++, m++;
    redflag_system_clock_add(clock_of_system);
    redflag_system_release(&n);
    reach(1);
    return unused;
}
static void *second(void *unused)
{
    await(1);
#ifdef CLOCK
    redflag_system_clock_write(clock_of_system);
#else
    redflag_system_acquire(&n);
#endif
    n++, m++;
    return unused;
}
int main(void)
{
    clock_of_system = redflag_clock_new();
    run_both(first, second);
    return 0;
}
C
for way in -DCLOCK -DOBJECT; do
    "$redflag" cc -g -I"$root" $way unseen.c -o unseen
    status 66 ./unseen
    "$redflag" record -q -o unseen.rft ./unseen
    compare unseen.rft
    [ "$(row LARD)" = "4 1 0 0 0 0" ] || fail "unseen $way: $(cat table)"
    [ "$(row AllSync)" = "0 0 0 0 4 1" ] || fail "unseen $way: $(cat table)"
done

# ---- the machine ----
flags="-O1 -g -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes"
# shellcheck disable=SC2086
"$redflag" cc $flags "$root"/examples/lardvm/*.c -o lardvm || fail "lardvm does not build"
# shellcheck disable=SC2086
clang $flags -I"$root/include" "$root"/examples/lardvm/*.c -o lardvm-alone -lpthread || fail "lardvm does not build without the runtime"

status 2 ./lardvm
said 'no program is named'
status 2 ./lardvm nothing.lard
said 'nothing.lard: cannot be read'
printf 'fn main() {\n    var x = ;\n}\n' >bad.lard
status 2 ./lardvm bad.lard
said 'bad.lard:2: an expression is expected'
printf 'fn main() {\n    var a = array(3);\n    a[3] = 1;\n}\n' >bad.lard
status 2 ./lardvm bad.lard
said 'bad.lard:3: there is no such item: the array has 3'

harm=
# add VIEW: notes whether it made races up, or missed some
add() {
    read -r _ _ false _ missed _ <<<"$(row "$1")"
    [ "$false" -eq 0 ] || harm="$harm $1-false"
    [ "$missed" -eq 0 ] || harm="$harm $1-missed"
}

for path in "$root"/examples/lardvm/programs/*.lard; do
    name=$(basename "$path" .lard)
    read -r _ _ verdict _ prints more < <(sed -n 1p "$path" | tr -d ,)
    expected=0
    [ "$verdict" = race ] && expected=66
    for gc in ms ss; do
        # shellcheck disable=SC2206
        run=(--gc "$gc" --heap 8192 ${more#with} "$path")
        status 0 timeout 60 ./lardvm-alone "${run[@]}"
        [ "$(cat out)" = "$prints" ] || fail "$name ($gc), alone, printed '$(cat out)', not '$prints'"
        status "$expected" timeout 60 ./lardvm "${run[@]}"
        [ "$(cat out)" = "$prints" ] || fail "$name ($gc) printed '$(cat out)', not '$prints'"
        if [ "$expected" = 66 ]; then
            said "$name.lard:"
        fi
        # As the language sees it: no false race, and none missed, with locks told as locks and as clocks.
        for how in "" --clocks; do
            [ -z "$how" ] || [ "$gc" = ss ] || continue
            # shellcheck disable=SC2086
            status 0 timeout 60 "$redflag" record -q -o told.rft ./lardvm $how --language told.std "${run[@]}"
            compare --language told.std told.rft
            grep -qF "own trace: 0 accesses in 0 places are false, 0 in 0 are missed" table || fail "$name ($gc $how): $(cat table)"
            reported=$(awk '$1 == "language" { print $2 }' table)
            [ "$verdict" = race ] || [ "$reported" -eq 0 ] || fail "$name ($gc): the language's trace has races"
            [ "$verdict" = none ] || [ "$reported" -gt 0 ] || fail "$name ($gc): the language's trace has no race"
        done
        status 0 timeout 60 "$redflag" record -q -o run.rft ./lardvm "${run[@]}"
        compare run.rft
        [ "$(row LARD | cut -d' ' -f3-)" = "0 0 0 0" ] || fail "LARD is not its own measure: $(cat table)"
        for view in AllMem AllSync NoClear NoCopy NoIdentity Naive; do
            add "$view"
        done
    done
done
# Other detectors under the machine: locks and objects that move, threads that wander, volatile fields.
for detector in djit acculock goldilocks; do
    for name in moved:66 counter:0 migrate:0 volatile:0; do
        status "${name#*:}" timeout 60 "$redflag" run -d "$detector" ./lardvm --gc ss --heap 8192 --wander \
            "$root/examples/lardvm/programs/${name%:*}.lard"
    done
done

for wanted in AllMem-false AllSync-missed NoClear-false NoCopy-missed NoIdentity-false NoIdentity-missed Naive-missed; do
    case " $harm " in
    *" $wanted "*) ;;
    *) fail "$wanted is seen in no program:$harm" ;;
    esac
done

# ---- the command ----
compare -f json run.rft
for text in '"views": [' '"name": "NoIdentity"' '"false": {' '"system_events": '; do
    grep -qF "$text" table || fail "json: '$text' is missing: $(cat table)"
done
compare -f md run.rft
grep -qF '| NoCopy ' table || fail "md: $(cat table)"
compare -d djit run.rft
grep -qF 'under djit' table || fail "$(cat table)"
status 2 "$redflag" compare --lard -d djit,fasttrack run.rft
said 'under one detector'
status 2 "$redflag" compare --lard -
said 'must be a file'
status 2 "$redflag" compare --language told.std run.rft
said '--language goes with --lard'
status 2 "$redflag" analyze --lard run.rft
said "unknown option '--lard'"
status 2 "$redflag" compare --lard nothing.rft
said 'nothing.rft'
head -c 2000 run.rft >cut.rft
status 3 "$redflag" compare --lard cut.rft
said 'truncated'
echo "lard: figures, programs and tables are as they should be"
