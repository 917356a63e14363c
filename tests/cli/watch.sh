#!/bin/sh
# redflag watch: pairs from the store are chased, one a run, until the race is found; the program's status and output stay its own; a store
# that is out of reach costs nothing but a line, and what was found arrives later.
set -eu
redflag=${REDFLAG:?}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export REDFLAG_SPOOL="$dir/spool.jsonl" REDFLAG_STORE="$dir/store.db"
unset REDFLAG_OPTIONS TSAN_OPTIONS
fail() {
    echo "watch.sh: $*" >&2
    exit 1
}
cat >app.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int racy, safe;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused)
{
    for (int i = 0; i < 400; i++) {
        racy++; /* RACY */
        pthread_mutex_lock(&lock);
        safe++; /* SAFE */
        pthread_mutex_unlock(&lock);
        usleep(500);
    }
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, work, 0);
    pthread_create(&t[1], 0, work, 0);
    if (argc > 1 && !strcmp(argv[1], "kill")) {
        usleep(150000);
        kill(getpid(), SIGKILL);
    }
    if (argc > 3) {
        fclose(fopen(argv[1], "w"));
        sleep(60); /* it is killed */
    }
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    puts(argc > 1 ? argv[1] : "-");
    return argc > 2 ? atoi(argv[2]) : 7;
}
C
"$redflag" cc -g -pthread app.c -o app
racy=app.c:$(grep -n RACY app.c | cut -d: -f1) safe=app.c:$(grep -n SAFE app.c | cut -d: -f1)

# watch EXPECTED-STATUS ARGUMENT...
watch() {
    want=$1 status=0
    shift
    "$redflag" watch "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || fail "exit $status instead of $want: $(cat err)"
}

# Nothing to look for: the program runs as it is.
watch 7 -- ./app
[ "$(cat out)" = - ] || fail "$(cat out)"
grep -qx 'redflag watch: there was nothing to look for' err || fail "$(cat err)"

# The pair of a program that this is not is given back.
printf '%s %s\nother.c:1 other.c:2 9\n%s %s 5\n' "$safe" "$safe" "$racy" "$racy" >pairs.txt
"$redflag" store import pairs.txt
tries=0
while [ "$("$redflag" store -f json status | grep -c '"pairs_confirmed": 1')" -eq 0 ]; do
    tries=$((tries + 1))
    [ "$tries" -le 30 ] || fail "30 runs have not found the race"
    watch 3 --max-overhead 30% -- ./app word 3
    [ "$(cat out)" = word ] || fail "$(cat out)"
    grep -q "^redflag watch: chased $racy and $racy: " err || fail "$(cat err)"
done
"$redflag" store races >races.txt
grep -q "in work$" races.txt || fail "$(cat races.txt)"
grep -q "found by 1 of $tries runs that chased it" races.txt || fail "$(cat races.txt)"
# Confirmed, it is not looked for any more; the other one is, and a lock protects it.
watch 7 -q --max-overhead 30% -- ./app
[ -s err ] && fail "-q: $(cat err)"
"$redflag" store pairs | grep -q "^$safe  $safe .* 1 runs, nothing seen" || fail "$("$redflag" store pairs)"
"$redflag" store -f json status | grep -q '"pairs_leased": 0' || fail "a lease stayed"

# `redflag chase --store` does the same with its own options, and its exit status tells.
printf '%s %s 7\n' "$racy" "$racy" >one.txt
"$redflag" store -s chase.db import one.txt
tries=0 status=7
while [ "$status" -eq 7 ]; do
    tries=$((tries + 1)) status=0
    [ "$tries" -le 30 ] || fail "30 chases have not found the race"
    "$redflag" chase --store chase.db --max-overhead 30% --least 2s -- ./app >out 2>err || status=$?
    grep -q "^redflag chase: chased $racy and $racy: " err || fail "chase --store: $(cat err)"
done
[ "$status" -eq 66 ] || fail "chase --store: exit $status: $(cat err)"
grep -q ': they race$' err || fail "chase --store: $(cat err)"
"$redflag" store -s chase.db -f json status | grep -q '"pairs_confirmed": 1' || fail "chase --store has not told the store"
"$redflag" store -s merged.db merge chase.db
"$redflag" store status -s merged.db -f json | grep -q '"pairs_confirmed": 1' || fail "a store that took in another has forgotten what was confirmed"
status=0
"$redflag" chase --store=chase.db -- ./app >out 2>err || status=$?
[ "$status" -eq 7 ] || fail "chase --store without a pair: exit $status"
grep -qx 'redflag chase: there was nothing to look for' err || fail "chase --store without a pair: $(cat err)"
status=0
"$redflag" chase --store chase.db --pair "$racy,$racy" -- ./app >out 2>err || status=$?
[ "$status" -eq 2 ] || fail "chase --store --pair: exit $status"

# Caper, if it is asked for: what does escape is told to the store.
watch 7 --modes caper -- ./app
grep -qx 'redflag watch: looked for sites that escape' err || fail "$(cat err)"
"$redflag" store -f json status | grep -q '"pairs_dynamic": [1-9]' || fail "no pair was seen to escape"

# One budget: another run of this kind only if those before, and waiting, have taken no more than their part of all the time.
build=$("$redflag" sites --no-libraries --format jsonl ./app | sed -n '1s/.*"build_id": "\([0-9a-f]*\)".*/\1/p')
known() { # ID MODE SECONDS WAITED
    echo "{\"redflag\":\"run\",\"id\":\"$1\",\"mode\":\"$2\",\"build\":\"$build\",\"seconds\":$3,\"waited\":$4}"
}
while read -r runs waited seconds answer; do # so many runs of a second, in which was waited for so long, and one of Caper's
    rm -f one.db
    for i in $(seq "$runs"); do
        known "r$i" chase 1 "$([ "$i" -eq 1 ] && echo "$waited" || echo 0)"
    done >one.jsonl
    [ "$seconds" -eq 0 ] || known c caper "$seconds" 0 >>one.jsonl # the first shows what it takes
    echo "$racy $racy" >one.pairs
    "$redflag" store -s one.db import one.pairs
    "$redflag" store -s one.db merge one.jsonl
    watch 7 -s one.db --modes caper,none -- ./app </dev/null
    if grep -q 'looked for sites' err; then found=caper; else found=no; fi
    [ $found = "$answer" ] || fail "$runs runs, $waited s waited, Caper $seconds s: $(cat err)"
done <<RUNS
1 0 0 caper
20 0 3 no
100 0 3 caper
100 4 3 no
100 1 3 caper
RUNS
sql() { # FILE STATEMENT
    python3 -c 'import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
for row in base.execute(sys.argv[2]):
    print(*row)
base.commit()' "$1" "$2"
}
# A store that fails just while a run that is refused is announced, or while that is taken back: it does not stay as one that is not over.
for event in "INSERT ON runs WHEN NEW.mode = 'caper'" "DELETE ON runs"; do
    rm -f one.db spool.jsonl
    for i in $(seq 20); do known "r$i" chase 1 0; done >one.jsonl
    known c caper 3 0 >>one.jsonl
    printf 'other.c:1 other.c:2\n%s %s\n' "$racy" "$racy" >one.pairs # the first lease has the run's name, and is not used
    "$redflag" store -s one.db import one.pairs
    "$redflag" store -s one.db merge one.jsonl
    sql one.db "CREATE TRIGGER stuck BEFORE $event BEGIN SELECT RAISE(ABORT, 'stuck'); END"
    watch 7 --patience 0 -s one.db --modes caper,chase -- ./app </dev/null
    grep -q 'chased' err || fail "$event: $(cat err)"
    sql one.db "DROP TRIGGER stuck"
    "$redflag" store -s one.db merge >/dev/null 2>&1 || :
    watch 7 --patience 0 -s one.db --modes none -- ./app </dev/null # brings what was spooled
    [ "$(sql one.db "SELECT count(*) FROM runs WHERE mode = 'caper' AND heard IS NOT NULL")" -eq 0 ] ||
        fail "$event: $(sql one.db "SELECT * FROM runs WHERE heard IS NOT NULL")"
    [ "$(sql one.db "SELECT count(*) FROM runs WHERE seconds IS NOT NULL")" -eq 23 ] || fail "$event: $(sql one.db "SELECT * FROM runs")"
done
# PACER's runs, too; what Caper took counts.
while read -r runs pacer caper answer; do # so many runs of a second, one of PACER's, and one of Caper's
    rm -f one.db
    {
        for i in $(seq "$runs"); do
            known "r$i" none 1 0
        done
        [ "$pacer" -eq 0 ] || known p pacer "$pacer" 0
        known c caper "$caper" 0
    } >one.jsonl
    "$redflag" store -s one.db merge one.jsonl
    watch 7 -s one.db --modes pacer,none --rate 0.001 -- ./app </dev/null
    if grep -q 'sampled at' err; then found=pacer; else found=no; fi
    [ $found = "$answer" ] || fail "$runs runs, PACER $pacer s, Caper $caper s: $(cat err)"
done <<RUNS
1 0 9 pacer
100 2 2 pacer
20 2 3 no
100 2 9 no
RUNS

# A run counts from its beginning on, though its watch and program are killed: another of Caper's is not begun, nor one of PACER's.
for mode in caper pacer; do
    rm -f one.db begun
    echo "$racy $racy" >one.pairs
    "$redflag" store -s one.db import one.pairs
    setsid "$redflag" watch -s one.db --modes $mode,none --rate 0.001 -- ./app begun 7 wait >out 2>err &
    number=$!
    while [ ! -e begun ]; do sleep 0.1; done
    "$redflag" store -s one.db -f json status | grep -q '"runs_unfinished": 1' || fail "$mode: $("$redflag" store -s one.db status)"
    kill -s KILL -- "-$number"
    wait "$number" || :
    watch 7 -s one.db --modes $mode,none --rate 0.001 -- ./app </dev/null
    grep -qx 'redflag watch: there was nothing to look for' err || fail "$mode again, after one that was killed: $(cat err)"
    "$redflag" store -s one.db -f json status | grep -q '"runs": 2' || fail "$mode: $("$redflag" store -s one.db status)"
    # Its time is known, and so is that of the others, killed or not: there is room for another when they have taken enough.
    "$redflag" store -s one.db export >whole.jsonl
    grep -q "\"mode\":\"$mode\".*\"unfinished\":true" whole.jsonl || fail "$(cat whole.jsonl)"
    for i in 1 2 3 4 5; do
        echo "{\"redflag\":\"run\",\"id\":\"k$i\",\"mode\":\"none\",\"build\":\"$build\",\"started\":1000,\"heard\":1200,\"unfinished\":true}"
    done >>whole.jsonl
    rm one.db
    "$redflag" store -s one.db merge whole.jsonl
    watch 7 -s one.db --modes $mode,none --rate 0.001 -- ./app </dev/null
    grep -qE 'looked for sites|sampled at' err || fail "$mode after 1000 s: $(cat err)"
done
# What comes after the end of a run says nothing any more.
rm -f one.db
for line in '"unfinished":true' '"seconds":3,"status":0' '"unfinished":true'; do
    echo "{\"redflag\":\"run\",\"id\":\"x\",\"mode\":\"caper\",\"build\":\"$build\",$line}"
done >three.jsonl
"$redflag" store -s one.db merge three.jsonl
"$redflag" store -s one.db -f json status | grep -q '"runs_unfinished": 0' || fail "a run began after its end"
[ "$("$redflag" store -s one.db export | grep -c '"seconds":3')" -eq 1 ] || fail "$("$redflag" store -s one.db export)"

# What threads waited is told, also of a program that is killed; and who waits for whom takes turns.
rm -f one.db
echo "$racy $safe" >one.pairs
"$redflag" store -s one.db import one.pairs
for turn in 1 2; do
    REDFLAG_OPTIONS=stats=1 watch 137 -s one.db --max-overhead 50% --modes chase -- ./app kill
    grep -q "chased $racy and $safe" err || fail "$(cat err)"
done
"$redflag" store -s one.db export >whole.jsonl
[ "$(grep -cE '"waited":(0\.[0-9]*[1-9]|[1-9])' whole.jsonl)" -eq 2 ] || fail "what was waited: $(cat whole.jsonl)"
cat >shows.c <<'C'
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    extern int racy, safe;
    puts(getenv("REDFLAG_CHASE"));
    return racy + safe; /* BOTH */
}
int racy, safe;
void one(void) { racy++; /* ONE */ }
C
"$redflag" cc -g shows.c -o shows
one=shows.c:$(grep -n ONE shows.c | cut -d: -f1) both=shows.c:$(grep -n BOTH shows.c | cut -d: -f1)
rm -f one.db
echo "$one $both" >one.pairs
"$redflag" store -s one.db import one.pairs
for turn in 1 2 3; do
    watch 0 -s one.db --modes chase -- ./shows
    sed 's/.*\(first=.*\);\(second=.*\)/\1 \2/' out >turn.$turn
done
cmp -s turn.1 turn.3 || fail "the order of a pair: $(cat turn.1 turn.3)"
cmp -s turn.1 turn.2 && fail "the order of a pair is always the same: $(cat turn.2)"

# A watch waits without work, also when a lease would have to be renewed if it had one, and without a store. Processor time, in hundredths.
used() { awk '{ print $16 + $17 }' /proc/$$/stat; }
mkdir -p gone
for place in one.db "$dir/gone"; do
    before=$(used)
    watch 0 --patience 0 -s "$place" --lease 3 --modes none -- sleep 4
    [ $(($(used) - before)) -lt 120 ] || fail "waiting took $(($(used) - before)) hundredths of a second of processor time"
done
rm -f "$REDFLAG_SPOOL"

# The store is out of reach: the program runs, and what is known of the run comes later.
before=$("$redflag" store -f json status | sed -n 's/.*"runs": \([0-9]*\).*/\1/p')
watch 5 --patience 0 -s "$dir/gone" -- ./app late 5
[ "$(cat out)" = late ] || fail "$(cat out)"
[ -s "$REDFLAG_SPOOL" ] || fail "nothing was spooled"
watch 7 -q -- ./app
[ -s "$REDFLAG_SPOOL" ] && fail "the spool stayed"
after=$("$redflag" store -f json status | sed -n 's/.*"runs": \([0-9]*\).*/\1/p')
[ "$after" -eq $((before + 2)) ] || fail "$before, then $after runs"

# A sign that a spool brings says when it was given: what has passed since is no part of the run.
rm -f one.db
cat >"$REDFLAG_SPOOL" <<SIGNS
{"redflag":"run","id":"old","mode":"caper","build":"$build","unfinished":true,"started":1000,"heard":1000}
{"redflag":"run","id":"old","mode":"caper","build":"$build","unfinished":true,"started":1000,"heard":1010}
SIGNS
watch 7 -s one.db --modes none -- ./app
"$redflag" store -s one.db export | grep '"id":"old"' | grep '"started":1000' | grep -q '"heard":1010' || fail "$("$redflag" store -s one.db export)"
: >"$REDFLAG_SPOOL"
setsid "$redflag" watch -q --patience 0 -s "$dir/gone" --modes none -- ./app begun2 7 wait &
number=$!
while [ ! -e begun2 ]; do sleep 0.1; done
kill -s KILL -- "-$number"
wait "$number" || :
grep -q '"started":[0-9].*"heard":[0-9]' "$REDFLAG_SPOOL" || fail "a sign without its time: $(cat "$REDFLAG_SPOOL")"
: >"$REDFLAG_SPOOL"

# What was waited is entered into nothing but the watch's own memory: its number may be that of another process by now.
printf 'something that belongs to somebody else' >stranger
cp stranger as-before
exec 5<>stranger
status=0
for place in "redflag-account-0 /proc/$$/fd/5" "redflag-account-0 $dir/stranger" "/proc/$$/fd/5" "$dir/stranger"; do
    REDFLAG_CHASE_ACCOUNT=$place "$redflag" chase --exitcode=7 --pair "$racy,$racy" --max-overhead 50% -- ./app >out 2>err || status=$?
    [ "$status" -eq 7 ] || fail "$place: exit $status: $(cat err)"
    cmp -s stranger as-before || fail "a stranger's file was written to: $place"
done
exec 5>&-

# A program that is not instrumented runs, too; signals reach it.
"$redflag" watch -q -- sh -c 'trap "exit 9" TERM; echo ready >ready; while :; do sleep 0.1; done' &
number=$!
while [ ! -e ready ]; do sleep 0.1; done
kill -TERM "$number"
status=0
wait "$number" || status=$?
[ "$status" -eq 9 ] || fail "a signal: exit $status"

# A full disk, as one on which no file may grow: one line that says so, nothing of it is there, and what was there is.
full() {
    (
        trap '' XFSZ
        ulimit -f 0
        exec "$@"
    ) 2>&1 | cat >err
}
rm -f one.db spool.jsonl
echo "$racy $safe" >one.pairs
echo "$safe $safe" >two.pairs
"$redflag" store -s one.db import one.pairs
"$redflag" store -s one.db export >before
full "$redflag" store -s one.db import two.pairs
[ "$(cat err)" = "redflag store: one.db: disk I/O error: File too large" ] || fail "a full disk: $(cat err)"
full "$redflag" watch --patience 0 -s one.db --modes none -- ./app </dev/null # the spool is as full
[ "$(grep -c 'what was found is lost: .*spool.jsonl: File too large' err)" -eq 1 ] || fail "watch on a full disk: $(cat err)"
"$redflag" store -s one.db export | cmp - before || fail "a full disk: something is lost, or half of something is there"
[ ! -s spool.jsonl ] || fail "a full disk: half of a line is in the spool: $(cat spool.jsonl)"
status=0
(trap '' XFSZ && ulimit -f 0 && "$redflag" store -s one.db import two.pairs 2>/dev/null) || status=$?
[ $status -eq 2 ] || fail "a full disk: exit $status"

for bad in "" "--modes x ./app" "--rate 2 ./app" "--lease 1 ./app" "--unknown ./app"; do
    status=0
    # shellcheck disable=SC2086
    "$redflag" watch $bad >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "'$bad': exit $status"
done
