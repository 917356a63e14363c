#!/usr/bin/env bash
# Caper: of the static pairs, those whose sites access escaped memory; never less than what races in the run; kept when the program is
# killed; the hooks of escaped sites are gone in the next run. PROGRAMS="heap-*" for some of tests/programs, ALL=1 for all that race.
set -eu
redflag=${REDFLAG:?}
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
unset REDFLAG_OPTIONS TSAN_OPTIONS REDFLAG_CC REDFLAG_STORE
export REDFLAG_SPOOL="$dir/spool"
fail() {
    echo "caper.sh: $*" >&2
    exit 1
}
cd "$dir"

# -- what escapes, and when -------------------------------------------------------------------------------------------------------------------
cat >app.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#ifndef ROOM
#define ROOM 1
#endif
struct box { long value, room[ROOM]; struct box *next; };
struct box *published;
static int later;
static void *work(void *unused)
{
    struct box *mine = malloc(sizeof *mine), *inner = malloc(sizeof *inner);
    mine->value = 1; /* private */
    inner->value = 2; /* inner */
    mine->next = inner; /* link */
    if (later)
        inner->value = 3; /* path */
    published = mine; /* publish */
    mine->value = 4; /* shared */
    inner->value = 5; /* reached */
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    (void)argv;
    later = argc > 1;
    pthread_create(&t[0], 0, work, 0);
    pthread_create(&t[1], 0, work, 0);
    pthread_join(t[0], 0);
    pthread_join(t[1], 0);
    if (argc > 2)
        kill(getpid(), SIGKILL);
    return 5;
}
C
line() { grep -n "/\* $1 \*/" app.c | cut -d: -f1; }
run() { # WANTED-STATUS ARGUMENT...
    local want=$1 status=0
    shift
    "$redflag" caper --pairs pairs.txt "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || fail "exit $status instead of $want: $(cat err)"
}
has() { "$redflag" caper --pairs pairs.txt --show | grep -qE "app\.c:$(line "$1") [^ ]*app\.c:$(line "$2")\$|app\.c:$(line "$2") [^ ]*app\.c:$(line "$1")\$"; }
for room in 500 1; do # a large block is known by its bounds, too
    "$redflag" cc --bitcode -g -O0 -pthread -DROOM=$room app.c -o app
    "$redflag" static app.bc >pairs.txt
    rm -f pairs.txt.sites*
    run 5 -- ./app
    grep -qE '^redflag caper: [0-9]+ of [0-9]+ pairs may race in what was run, [1-9][0-9]* of them new$' err || fail "$(cat err)"
    has shared shared || fail "a write of a published block"
    has reached reached || fail "a write of what a published block points to"
    has publish publish || fail "a write of a global variable"
    has private private && fail "a block that nobody else can reach"
    has inner inner && fail "a block that nobody else can reach yet"
    grep -q "^- .*app.c:$(line private):" pairs.txt.sites || fail "$(cat pairs.txt.sites)"
    [ "$("$redflag" caper --pairs pairs.txt --show | wc -l)" -lt "$(wc -l <pairs.txt)" ] || fail "no pair was ruled out"
done
# The next run finds nothing new; what another path does is added; nothing is ever taken back, and a killed program's sites are kept.
run 5 -- ./app
grep -q ', 0 of them new$' err || fail "$(cat err)"
"$redflag" caper --pairs pairs.txt --show >before
run 137 -- ./app x y
"$redflag" caper --pairs pairs.txt --show >after
[ -z "$(comm -23 before after)" ] || fail "a pair was lost"
# In a state of its own, a killed first run has said all that it saw.
run 137 --state killed.sites -- ./app x y
grep -q "^+ .*app.c:$(line shared):" killed.sites || fail "the kill lost a site: $(cat killed.sites)"

# A large block that others reach by a way that was not seen: from then on its owner's accesses count.
cat >hidden.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
uintptr_t hidden;
static sem_t told, used;
static void *work(void *unused)
{
    sem_wait(&told);
    long *block = (long *)~hidden;
    block[1] = 2; /* foreign */
    sem_post(&used);
    return unused;
}
int main(void)
{
    pthread_t t;
    sem_init(&told, 0, 0);
    sem_init(&used, 0, 0);
    pthread_create(&t, 0, work, 0);
    long *block = malloc(500 * sizeof *block);
    block[0] = 1; /* own */
    hidden = ~(uintptr_t)block; /* hide */
    sem_post(&told);
    sem_wait(&used);
    block[2] = 3; /* after */
    pthread_join(t, 0);
    free(block);
    return 0;
}
C
"$redflag" cc --bitcode -g -O0 -pthread hidden.c -o hidden
"$redflag" static hidden.bc >hidden.txt
"$redflag" caper --pairs hidden.txt -- ./hidden 2>err || fail "$(cat err)"
for place in foreign:+ after:+ own:-; do
    grep -q "^${place#*:} .*hidden.c:$(grep -n "/\* ${place%:*} \*/" hidden.c | cut -d: -f1):" hidden.txt.sites || fail "$place: $(cat hidden.txt.sites)"
done

# A stack is its thread's own until an address of it is published: accesses and calls that fill it count from then on.
cat >stack.c <<'C'
#include <pthread.h>
#include <string.h>
int *published;
volatile int always = 1;
static void fill(int *at) { memset(at, 1, 12); /* fill own */ }
static void fill_known(int *at) { memset(at, 2, 12); /* fill known */ }
static void *work(void *unused)
{
    int here[16];
    for (int i = 0; i < 3; i++) {
        here[i] = i; /* own */
        fill(&here[8]);
    }
    if (always)
        published = here; /* publish */
    here[0] = 1; /* known */
    here[1] = 2; /* still known */
    fill_known(&here[8]);
    return unused;
}
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
C
"$redflag" cc --bitcode -g -O0 -fno-builtin -pthread stack.c -o stack
"$redflag" static stack.bc >stack.txt
"$redflag" caper -q --pairs stack.txt -- ./stack
for place in own:- 'fill own:-' publish:+ known:+ 'still known:+' 'fill known:+'; do
    grep -q "^${place#*:} .*stack.c:$(grep -n "/\* ${place%:*} \*/" stack.c | cut -d: -f1)\b" stack.txt.sites ||
        fail "$place: $(cat stack.txt.sites)"
done

# A stack is also published by a block that has its address, when that is published.
cat >job.c <<'C'
#include <pthread.h>
#include <stdlib.h>
struct job { int *result; struct job *next; };
struct job *queue;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *unused)
{
    int here[16];
    struct job *job = malloc(sizeof *job);
    job->next = malloc(sizeof *job);
    job->next->result = here;
    here[0] = 1; /* own */
    pthread_mutex_lock(&lock);
    queue = job;
    pthread_mutex_unlock(&lock);
    here[1] = 2; /* known */
    return unused;
}
static void *help(void *unused)
{
    struct job *job = NULL;
    while (!job) {
        pthread_mutex_lock(&lock);
        job = queue;
        pthread_mutex_unlock(&lock);
    }
    job->next->result[1] = 3; /* foreign */
    return unused;
}
int main(void)
{
    pthread_t t[2];
    pthread_create(&t[0], 0, work, 0);
    pthread_create(&t[1], 0, help, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
C
"$redflag" cc --bitcode -g -O0 -pthread job.c -o job
for place in own known; do
    echo "job.c:$(grep -n "/\* $place \*/" job.c | cut -d: -f1) job.c:$(grep -n "/\* foreign \*/" job.c | cut -d: -f1)"
done >job.txt
"$redflag" caper -q --pairs job.txt -- ./job
for place in own:- known:+ foreign:+; do
    grep -q "^${place#*:} .*job.c:$(grep -n "/\* ${place%:*} \*/" job.c | cut -d: -f1)\b" job.txt.sites || fail "$place: $(cat job.txt.sites)"
done

# A library takes the place of another that was unloaded: what was found out of the calls and accesses there does not count for it.
mkdir libraries
for name in one two; do
    cat >libraries/$name.c <<C
#include <pthread.h>
#include <stdlib.h>
struct box { pthread_mutex_t lock; long value; };
extern struct box *shared;
void enter(int how)
{
    struct box *box = how ? shared : calloc(1, sizeof *box);
    for (int i = 0; i < 3; i++) {
        pthread_mutex_lock(&box->lock); /* lock */
        box->value = i; /* store */
        pthread_mutex_unlock(&box->lock); /* unlock */
    }
    if (!how)
        free(box);
}
C
    "$redflag" cc -g -O1 -fPIC -shared -pthread libraries/$name.c -o libraries/$name.so
done
cat >libraries/app.c <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
struct box { pthread_mutex_t lock; long value; };
struct box *shared;
int main(int argc, char **argv) /* LIBRARY HOW...; 3: they were not at one place */
{
    void *last = NULL;
    shared = calloc(1, sizeof *shared);
    for (int i = 1; i + 1 < argc; i += 2) {
        void *handle = dlopen(argv[i], RTLD_NOW), *there = handle ? dlsym(handle, "enter") : NULL;
        if (!there)
            return 4;
        if (last && last != there)
            return 3;
        last = there;
        ((void (*)(int))there)(atoi(argv[i + 1]));
        dlclose(handle);
    }
    return 0;
}
C
"$redflag" cc -g -O1 -rdynamic -pthread libraries/app.c -o libraries/app
"$redflag" cc -g -O1 -rdynamic -pthread libraries/app.c -Wl,--no-as-needed libraries/one.so libraries/two.so -o libraries/both
for place in lock store unlock; do
    at=$(grep -n "/\* $place \*/" libraries/one.c | cut -d: -f1)
    echo "libraries/one.c:$at libraries/two.c:$at"
done >libraries/pairs
taken_place() { # MARK-OF-ONE MARK-OF-TWO LIBRARY HOW...
    local one=$1 two=$2 state=libraries/pairs.sites name mark
    shift 2
    rm -f $state*
    "$redflag" caper -q --pairs libraries/pairs -- libraries/both # which tells all sites of both
    "$redflag" caper -q --pairs libraries/pairs -- libraries/app "$@" || fail "libraries $*: $?"
    for name in one two; do
        mark=$one
        [ $name = one ] || mark=$two
        [ "$(grep -c "^[-+] .*libraries/$name.c:" $state)" -ge 3 ] || fail "libraries: $(cat $state)"
        ! grep "^[^$mark] .*libraries/$name.c:" $state | grep -v '^c' || fail "libraries $*: $(cat $state)"
    done
}
taken_place + - libraries/one.so 1 libraries/two.so 0
taken_place - + libraries/one.so 0 libraries/two.so 1
taken_place + + libraries/one.so 1 libraries/two.so 1
taken_place + + libraries/one.so 1 libraries/two.so 0 libraries/one.so 0 libraries/two.so 1

# -- lines without a hook: calls of libc, heard or not, and accesses that the compiler has left out -----------------------------------------
cat >calls.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
char shared[64];
char *box, *given;
static sem_t read_it;
static void *work(void *unused)
{
    char *mine = malloc(64);
    memset(mine, 1, 64); /* heard, private */
    memcpy(shared, mine, (size_t)mine[20] + 8); /* heard, shared */
    sscanf(shared, "%63s", mine); /* may access anything */
    if (unused)
        box = mine; /* so that it might be shared, for all that the text says */
    shared[1] = given[1];
    sem_post(&read_it);
    free(mine); /* freed, private */
    return NULL;
}
static void *drop(void *unused)
{
    char *block = given;
    sem_wait(&read_it);
    sem_wait(&read_it);
    free(block); /* freed, shared */
    return unused;
}
int main(void)
{
    pthread_t a, b, c;
    given = calloc(1, 64);
    pthread_create(&a, NULL, work, NULL);
    pthread_create(&b, NULL, work, NULL);
    pthread_create(&c, NULL, drop, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    pthread_join(c, NULL);
    return box != NULL;
}
C
"$redflag" cc --bitcode -g -O2 -fno-builtin -pthread -c calls.c
"$redflag" cc -g -O2 -pthread calls.o -o calls
"$redflag" static --facts calls.pairs.facts calls.bc >calls.pairs
"$redflag" caper -q --pairs calls.pairs -- ./calls
"$redflag" caper --pairs calls.pairs --show >calls.shown
number() {
    grep -n "/\* $1" calls.c | cut -d: -f1
}
grep -q "calls.c:$(number 'heard, private')\b" calls.pairs || fail "the private line is in no static pair"
grep -q "calls.c:$(number 'heard, private')\b" calls.shown && fail "a call that was heard to access private memory alone is in a pair"
grep -q "calls.c:$(number 'heard, shared')\b" calls.shown || fail "a call that was heard to access shared memory is in no pair"
grep -q "calls.c:$(number 'freed, private')\b" calls.pairs || fail "the free of a private block is in no static pair"
grep -q "calls.c:$(number 'freed, private')\b" calls.shown && fail "a free of private memory alone is in a pair"
grep -q "calls.c:$(number 'freed, shared')\b" calls.shown || fail "a free of shared memory is in no pair"
grep -q "calls.c:$(number 'may access')\b" calls.shown || fail "a call that is not heard is in no pair"
"$redflag" cc -g -O2 -pthread calls.c -o inlined # gcc puts stores without hooks in the place of these calls
"$redflag" caper -q --pairs calls.pairs --state inlined.state -- ./inlined
"$redflag" caper --pairs calls.pairs --state inlined.state --show | grep -q "calls.c:$(number 'heard, shared')\b" ||
    fail "a call that the compiler has done the work of is in no pair"
for format in text groups; do # both forms of the list say the same
    "$redflag" static -f $format calls.bc >form.pairs
    "$redflag" caper -q --pairs form.pairs --state form.state -- ./calls
    "$redflag" caper --pairs form.pairs --state form.state --show | awk '{ print $1 < $2 ? $1 " " $2 : $2 " " $1 }' | sort >form.$format
    rm form.state
done
cmp form.text form.groups || fail "groups of sites give other pairs"

# -- functions that synchronise are heard: at a private object they make no pair, at a shared one they do ----------------------------------
cat >sync.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
struct box {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_rwlock_t rw;
    pthread_spinlock_t spin;
    sem_t semaphore;
    mtx_t mtx;
    cnd_t cnd;
    struct timespec until;
};
struct box *shared;
static pthread_barrier_t met;
#define USES(name, call) static void name(struct box *b) { call; }
USES(mutex_private, pthread_mutex_lock(&b->mutex); pthread_mutex_unlock(&b->mutex)) /* private */
USES(mutex_shared, pthread_mutex_lock(&b->mutex); pthread_mutex_unlock(&b->mutex)) /* shared */
USES(timed_private, pthread_mutex_timedlock(&b->mutex, &b->until); pthread_mutex_unlock(&b->mutex)) /* private */
USES(condition_private, pthread_cond_signal(&b->condition); pthread_cond_broadcast(&b->condition)) /* private */
USES(condition_shared, pthread_cond_signal(&b->condition)) /* shared */
USES(rw_private, pthread_rwlock_rdlock(&b->rw); pthread_rwlock_unlock(&b->rw)) /* private */
USES(rw_shared, pthread_rwlock_rdlock(&b->rw); pthread_rwlock_unlock(&b->rw)) /* shared */
USES(spin_private, pthread_spin_lock(&b->spin); pthread_spin_unlock(&b->spin)) /* private */
USES(spin_shared, pthread_spin_lock(&b->spin); pthread_spin_unlock(&b->spin)) /* shared */
USES(semaphore_private, sem_post(&b->semaphore); sem_wait(&b->semaphore)) /* private */
USES(semaphore_shared, sem_post(&b->semaphore)) /* shared */
USES(mtx_private, mtx_lock(&b->mtx); mtx_unlock(&b->mtx)) /* private */
USES(mtx_shared, mtx_lock(&b->mtx); mtx_unlock(&b->mtx)) /* shared */
USES(cnd_private, cnd_signal(&b->cnd)) /* private */
USES(cnd_shared, cnd_broadcast(&b->cnd)) /* shared */
USES(destroy_private, pthread_mutex_destroy(&b->mutex); pthread_cond_destroy(&b->condition)) /* private */
static void init(struct box *b)
{
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->condition, NULL);
    pthread_rwlock_init(&b->rw, NULL);
    pthread_spin_init(&b->spin, 0);
    sem_init(&b->semaphore, 0, 0);
    mtx_init(&b->mtx, mtx_plain);
    cnd_init(&b->cnd);
}
static void *work(void *publishes)
{
    struct box *mine = calloc(1, sizeof *mine);
    init(mine);
    mutex_private(mine);
    timed_private(mine);
    condition_private(mine);
    rw_private(mine);
    spin_private(mine);
    semaphore_private(mine);
    mtx_private(mine);
    cnd_private(mine);
    pthread_barrier_wait(&met);
    mutex_shared(shared);
    condition_shared(shared);
    rw_shared(shared);
    spin_shared(shared);
    semaphore_shared(shared);
    mtx_shared(shared);
    cnd_shared(shared);
    pthread_barrier_wait(&met);
    destroy_private(mine);
    if (publishes)
        shared = mine; /* so that it might be, for all that the text says */
    return NULL;
}
int main(void)
{
    pthread_t t[2];
    pthread_barrier_init(&met, NULL, 2);
    shared = calloc(1, sizeof *shared);
    init(shared);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
C
"$redflag" cc --bitcode -g -O1 -fno-inline -pthread sync.c -o sync
"$redflag" static --facts sync.pairs.facts sync.bc >sync.pairs
for mode in facts alone; do # without facts as well
    [ $mode = facts ] || mv sync.pairs.facts other.facts
    "$redflag" caper -q --pairs sync.pairs --state sync.$mode -- ./sync
    "$redflag" caper --pairs sync.pairs --state sync.$mode --show >sync.shown
    # shellcheck disable=SC2013 # numbers
    for number in $(grep -n '^USES' sync.c | cut -d: -f1); do
        kind=$(sed -n "${number}s|.*/\\* \\(.*\\) \\*/|\\1|p" sync.c)
        grep -q "sync.c:$number\b" sync.pairs || fail "line $number is in no static pair"
        if grep -q "sync.c:$number\b" sync.shown; then shown=shared; else shown=private; fi
        [ $shown = "$kind" ] || fail "$mode: $(sed -n "${number}p" sync.c) is taken for $shown"
    done
done

# -- what C permits beside (doc/caper.md): each case, and what becomes of it ------------------------------------------------------------------
cat >permits.c <<'C'
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
struct box { long value, room[3]; };
struct box *shared;
volatile int never;
volatile long sink;
uint32_t pieces[2];
struct __attribute__((packed)) { char first; struct box *box; } unaligned;
struct box *by_library, *base;
long distance;
_Atomic(struct box *) relaxed;
uintptr_t number;
static sem_t told, used;
void publish(void *place, void *what); /* has no hooks */
void *__tsan_create_fiber(unsigned), *__tsan_get_current_fiber(void);
void __tsan_switch_to_fiber(void *, unsigned);
#define WRITES(name) static void name(struct box *b) { b->value++; }
WRITES(pieces_before) /* - */
WRITES(pieces_stored) /* - */
WRITES(pieces_other) /* + */
WRITES(pieces_after) /* + */
WRITES(unaligned_before) /* - */
WRITES(unaligned_stored) /* - */
WRITES(unaligned_other) /* + */
WRITES(unaligned_after) /* + */
WRITES(library_before) /* - */
WRITES(library_stored) /* - */
WRITES(library_other) /* + */
WRITES(library_after) /* + */
WRITES(computed_before) /* - */
WRITES(computed_stored) /* - */
WRITES(computed_other) /* + */
WRITES(computed_after) /* + */
WRITES(stack_before) /* - */
WRITES(stack_other) /* + */
WRITES(stack_after) /* - */
WRITES(relaxed_before) /* - */
WRITES(relaxed_stored) /* + */
WRITES(number_before) /* - */
WRITES(number_stored) /* + */
WRITES(fiber_before) /* - */
WRITES(fiber_after) /* + */
__attribute__((no_sanitize_thread)) WRITES(raw) /* none */
static void everything(struct box *b) /* for all that the text says */
{
    static void (*const all[])(struct box *) = {
        pieces_before, pieces_stored, pieces_other, pieces_after, unaligned_before, unaligned_stored, unaligned_other, unaligned_after,
        library_before, library_stored, library_other, library_after, computed_before, computed_stored, computed_other, computed_after,
        stack_before, stack_other, stack_after, relaxed_before, relaxed_stored, number_before, number_stored, fiber_before, fiber_after, raw };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        all[i](b);
}
static struct box *take_turns(struct box *box)
{
    sem_post(&told);
    sem_wait(&used);
    return box;
}
static void *owner(void *unused)
{
    if (never)
        everything(shared);
    struct box *box = calloc(1, sizeof *box);
    uintptr_t bits = (uintptr_t)box;
    pieces_before(box);
    pieces[0] = (uint32_t)bits;
    pieces[1] = (uint32_t)(bits >> 32);
    pieces_stored(box);
    pieces_after(take_turns(box));
    box = calloc(1, sizeof *box);
    unaligned_before(box);
    unaligned.box = box;
    unaligned_stored(box);
    unaligned_after(take_turns(box));
    box = calloc(1, sizeof *box);
    library_before(box);
    publish(&by_library, box);
    library_stored(box);
    library_after(take_turns(box));
    base = calloc(1, sizeof *base);
    box = calloc(1, sizeof *box);
    computed_before(box);
    distance = (char *)box - (char *)base;
    computed_stored(box);
    computed_after(take_turns(box));
    struct box held = { 0, { 0 } }; /* on the stack, and known to a block that is published in pieces */
    box = calloc(1, sizeof *box);
    box->room[0] = (long)&held;
    stack_before(&held);
    bits = (uintptr_t)box;
    pieces[0] = (uint32_t)bits;
    pieces[1] = (uint32_t)(bits >> 32);
    take_turns(box);
    stack_after(&held);
    sink = held.value;
    box = calloc(1, sizeof *box);
    relaxed_before(box);
    atomic_store_explicit(&relaxed, box, memory_order_relaxed);
    relaxed_stored(box);
    box = calloc(1, sizeof *box);
    number_before(box);
    number = (uintptr_t)box;
    number_stored(box);
    struct box local = { 0, { 0 } };
    raw(shared);
    fiber_before(&local);
    sink = local.value;
    void *here = __tsan_get_current_fiber(), *other = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(other, 0);
    __tsan_switch_to_fiber(here, 0);
    fiber_after(&local);
    sink = local.value;
    return unused;
}
static void *stranger(void *unused)
{
    if (never)
        everything(shared);
    sem_wait(&told);
    pieces_other((struct box *)((uintptr_t)pieces[1] << 32 | pieces[0]));
    sem_post(&used);
    sem_wait(&told);
    unaligned_other(unaligned.box);
    sem_post(&used);
    sem_wait(&told);
    library_other(by_library);
    sem_post(&used);
    sem_wait(&told);
    computed_other((struct box *)((char *)base + distance));
    sem_post(&used);
    sem_wait(&told);
    stack_other((struct box *)((struct box *)((uintptr_t)pieces[1] << 32 | pieces[0]))->room[0]);
    sem_post(&used);
    return unused;
}
int main(void)
{
    pthread_t a, b;
    sem_init(&told, 0, 0);
    sem_init(&used, 0, 0);
    shared = calloc(1, sizeof *shared);
    pthread_create(&a, NULL, owner, NULL);
    pthread_create(&b, NULL, stranger, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    return 0;
}
C
echo 'void publish(void **place, void *what) { *place = what; }' >publish.c
gcc -g -c publish.c
"$redflag" cc --bitcode -g -O1 -fno-inline -pthread permits.c publish.o -o permits
"$redflag" static permits.bc >permits.pairs
"$redflag" caper -q --pairs permits.pairs -- ./permits
# shellcheck disable=SC2013 # numbers
for number in $(grep -n 'WRITES(.*/\*' permits.c | cut -d: -f1); do
    want=$(sed -n "${number}s|.*/\\* \\(.*\\) \\*/|\\1|p" permits.c)
    grep -q "permits.c:$number\b" permits.pairs || fail "line $number is in no static pair"
    mark=$(grep "permits.c:$number:" permits.pairs.sites | cut -c1 | sort -u | tr -d '\n')
    [ "${mark:-none}" = "$want" ] || fail "$(sed -n "${number}p" permits.c): ${mark:-none}"
done
# A hook that is called by a jump does not say from where: its site counts as escaped from the start.
cat >jump.c <<'C'
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct box { _Atomic long value; };
struct box *shared;
volatile int never;
static void set(struct box *b) { atomic_store(&b->value, 1); } /* jump */
static void *work(void *unused)
{
    struct box *box = calloc(1, sizeof *box);
    if (never) {
        shared = box;
        shared->value = 2;
    }
    set(box);
    return unused;
}
int main(void)
{
    pthread_t t[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    return 0;
}
C
REDFLAG_CC=gcc "$redflag" cc --bitcode -g -O2 -fno-inline -pthread -c jump.c
REDFLAG_CC=gcc "$redflag" cc -g -O2 -fno-inline --param=tsan-instrument-func-entry-exit=0 -pthread jump.c -o jump
objdump -d jump | grep -q 'jmp .*__tsan_atomic64_store' || fail "no jump to a hook: $(gcc --version | head -n 1)"
number=$(grep -n '/\* jump' jump.c | cut -d: -f1)
echo "jump.c:$number jump.c:$number" >jump.pairs
"$redflag" caper -q --pairs jump.pairs -- ./jump
grep -q "^+ .*jump.c:$number" jump.pairs.sites || fail "a jump: $(cat jump.pairs.sites)"

# -- with facts: what cannot be publishes nothing, and what no escaped memory is accessed at is asleep; should it escape then, it counts -----------
cat >sleep.c <<'C'
#include <pthread.h>
#include <stdlib.h>
struct box {
    long *inner;
    long count;
};
struct box *known, *late;
long numbers[4];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void fill(struct box *box, long n)
{
    box->count = n; /* fill */
}
static struct box *make(long n)
{
    struct box *box = malloc(sizeof *box); /* late-made */
    fill(box, n);
    return box;
}
static void *work(void *argument)
{
    struct box *mine = make(1);
    numbers[1] = mine->count; /* number */
    pthread_mutex_lock(&lock);
    if (argument)
        late = mine; /* publish-late */
    known->count++; /* known */
    pthread_mutex_unlock(&lock);
    fill(mine, 2);
    return argument;
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    known = malloc(sizeof *known);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, work, argc > 1 ? argv : 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
C
"$redflag" cc --bitcode -g -O1 -fno-inline -pthread sleep.c -o sleep
"$redflag" static --facts sleep.txt.facts sleep.bc >sleep.txt
fill=$(grep -n '/\* fill \*/' sleep.c | cut -d: -f1) number=$(grep -n '/\* number \*/' sleep.c | cut -d: -f1)
sleeper() { "$redflag" caper -q --pairs sleep.txt -- ./sleep "$@" || fail "sleep $*: exit $?"; }
shown() { "$redflag" caper --pairs sleep.txt --show | grep -q "sleep.c:$1 [^ ]*sleep.c:$1\$"; }
site_at() { grep "^[-+] .*sleep.c:$1:" sleep.txt.sites | cut -d' ' -f2; }
sleeper
sleeper
grep -qx z sleep.txt.sites || fail "the second run found something new: $(cat sleep.txt.sites)"
[ "$(grep -c '^a ' sleep.txt.sites)" -ge 1 ] || fail "no allocation escapes: $(cat sleep.txt.sites)"
shown "$fill" && fail "a private block counts as escaped"
sleeper
site_at "$fill" | sed 's/^/~ /' | grep -qxFf - sleep.txt.sites.idle || fail "it is not asleep: $(cat sleep.txt.sites.idle)"
site_at "$number" | sed 's/^/o /' | grep -qxFf - sleep.txt.sites.idle || fail "a number counts as an address: $(cat sleep.txt.sites.idle)"
shown "$fill" && fail "what is asleep counts as escaped"
sleeper now
grep -q '^! ' sleep.txt.sites || fail "an escape was not told: $(cat sleep.txt.sites)"
shown "$fill" || fail "what was asleep when its memory escaped does not count: $(cat sleep.txt.sites)"
sleeper
shown "$fill" || fail "it was taken back"
lines=$(wc -l <sleep.txt.sites)
sleeper
sleeper
[ "$(wc -l <sleep.txt.sites)" -eq "$lines" ] || fail "a run that finds nothing new writes what is known again: $(cat sleep.txt.sites)"
echo "read sleep.c:1 x" >wrong.facts
bad_status=0
"$redflag" caper --pairs sleep.txt --facts wrong.facts -- ./sleep 2>err || bad_status=$?
if [ "$bad_status" -ne 2 ] || ! grep -q '^redflag caper: wrong.facts:1: no fact' err; then
    fail "wrong facts: $bad_status $(cat err)"
fi

# An optimiser: a store of two lines has the facts of one, and does not publish what the other says; a block that a jump from a function without
# hooks has got has the facts of the caller's line, which allocates something else. Both are missed, and not if the code is as the text says.
cat >merge.c <<'C'
#include <pthread.h>
#include <stdlib.h>
struct box {
    long *fixed, *inner;
};
struct box shared;
static long numbers[4];
static volatile int there; /* nobody hears of it */
static __attribute__((noinline, no_sanitize("thread"))) void wait_for(int stage)
{
    while (there < stage)
        ;
}
static __attribute__((noinline, no_sanitize("thread"))) void reach(int stage)
{
    there = stage;
}
static __attribute__((noinline)) void hand_over(struct box *restrict to, long *const *restrict from)
{
    to->fixed = from[0]; /* fixed */
    to->inner = from[1]; /* pointer */
}
static void *work(void *argument)
{
    wait_for(1);
    if (*shared.inner > 5) /* other */
        abort();
    return argument;
}
int main(void)
{
    pthread_t thread;
    long *pointers[2] = { numbers, 0 };
    long *block = malloc(sizeof *block);
    pointers[1] = block;
    *block = 1;
    pthread_create(&thread, 0, work, 0);
    hand_over(&shared, pointers);
    *block = 3; /* owner */
    reach(1);
    pthread_join(thread, 0);
    return 0;
}
C
cat >jump.c <<'C'
#include <pthread.h>
#include <stdlib.h>
struct box {
    long *inner;
    long count;
};
struct box *known, *late;
long numbers[4];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void fill(struct box *box, long n)
{
    box->count = n; /* fill */
}
static __attribute__((noinline, no_sanitize("thread"))) struct box *make(void)
{
    return malloc(sizeof(struct box)); /* late-made */
}
static void *work(void *argument)
{
    struct box *mine = make(); long *beside = malloc(sizeof *beside); /* both */
    fill(mine, 1);
    numbers[1] = mine->count; /* number */
    pthread_mutex_lock(&lock);
    if (argument)
        late = mine; /* publish-late */
    known->count++; /* known */
    pthread_mutex_unlock(&lock);
    free(beside);
    fill(mine, 2);
    return argument;
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    known = malloc(sizeof *known);
    for (int i = 0; i < 2; i++)
        pthread_create(&t[i], 0, work, argc > 1 ? argv : 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], 0);
    return 0;
}
C
# counted NAME LINE RUNS OPTIONS...: is it, after so many runs and one with an argument?
counted() {
    local name=$1 line runs=$3
    line=$(grep -n "/\* $2 \*/" "$1.c" | cut -d: -f1)
    shift 3
    "$redflag" cc --bitcode -g -pthread "$@" "$name.c" -o "$name"
    "$redflag" static --facts "$name.txt.facts" "$name.bc" >"$name.txt"
    rm -f "$name".txt.sites*
    while [ "$runs" -gt 0 ]; do
        "$redflag" caper -q --pairs "$name.txt" -- "./$name" || fail "$name: exit $?"
        runs=$((runs - 1))
    done
    "$redflag" caper -q --pairs "$name.txt" -- "./$name" now || fail "$name now: exit $?"
    "$redflag" caper --pairs "$name.txt" --show | grep -q "$name.c:$line\b"
}
REDFLAG_CC=clang counted merge owner 3 -O2 || fail "two stores of two lines, and what they publish does not count"
REDFLAG_CC=clang counted merge owner 3 -O2 -mllvm -vectorize-slp=1 && fail "one store of two lines: if it counts, doc/caper.md is wrong"
counted jump fill 3 -O0 -fno-inline || fail "a block of a call does not count"
counted jump fill 3 -O2 -fno-inline && fail "a block of a jump: if it counts, doc/caper.md is wrong"

# -- a file that goes bad: one line, and the program goes on -----------------------------------------------------------------------------------
cat >cut.c <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int one, other, third, done;
static void *work(void *unused)
{
    one++; /* one */
    if (!done++ && getenv("CUT") && truncate(getenv("CUT"), getenv("HALF") ? 70 : 0))
        _exit(9);
    if (done == 1 && getenv("GONE") && unlink(getenv("GONE")))
        _exit(9);
    close(open("/dev/null", O_RDONLY)); /* at a descriptor there is no memory */
    other++; /* other */
    third++; /* third */
    return unused;
}
int main(int argc, char **argv)
{
    pthread_t t[2];
    (void)argv;
    for (int i = 0; i < 2 && argc < 2; i++) {
        pthread_create(&t[i], 0, work, 0);
        pthread_join(t[i], 0);
    }
    return 4;
}
C
"$redflag" cc --bitcode -g -O0 -pthread cut.c -o cut
"$redflag" static cut.bc >cut.txt
line_of() { grep -n "/\* $1 \*/" cut.c | cut -d: -f1; }
bad() { # WANTED-STATUS COMMAND...: its output goes to err
    local want=$1 status=0
    shift
    "$@" >err 2>&1 || status=$?
    [ "$status" -eq "$want" ] || fail "$*: exit $status instead of $want: $(cat err)"
}
for how in CUT=$dir/c.sites "CUT=$dir/c.sites HALF=1" GONE=$dir/c.sites; do
    rm -f c.sites
    # shellcheck disable=SC2086
    bad 4 env $how "$redflag" caper -q --pairs cut.txt --state c.sites -- ./cut
    [ ! -s err ] || fail "$how: $(cat err)"
    for site in one other third; do
        grep -q "^+ .*cut.c:$(line_of $site):" c.sites || fail "$how: $site is lost: $(cat c.sites)"
    done
    bad 4 "$redflag" caper -q --pairs cut.txt --state c.sites -- ./cut # it can be used again
    [ "$("$redflag" caper --pairs cut.txt --state c.sites --show | wc -l)" -ge 3 ] || fail "$how: the next run: $(cat c.sites)"
done
full() { # no file may grow or be written: as on a full disk
    (trap '' XFSZ && ulimit -f 0 && exec "$@") 2>&1 | cat
    return "${PIPESTATUS[0]}"
}
rm -f f.sites
bad 4 full "$redflag" caper -q --pairs cut.txt --state f.sites -- ./cut
[ "$(grep -c '^redflag caper: .*f.sites: File too large$' err)" -eq 1 ] || fail "full: $(cat err)"
[ ! -s f.sites ] || fail "full: half of it is there: $(cat f.sites)"
bad 4 "$redflag" caper -q --pairs cut.txt --state f.sites -- ./cut nothing
bad 4 full "$redflag" caper -q --pairs cut.txt --state f.sites -- ./cut
grep -q '^redflag: .*f.sites: cannot be written; the sites that escape are tried again at the end$' err || fail "full: $(cat err)"
bad 4 "$redflag" caper -q --pairs cut.txt --state /proc/none.sites -- ./cut
[ "$(grep -c '^redflag caper: /proc/none.sites: ' err)" -eq 1 ] || fail "read-only: $(cat err)"

# -- the store -----------------------------------------------------------------------------------------------------------------------------------
"$redflag" store -s s.db import pairs.txt
status=0
"$redflag" caper --store s.db --state s.sites -q -- ./app || status=$?
[ "$status" -eq 5 ] || fail "--store: exit $status"
[ "$("$redflag" store -s s.db pairs | grep -c ', dynamic, ')" -eq "$(wc -l <before)" ] || fail "$("$redflag" store -s s.db pairs)"

# -- sound: what races in a recorded run has its pair ------------------------------------------------------------------------------------------
share="heap-race global-race stack-* mutex-two-locks atomics-relaxed-* threads-* struct-* bytes-*"
[ -z "${ALL:-}" ] || share="*"
said() { sed -n -e '/^\/\//!q' -e "s|^// $2: *||p" "$1"; }
set -f
# shellcheck disable=SC2086
files=$(cd "$top/tests/programs" && for pattern in ${PROGRAMS:-$share}; do compgen -G "$pattern.c" || true; done | sort -u)
set +f
good=0 bad=0
for file in $files; do
    source=$top/tests/programs/$file name=${file%.c}
    [ "$name" != escape-not-hidden ] || continue # hides an address from everybody: doc/caper.md
    [ "$(said "$source" expect)" = race ] || continue
    [ -z "$(said "$source" part-of)$(said "$source" library)$(said "$source" libs)" ] || continue
    case $name in fd-* | fork-* | exit-* | many-*) continue ;; esac # no memory; other processes; after the end; long
    case "$(said "$source" kind)" in "" | "data race"*) ;; *) continue ;; esac
    flags=$(said "$source" flags | tr '\n' ' ')
    case $flags in *openmp*) continue ;; esac
    # shellcheck disable=SC2086
    "$redflag" cc --bitcode -g -O1 -pthread -I "$top" $flags -o "$name" "$source" 2>log || { [ -n "${ALL:-}" ] && continue; fail "$file: $(cat log)"; }
    "$redflag" static --facts "$name.pairs.facts" "$name.bc" >"$name.pairs"
    for _ in 1 2 3; do # to the steady state; otherwise it ends with the program's status
        status=0
        timeout 100 "$redflag" caper -q --pairs "$name.pairs" -- "./$name" >log 2>&1 </dev/null || status=$?
        case $status in 2 | 124) fail "$name: caper ended with $status: $(cat log)" ;; esac
    done
    "$redflag" caper --pairs "$name.pairs" --show | sed 's|[^ ]*/||g' | awk '{ print $1, $2; print $2, $1 }' | sort -u >dynamic
    timeout 100 "$redflag" record -q -o trace.rft -- "./$name" >log 2>&1 </dev/null || true # with the program's status
    status=0
    "$redflag" analyze -d generic trace.rft >races 2>&1 || status=$?
    [ "$status" -eq 66 ] || [ -n "${ALL:-}" ] || fail "$name: its recording ends with $status, not with races: $(tail -n 3 races)"
    awk '/^    first /{ first = $8 } /^    second /{ print first, $8 }' races |
        grep -xE "(${name//-/\\-}\\.c|order\\.h):[0-9]+ (${name//-/\\-}\\.c|order\\.h):[0-9]+" | sort -u >wanted || true
    missing=$(comm -13 dynamic wanted | head -n 3)
    [ -z "$missing" ] || { echo "caper.sh: $name: a race without a pair: $missing" >&2 && bad=1; }
    good=$((good + $(wc -l <wanted)))
done
[ "$bad" -eq 0 ] || exit 1
[ "$good" -gt 5 ] || fail "only $good races were compared"

# -- bad usage --------------------------------------------------------------------------------------------------------------------------------------
echo one >one.txt
for bad in "" "--pairs pairs.txt" "--pairs none.txt ./app" "--pairs one.txt ./app" "--store s.db ./app" "--pairs pairs.txt --state /none/x ./app" \
    "--pairs pairs.txt --store s.db ./app"; do
    status=0
    # shellcheck disable=SC2086
    "$redflag" caper $bad >out 2>err || status=$?
    [ "$status" -eq 2 ] || fail "'$bad': exit $status"
    [ "$(wc -l <err)" -eq 1 ] || fail "'$bad': $(cat err)"
done
echo "caper.sh: $good races have their pair"
