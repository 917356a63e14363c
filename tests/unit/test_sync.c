/* The validator of sync/: one text, run against each policy.
 *
 * 1. Real threads step on a few words; the step counts, and names who stepped last. A lost step is a count that is too low.
 * 2. The race of Wood's Figure 5.1, two barriers at once: with its interleaving forced, and many times by chance. A policy that
 *    makes steps atomic finds it at least once in each round; `none` misses it when the interleaving is forced.
 * 3. What only fib has: an owner that never comes to a yield point, owners that park, end, and whose names are used again; requests
 *    that come together; acknowledgements.
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sync/cas.h"
#include "sync/fib.h"
#include "sync/none.h"
#include "sync/spin.h"
#include "tests/harness.h"

#define THREADS 8
#define ROUNDS 8000
#define WORDS 3
#define TAKEN UINT64_MAX

static void yield(void)
{
    sched_yield();
}

/* A step, and how it is called: by the policies directly, by fib through requests. */
struct access {
    rf_step_fn *step;
    unsigned thread;
    unsigned times;  /* the step was called */
    bool race;
    const uint8_t *clock; /* of the figure */
    bool writes;
    void (*in_the_middle)(struct access *access);
};

/* A word of all tests: the lowest byte names who stepped last, from 1 on. */
static unsigned last_of(uint64_t word)
{
    return (unsigned)(word & 0xff);
}

/* ---- fib's host ---- */

static struct rf_fib_owner owners[256] __attribute__((aligned(64)));
static bool fences;
static uint64_t fib_groups, fib_grouped, tries;

static struct rf_fib_owner *owner_of(const uint64_t *place, uint64_t word)
{
    (void)place;
    return word ? &owners[last_of(word)] : NULL;
}

static void group(struct rf_fib_request *request)
{
    uint64_t *place = request->place, copy = *place;
    unsigned count = 0;
    for (; request; request = request->next, count++) {
        struct access *access = request->access;
        copy = access->step(access, copy);
    }
    __atomic_store_n(place, copy, __ATOMIC_RELEASE);
    __atomic_fetch_add(&fib_groups, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&fib_grouped, count, __ATOMIC_RELAXED);
}

static bool first(struct rf_fib_request *request)
{
    struct access *access = request->access;
    uint64_t old = 0, next = access->step(access, old);
    return __atomic_compare_exchange_n(request->place, &old, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void fence(void)
{
    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

static uint32_t waiters;
static const struct rf_fib_host host = { owner_of, group, first, fence, yield, &fences, 200, &waiters };

/* ---- the policies ---- */

static void step_none(struct access *access, uint64_t *place)
{
    rf_none_step(place, access->step, access);
}

static void step_spin(struct access *access, uint64_t *place)
{
    rf_spin_step(place, access->step, access, TAKEN, yield);
}

static void step_cas(struct access *access, uint64_t *place)
{
    rf_cas_step(place, access->step, access);
}

static enum rf_fib_kind step_fib_kind(struct access *access, uint64_t *place)
{
    struct rf_fib_request request = { NULL, place, access, 0 };
    uint64_t late = 0;
    enum rf_fib_kind kind = rf_fib_step(&owners[access->thread], &request, &host, &late);
    __atomic_fetch_add(&tries, late, __ATOMIC_RELAXED);
    return kind;
}

static void step_fib(struct access *access, uint64_t *place)
{
    step_fib_kind(access, place);
}

/* A thread waits, or ends. */
static void park_nothing(unsigned thread)
{
    (void)thread;
}

static void park_fib(unsigned thread)
{
    rf_fib_park(&owners[thread], &host);
}

static const struct policy {
    const char *name;
    bool atomic;
    bool fences;
    void (*step)(struct access *access, uint64_t *place);
    void (*park)(unsigned thread);
} policies[] = {
    { "none", false, false, step_none, park_nothing },
    { "spin", true, false, step_spin, park_nothing },
    { "cas", true, false, step_cas, park_nothing },
    { "fib", true, false, step_fib, park_fib },
    { "fib without membarrier", true, true, step_fib, park_fib },
};
#define POLICIES (sizeof policies / sizeof *policies)

static void begin(const struct policy *policy)
{
    memset(owners, 0, sizeof owners);
    fences = policy->fences;
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) < 0)
        fences = true;
}

/* ---- 1: no step is lost ---- */

static uint64_t counted(void *argument, uint64_t old)
{
    struct access *access = argument;
    if (access->times++ == 0 && access->in_the_middle)
        access->in_the_middle(access);
    return ((old >> 8) + 1) << 8 | access->thread;
}

static void let_others_run(struct access *access)
{
    (void)access;
    sched_yield();
}

struct hammer {
    const struct policy *policy;
    uint64_t *words;
    unsigned thread, rounds;
};

static void *hammer(void *argument)
{
    const struct hammer *h = argument;
    uint64_t state = h->thread;
    for (unsigned i = 0; i < h->rounds; i++) {
        state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        struct access access = { .step = counted, .thread = h->thread };
        if ((state >> 50) % 512 == 0) /* a yield takes long where others want the core */
            access.in_the_middle = let_others_run;
        /* Mostly a word of its own, so that there are local steps between the conflicts. */
        unsigned word = state >> 60 ? h->thread % WORDS : (unsigned)(state >> 33) % WORDS;
        h->policy->step(&access, &h->words[word]);
        if ((state >> 40) % 256 == 0) {
            h->policy->park(h->thread);
            sched_yield();
        }
    }
    h->policy->park(h->thread);
    return NULL;
}

static uint64_t hammered(const struct policy *policy, unsigned threads, unsigned rounds)
{
    uint64_t words[WORDS] = { 0 }, sum = 0;
    pthread_t ids[255];
    struct hammer hammers[255];
    for (unsigned t = 0; t < threads; t++) {
        hammers[t] = (struct hammer){ policy, words, t + 1, rounds };
        assert_int_equal(pthread_create(&ids[t], NULL, hammer, &hammers[t]), 0);
    }
    for (unsigned t = 0; t < threads; t++)
        pthread_join(ids[t], NULL);
    for (unsigned i = 0; i < WORDS; i++)
        sum += words[i] >> 8;
    return sum;
}

static void test_no_step_is_lost(void **state)
{
    (void)state;
    for (unsigned i = 0; i < POLICIES; i++) {
        begin(&policies[i]);
        uint64_t wanted = (uint64_t)THREADS * ROUNDS, sum = hammered(&policies[i], THREADS, ROUNDS);
        if (!policies[i].atomic)
            print_message("%s: %d of %d steps lost\n", policies[i].name, (int)(wanted - sum), (int)wanted);
        else
            assert_int_equal(sum, wanted);
    }
}

/* Names of owners are used again: all threads of a wave have ended, and the next one has other threads with the same names. */
static void test_many_threads(void **state)
{
    (void)state;
    for (unsigned i = 0; i < POLICIES; i++) {
        begin(&policies[i]);
        uint64_t sum = 0;
        for (unsigned wave = 0; wave < 4; wave++)
            sum += hammered(&policies[i], 200, 50);
        if (policies[i].atomic)
            assert_int_equal(sum, 4 * 200 * 50);
    }
}

/* ---- 2: Figure 5.1 ---- */

/* The word: R, W and who stepped last, as time << 4 | thread (one byte each); epochs are from 1 on. */
#define FIGURE(w, r, last) ((uint64_t)(w) << 16 | (uint64_t)(r) << 8 | (last))

static bool ordered(const uint8_t *clock, unsigned epoch)
{
    return epoch >> 4 <= clock[epoch & 15];
}

static uint64_t figure_step(void *argument, uint64_t old)
{
    struct access *access = argument;
    unsigned w = old >> 16 & 0xff, r = old >> 8 & 0xff, now = (unsigned)access->clock[access->thread] << 4 | access->thread;
    access->times++;
    access->race = !ordered(access->clock, access->writes ? r : w) || (access->writes && !ordered(access->clock, w));
    if (access->in_the_middle)
        access->in_the_middle(access);
    return FIGURE(access->writes ? now : w, now, access->thread);
}

static const uint8_t clock1[4] = { 0, 5, 3, 1 }, clock2[4] = { 0, 2, 7, 1 };
static uint64_t figure_word;
static const struct policy *figure_policy;
static uint32_t in_the_middle, second_done;

/* t1 has decided, and has not stored: now t2 comes. It is waited for to its end if nothing holds it up; otherwise for a while, in which it
 * comes to wherever it must wait for us. */
static void wait_in_the_middle(struct access *access)
{
    if (access->times > 1)
        return;
    __atomic_store_n(&in_the_middle, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; (i < 200 || !figure_policy->atomic) && !__atomic_load_n(&second_done, __ATOMIC_SEQ_CST); i++)
        usleep(100);
}

static void *figure_first(void *argument)
{
    figure_policy->step(argument, &figure_word);
    figure_policy->park(1);
    return NULL;
}

static void *figure_second(void *argument)
{
    while (!__atomic_load_n(&in_the_middle, __ATOMIC_SEQ_CST))
        sched_yield();
    figure_policy->step(argument, &figure_word);
    __atomic_store_n(&second_done, 1, __ATOMIC_SEQ_CST);
    figure_policy->park(2);
    return NULL;
}

/* One round; how many of the two said that they race. */
static unsigned figure_round(const struct policy *policy, bool forced, uint64_t before)
{
    struct access one = { .step = figure_step, .thread = 1, .clock = clock1, .writes = true };
    struct access two = { .step = figure_step, .thread = 2, .clock = clock2 };
    pthread_t first_thread, second_thread;
    begin(policy);
    figure_policy = policy;
    figure_word = before;
    in_the_middle = !forced;
    second_done = 0;
    if (forced)
        one.in_the_middle = wait_in_the_middle;
    pthread_create(&second_thread, NULL, figure_second, &two);
    pthread_create(&first_thread, NULL, figure_first, &one);
    pthread_join(first_thread, NULL);
    pthread_join(second_thread, NULL);
    return one.race + two.race;
}

static void test_figure_5_1(void **state)
{
    (void)state;
    /* 1@t3 in R and W, as the figure has it; owned by t3, who is not there, by t1, and by t2. */
    for (unsigned last = 1; last <= 3; last++) {
        uint64_t before = FIGURE(1 << 4 | 3, 1 << 4 | 3, last);
        for (unsigned i = 0; i < POLICIES; i++) {
            unsigned forced = figure_round(&policies[i], true, before), lost = 0;
            if (policies[i].atomic)
                assert_true(forced >= 1);
            else
                assert_int_equal(forced, 0); /* the race is lost: that is what atomicity is for */
            for (unsigned round = 0; round < 300; round++)
                lost += !figure_round(&policies[i], false, before);
            if (policies[i].atomic)
                assert_int_equal(lost, 0);
        }
    }
}

/* ---- 3: fib alone ---- */

static uint64_t lonely;
static uint32_t phase;

static void wait_for_phase(uint32_t wanted)
{
    while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) < wanted)
        sched_yield();
}

static void next_phase(void)
{
    __atomic_fetch_add(&phase, 1, __ATOMIC_RELEASE);
}

/* Takes the word, and then computes without a yield point until another thread has stepped on it: nobody but the asker can help. */
static void *computing(void *argument)
{
    (void)argument;
    struct access access = { .step = counted, .thread = 1 };
    step_fib(&access, &lonely);
    next_phase();
    while (__atomic_load_n(&phase, __ATOMIC_ACQUIRE) < 2)
        ;
    assert_int_equal(last_of(lonely), 2);
    step_fib(&access, &lonely); /* and it sees that the word is not its own any more */
    return NULL;
}

static void test_owner_computes(void **state)
{
    (void)state;
    for (unsigned i = 3; i < POLICIES; i++) {
        pthread_t id;
        begin(&policies[i]);
        lonely = 0;
        phase = 0;
        pthread_create(&id, NULL, computing, NULL);
        wait_for_phase(1);
        struct access access = { .step = counted, .thread = 2 };
        assert_int_equal(step_fib_kind(&access, &lonely), RF_FIB_TAKEN_OVER);
        rf_fib_park(&owners[2], &host);
        next_phase();
        pthread_join(id, NULL);
        assert_int_equal(lonely >> 8, 3);
        assert_int_equal(last_of(lonely), 1);
    }
}

/* Each kind of step by itself, without other threads: the owner is a name. */
static void test_kinds(void **state)
{
    (void)state;
    begin(&policies[3]);
    uint64_t word = 0;
    struct access one = { .step = counted, .thread = 1 }, two = { .step = counted, .thread = 2 };
    assert_int_equal(step_fib_kind(&one, &word), RF_FIB_FIRST);
    assert_int_equal(step_fib_kind(&one, &word), RF_FIB_LOCAL);
    assert_int_equal(owners[1].flags, RF_FIB_RUNNING);
    rf_fib_park(&owners[1], &host);
    assert_int_equal(step_fib_kind(&two, &word), RF_FIB_SELF_SERVED);
    assert_int_equal(step_fib_kind(&two, &word), RF_FIB_LOCAL);
    assert_int_equal(step_fib_kind(&one, &word), RF_FIB_TAKEN_OVER); /* 2 runs, but there is nobody to answer */
    assert_int_equal(word >> 8, 5);
    /* A word that has changed hands when the owner's lock is there: to be looked at again. */
    struct rf_fib_request stale = { NULL, &word, &two, 0 };
    rf_fib_ask(&owners[2], &owners[3], &stale, &host);
    assert_int_equal(stale.answer, RF_FIB_AGAIN);
    assert_int_equal(word >> 8, 5);
}

/* Requests for two words that wait together: each word is published once, and the order is kept. */
static void test_groups(void **state)
{
    (void)state;
    begin(&policies[3]);
    uint64_t words[2] = { 1 << 8 | 1, 1 << 8 | 1 };
    struct access accesses[6];
    struct rf_fib_request requests[6];
    rf_fib_enter(&owners[1], &host);
    rf_fib_leave(&owners[1]);
    for (unsigned i = 0; i < 6; i++) {
        accesses[i] = (struct access){ .step = counted, .thread = i + 2 };
        requests[i] = (struct rf_fib_request){ i < 5 ? &requests[i + 1] : NULL, &words[i % 2], &accesses[i], RF_FIB_NO_ANSWER };
    }
    owners[1].first = &requests[0];
    owners[1].last = &requests[5];
    owners[1].flags |= RF_FIB_ASKED;
    fib_groups = fib_grouped = 0;
    rf_fib_enter(&owners[1], &host); /* the yield point */
    rf_fib_leave(&owners[1]);
    assert_int_equal(fib_groups, 2);
    assert_int_equal(fib_grouped, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(requests[i].answer, RF_FIB_DONE);
    assert_int_equal(words[0], 4 << 8 | 6); /* 2, 4, 6 */
    assert_int_equal(words[1], 4 << 8 | 7); /* 3, 5, 7 */
    assert_int_equal(owners[1].flags, RF_FIB_RUNNING);
}

/* An acknowledgement: what the owner did in its active stretch is there when it is given. */
static uint32_t inside_value, stop;

static void *acknowledging(void *argument)
{
    (void)argument;
    for (uint32_t i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
        rf_fib_enter(&owners[1], &host);
        __atomic_store_n(&inside_value, 1, __ATOMIC_RELAXED);
        for (volatile unsigned j = 0; j < i % 64; j++)
            ;
        __atomic_store_n(&inside_value, 0, __ATOMIC_RELAXED);
        rf_fib_leave(&owners[1]);
        if (i % 1000 == 0)
            rf_fib_park(&owners[1], &host);
    }
    rf_fib_park(&owners[1], &host);
    return NULL;
}

/* Between a hold and its end the owner is never active; and it always gets on after an acknowledgement. */
static void test_acknowledgements(void **state)
{
    (void)state;
    for (unsigned i = 3; i < POLICIES; i++) {
        pthread_t id;
        begin(&policies[i]);
        stop = 0;
        pthread_create(&id, NULL, acknowledging, NULL);
        for (unsigned round = 0; round < 2000; round++) {
            uint32_t yields;
            if (rf_fib_ack_ask(&owners[1], &host, &yields))
                rf_fib_ack_await(&owners[2], &owners[1], yields, &host);
            rf_fib_lock(&owners[1], &host);
            rf_fib_hold(&owners[1], &host);
            for (unsigned look = 0; look < 50; look++)
                assert_int_equal(__atomic_load_n(&inside_value, __ATOMIC_RELAXED), 0);
            rf_fib_let_go(&owners[1]);
            rf_fib_unlock(&owners[1]);
        }
        __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
        pthread_join(id, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_step_is_lost), cmocka_unit_test(test_many_threads),
                                        cmocka_unit_test(test_figure_5_1),      cmocka_unit_test(test_owner_computes),
                                        cmocka_unit_test(test_kinds),           cmocka_unit_test(test_groups),
                                        cmocka_unit_test(test_acknowledgements) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
