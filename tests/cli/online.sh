#!/usr/bin/env bash
# Detectors inside running programs: redflag run -d NAME. What they report, how predictions are marked, sampling; and each against itself:
# one run is judged online and recorded, and the recording is judged by the same detector, and by the definition (generic).
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
programs=$top/tests/programs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset REDFLAG_OPTIONS TSAN_OPTIONS LD_LIBRARY_PATH REDFLAG_CC
cd "$scratch"

fail() {
    echo "online: $1" >&2
    [ ! -s out ] || sed 's/^/    /' out >&2
    exit 1
}

# status EXPECTED COMMAND...
status() {
    expected=$1 got=0
    shift
    timeout 100 "$@" >out 2>&1 || got=$?
    [ "$got" -eq "$expected" ] || fail "status $got instead of $expected: $*"
}

build() { # PROGRAM
    "$REDFLAG" cc -g -O1 -pthread -I "$top" "$programs/$1.c" -o "$1" || fail "$1 does not build"
}

share="threads-write-write threads-write-read mutex-by-luck mutex-one-side mutex-orders rwlock-two-readers cond-queue barrier-rounds
    atomics-release-acquire atomics-relaxed-load heap-race heap-reuse semaphore-orders"
for program in $share; do
    build "$program"
done

# all of them find a plain race but `none`; those that need a repetition, or another thread's return, may not
for detector in fasttrack generic djit goldilocks acculock multilock lockset eraser multirace literace alias; do
    status 66 "$REDFLAG" run -d $detector ./threads-write-write
    grep -q '^WARNING: redflag: .*data race' out || fail "$detector says nothing"
    grep -q 'threads-write-write.c' out || fail "$detector has no stack"
done
status 0 "$REDFLAG" run -d none ./threads-write-write
[ ! -s out ] || fail "none says something"

# a race of another schedule: precise ones are silent, predictive ones say what it is, in each form
for detector in fasttrack generic djit goldilocks; do
    status 0 "$REDFLAG" run -d $detector ./mutex-by-luck
done
for detector in acculock multilock; do
    status 66 "$REDFLAG" run -d $detector ./mutex-by-luck
    grep -q '^WARNING: redflag: predicted data race' out || fail "$detector does not call it a prediction"
    grep -q 'may happen under another schedule' out || fail "$detector does not say of which schedule"
    status 66 "$REDFLAG" run -d $detector -f jsonl ./mutex-by-luck
    grep -q '"certainty": "predicted","prediction": "may happen under another schedule"' out || fail "$detector in JSON Lines"
    status 66 "$REDFLAG" run -d $detector -f sarif ./mutex-by-luck
    grep -q 'it may happen under another schedule\."' out || fail "$detector in SARIF"
    # one of this execution is none
    status 66 "$REDFLAG" run -d $detector ./threads-write-write
    grep -q '^WARNING: redflag: data race' out || fail "$detector calls a race of this execution a prediction"
    # read mode protects reads only; the locks of both sides are there
    status 66 "$REDFLAG" run -d $detector ./rwlock-two-readers
    grep -q '(mutexes: read M[0-9]*)' out || fail "$detector does not say which locks were held"
done

# Every kind of lock protects; in read mode, reads only. The two accesses come one after the other, ordered by a lock that protects neither.
cat >locks.c <<'C'
#include <string.h>
#include <threads.h>
#include "tests/programs/order.h"
void __tsan_mutex_pre_lock(void *, unsigned);
void __tsan_mutex_post_lock(void *, unsigned, int);
int __tsan_mutex_pre_unlock(void *, unsigned);
void __tsan_mutex_post_unlock(void *, unsigned);
enum { READ_LOCKED = 8 /* as the interface of annotations has it */ };
static pthread_mutex_t mutexes[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER }, by_luck = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static mtx_t c11;
static pthread_spinlock_t spinlock;
static int annotated, x;
static const char *kind, *modes; /* of the two accesses: w: locked for writing; r: for reading */
static int is(const char *name)
{
    return strcmp(kind, name) == 0;
}
static void lock(int which)
{
    unsigned mode = modes[which] == 'r' ? READ_LOCKED : 0;
    if (is("mutex") || is("different"))
        pthread_mutex_lock(&mutexes[is("different") && which]);
    else if (is("c11"))
        mtx_lock(&c11);
    else if (is("spin"))
        pthread_spin_lock(&spinlock);
    else if (is("rwlock") && mode)
        pthread_rwlock_rdlock(&rwlock);
    else if (is("rwlock"))
        pthread_rwlock_wrlock(&rwlock);
    else
        __tsan_mutex_pre_lock(&annotated, mode), __tsan_mutex_post_lock(&annotated, mode, 0);
}
static void unlock(int which)
{
    unsigned mode = modes[which] == 'r' ? READ_LOCKED : 0;
    if (is("mutex") || is("different"))
        pthread_mutex_unlock(&mutexes[is("different") && which]);
    else if (is("c11"))
        mtx_unlock(&c11);
    else if (is("spin"))
        pthread_spin_unlock(&spinlock);
    else if (is("rwlock"))
        pthread_rwlock_unlock(&rwlock);
    else
        __tsan_mutex_pre_unlock(&annotated, mode), __tsan_mutex_post_unlock(&annotated, mode);
}
static void order(void)
{
    pthread_mutex_lock(&by_luck);
    pthread_mutex_unlock(&by_luck);
}
static void *first(void *unused)
{
    lock(0);
    x = 1;
    unlock(0);
    order();
    reach(1);
    return unused;
}
static void *second(void *unused)
{
    await(1);
    order();
    lock(1);
    if (modes[2] == 'w')
        x = 2;
    else
        (void)*(volatile int *)&x;
    unlock(1);
    return unused;
}
int main(int argc, char **argv)
{
    kind = argv[argc - 2];
    modes = argv[argc - 1];
    mtx_init(&c11, mtx_plain);
    pthread_spin_init(&spinlock, 0);
    run_both(first, second);
    return 0;
}
C
"$REDFLAG" cc -g -O1 -pthread -I "$top" locks.c -o locks || fail "locks.c does not build"
for detector in acculock multilock; do
    for kind in mutex c11 spin rwlock annotated; do
        status 0 "$REDFLAG" run -d $detector ./locks $kind www
    done
    for kind in rwlock annotated; do # the modes of both, and what the second one does
        status 0 "$REDFLAG" run -d $detector ./locks $kind wrr
        for modes in rrr rww wrw rrw; do
            status 66 "$REDFLAG" run -d $detector ./locks $kind $modes
            grep -q '^WARNING: redflag: predicted data race' out || fail "$detector, $kind, $modes"
        done
    done
    # the locks of each side, in each form
    status 66 "$REDFLAG" run -d $detector ./locks different www
    grep -q '  Write of size 4 .*(mutexes: write M[0-9]*):' out || fail "$detector: the locks of the second access"
    grep -q '  Previous write of size 4 .*(mutexes: write M[0-9]*):' out || fail "$detector: the locks of the first access"
    [ "$(grep -o 'mutexes: write M[0-9]*' out | sort -u | wc -l)" -eq 2 ] || fail "$detector: the two locks"
    status 66 "$REDFLAG" run -d $detector -f jsonl ./locks different www
    [ "$(grep -o '"locks": \[{"lock": [0-9]*,"mode": "write"}\]' out | sort -u | wc -l)" -eq 2 ] || fail "$detector: locks in JSON Lines"
    status 66 "$REDFLAG" run -d $detector -f sarif ./locks different www
    grep -q 'Write of size 4 by thread T2 (mutexes: write M[0-9]*); Previous write of size 4 by thread T1 (mutexes: write M[0-9]*);' out ||
        fail "$detector: locks in SARIF"
done

# sampling
status 66 "$REDFLAG" run -d pacer --rate 1 ./threads-write-write
status 66 "$REDFLAG" run -d pacer --rate 100% --sample-by time ./threads-write-write
status 0 "$REDFLAG" run -d pacer --rate 0 ./threads-write-write
status 67 "$REDFLAG" run -d pacer --rate 1.5 ./threads-write-write
grep -q "rate takes a share from 0 to 1, not '1.5'" out || fail "the rate that is none"
status 2 "$REDFLAG" run -d pacer --sample-by luck ./threads-write-write
status 66 "$REDFLAG" run -d pacer --rate 1 --stats ./threads-write-write
for name in 'accesses sampled' 'synchronisations sampled' 'non-sampling fast reads' 'sampling deep copies' 'periods sampled'; do
    grep -q "^redflag: $name: [0-9]" out || fail "no statistic of $name"
done
# calls of each hook come to that hook, also by pacer's gates
"$REDFLAG" cc -g -O1 -w -pthread "$top/tests/cli/online.c" -o hooks || fail "hooks do not build"
for options in "-d fasttrack" "-d multilock" "-d pacer --rate 1"; do
    # shellcheck disable=SC2086
    status 66 "$REDFLAG" run $options ./hooks
    if grep ' finds nothing$' out >&2; then
        fail "$options: some hooks"
    fi
done
found=0
for seed in $(seq 20); do # the chance that all, or none, of 20 are sampled at 50% is one in half a million
    REDFLAG_OPTIONS=detector=pacer:rate=0.5:seed=$seed ./threads-write-write >/dev/null 2>&1 || found=$((found + 1))
done
case $found in 0 | 20) fail "at a rate of 50% the race was found in $found of 20 runs" ;; esac
build many-threads-kinds # clocks with versions: within periods, and outside
for rate in 0 0.2 0.5; do
    status 0 "$REDFLAG" run -d pacer --rate $rate --period 300 --seed 4 ./many-threads-kinds
done

# what a read of a vtable's pointer is, every detector's report says
cat >vptr.c <<'C'
#include <pthread.h>
void __tsan_vptr_read(void **);
static void *pointer;
static void *reads(void *unused) { __tsan_vptr_read(&pointer); return unused; }
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, reads, 0);
    pointer = &thread;
    return pthread_join(thread, 0);
}
C
"$REDFLAG" cc -g -pthread vptr.c -o vptr
for detector in fasttrack generic acculock; do
    status 66 "$REDFLAG" run -d $detector ./vptr
    grep -q 'data race on vptr' out || fail "$detector: no race on a vptr"
done

# one run, judged twice
judged=0
for program in $share; do
    definition=0
    for detector in generic goldilocks acculock multilock lockset eraser; do
        # Its verdict depends on which of two racing accesses came first, and that a recording does not tell (guest/record.c, 2).
        [ "$detector" != eraser ] || [ "$definition" -eq 0 ] || continue
        online=0 offline=0
        REDFLAG_OPTIONS=detector=$detector timeout 100 "$REDFLAG" record -q -o t.rft -- ./"$program" >out 2>&1 || online=$?
        timeout 100 "$REDFLAG" analyze -d $detector t.rft >verdict 2>&1 || offline=$?
        [ "$online" -eq "$offline" ] || fail "$program: $detector says $online in the run, and $offline of its recording"
        case $detector in generic | goldilocks) ;; *) continue ;; esac
        definition=0
        timeout 100 "$REDFLAG" analyze -d generic t.rft >verdict 2>&1 || definition=$?
        [ "$online" -eq "$definition" ] || fail "$program: $detector says $online in the run, the definition $definition"
        judged=$((judged + 1))
    done
done
# pairs of sites: as many as the recording has, told at the end, named as everything names sites
for program in $share; do
    rm -f pairs
    REDFLAG_OPTIONS=detector=alias:pairs=$PWD/pairs timeout 100 "$REDFLAG" record -q -o t.rft -- ./"$program" >out 2>&1 || fail "$program: alias"
    online=$(wc -l <pairs) offline=$("$REDFLAG" analyze -d alias t.rft | grep -c ', may happen') || true
    [ "$online" -eq "$offline" ] || fail "$program: $online pairs in the run, $offline in its recording"
done
rm -f pairs
status 0 "$REDFLAG" run -d alias --pairs pairs ./mutex-orders
[ -s pairs ] || fail "alias has no pair"
while read -r first second; do
    "$REDFLAG" sites --at "$first" ./mutex-orders | grep -q 'mutex-orders.c:' || fail "$first is no site"
    "$REDFLAG" sites --at "$second" ./mutex-orders | grep -q 'mutex-orders.c:' || fail "$second is no site"
done <pairs
status 66 "$REDFLAG" run -d alias -f jsonl ./mutex-orders
[ "$(grep -c '"certainty": "predicted"' out)" -eq "$(wc -l <pairs)" ] || fail "alias in JSON Lines"
status 0 "$REDFLAG" run -d alias --pairs /none/pairs ./mutex-orders
grep -qx 'redflag: /none/pairs: the pairs cannot be written' out || fail "pairs that cannot be written"
echo "online: $judged runs agree with the definition"
