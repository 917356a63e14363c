/* See guest/chase/chase.h. */
#include "guest/chase/chase.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "core/account.h"
#include "guest/access.h"
#include "guest/chase/budget.h"
#include "guest/intercept.h"
#include "guest/options.h"
#include "guest/spin.h"
#include "guest/system.h"
#include "guest/text.h"

RF_TLS struct rf_chase_self rf_chase_self;
uint32_t rf_chase_waiting;

struct waiter {
    const struct rf_chase_self *who; /* NULL: free */
    uint32_t caught;                 /* futex: 1 if it need not wait any more */
    struct rf_chase_side side;
};

#define KNOWN 256u /* pairs of stacks that were reported; what is beyond is reported again, and the reporter merges it */

/* Under the lock; `process` and `seed` are written before there are threads. */
static struct {
    uint32_t lock;
    uint32_t sequence; /* odd while the budget is changed: budget_now() */
    struct rf_budget budget;
    struct waiter waiters[RF_CHASE_WAITERS];
    uint64_t known[KNOWN];
    uint64_t crowded; /* waits that did not begin since too many wait */
    uint64_t races;
    uint32_t over;    /* the race was found, and that is enough. Read without the lock: a stale value costs one more wait */
    bool keep_going;
    uint32_t threads; /* numbers given */
    struct rf_account *account; /* NULL: nobody asks */
    uint64_t entered;           /* there, of the present stretch */
    int32_t process;
    uint64_t seed;
} chase;

static uint64_t clock_now(void)
{
    static int (*get)(clockid_t, struct timespec *);
    struct timespec time;
    if (__builtin_expect(!get, 0)) {
        void *found = rf_find_real("clock_gettime"); /* which needs no system call */
        __atomic_store_n((void **)&get, found, __ATOMIC_RELAXED);
    }
    get(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* -- the lock -------------------------------------------------------------------------------------------------------------------- */

static uint64_t enter(void)
{
    uint64_t all = ~(uint64_t)0, before;
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    rf_spin_lock(&chase.lock);
    return before;
}

static void leave(uint64_t before)
{
    rf_spin_unlock(&chase.lock);
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

/* The budget changes between the two: who reads it without the lock sees an odd number, or another one afterwards. */
static void change_begin(void)
{
    __atomic_store_n(&chase.sequence, chase.sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void change_end(void)
{
    __atomic_store_n(&chase.sequence, chase.sequence + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&rf_chase_waiting, chase.budget.waiters, __ATOMIC_RELEASE);
}

typedef uint64_t __attribute__((may_alias)) word;

/* The budget as it was at one instant, without the lock. False: it is just being changed. */
static bool budget_now(struct rf_budget *copy)
{
    uint32_t before = __atomic_load_n(&chase.sequence, __ATOMIC_ACQUIRE);
    const volatile word *from = (const volatile word *)&chase.budget;
    word *to = (word *)copy;
    for (size_t i = 0; i < sizeof *copy / sizeof *to; i++)
        to[i] = from[i];
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return !(before & 1) && before == __atomic_load_n(&chase.sequence, __ATOMIC_RELAXED);
}

_Static_assert(sizeof(struct rf_budget) % sizeof(word) == 0, "budget_now() copies words");

/* -- who is here ----------------------------------------------------------------------------------------------------------------- */

static bool our_process(void)
{
    return (int32_t)RF_SYSCALL(SYS_getpid, 0) == chase.process;
}

/* What the calling thread is about to do; false: nothing. */
static bool describe(struct rf_chase_side *side, uintptr_t addr, uintptr_t second, const struct rf_chase_site *site)
{
    const struct rf_hook *hook = &site->hook;
    size_t size = hook->kind == RF_HOOK_RANGE ? second : hook->size;
    if (!size || (hook->kind == RF_HOOK_VPTR_UPDATE && *(const uintptr_t *)addr == second))
        return false;
    side->site = site;
    side->addr = addr;
    side->size = size;
    side->flags = (hook->write ? RF_A_WRITE : 0) | (hook->kind == RF_HOOK_ATOMIC ? RF_A_ATOMIC : 0) |
                  (hook->vptr ? RF_A_VPTR : 0) | (hook->is_volatile ? RF_A_VOLATILE : 0);
    return true;
}

/* The same with its stack: while it stands at its access. */
static void describe_fully(struct rf_chase_side *side)
{
    side->tid = (int32_t)RF_SYSCALL(SYS_gettid, 0);
    if (!rf_chase_self.number)
        rf_chase_self.number =
            (side->tid == chase.process ? 0 : __atomic_add_fetch(&chase.threads, 1, __ATOMIC_RELAXED)) + 1;
    side->thread = rf_chase_self.number - 1;
    side->depth = rf_chase_stack(side->site, side->pcs);
}

static bool conflict(const struct rf_chase_side *a, const struct rf_chase_side *b)
{
    return a->addr < b->addr + b->size && b->addr < a->addr + a->size && ((a->flags | b->flags) & RF_A_WRITE) &&
           !(a->flags & b->flags & RF_A_ATOMIC);
}

/* -- s2 -------------------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t key, uint64_t value)
{
    key = (key ^ value) * 0x9e3779b97f4a7c15u;
    return key ^ (key >> 29);
}

static bool is_new(const struct rf_chase_side *a, const struct rf_chase_side *b)
{
    uint64_t key = 1;
    for (unsigned i = 0; i < a->depth; i++)
        key = mix(key, a->pcs[i]);
    for (unsigned i = 0; i < b->depth; i++)
        key = mix(key, b->pcs[i] + 1);
    key |= 1;
    for (unsigned i = 0, at = key % KNOWN; i < KNOWN; i++, at = (at + 1) % KNOWN) {
        if (chase.known[at] == key && rf_options.suppress_equal_stacks)
            return false;
        if (!chase.known[at]) {
            chase.known[at] = key;
            return true;
        }
    }
    return true;
}

static struct waiter *collides(const struct rf_chase_side *side)
{
    for (unsigned i = 0; i < RF_CHASE_WAITERS; i++) {
        struct waiter *waiter = &chase.waiters[i];
        if (waiter->who && waiter->who != &rf_chase_self && !waiter->caught && conflict(&waiter->side, side))
            return waiter;
    }
    return NULL;
}

static void let_go(struct waiter *waiter)
{
    if (!waiter->who)
        return;
    __atomic_store_n(&waiter->caught, 1, __ATOMIC_RELEASE);
    rf_futex_wake(&waiter->caught);
}

static __attribute__((noinline)) void look_for_waiters(uintptr_t addr, uintptr_t second, const struct rf_chase_site *site)
{
    struct rf_chase_side now, waits;
    if (!our_process() || !describe(&now, addr, second, site))
        return;
    uint64_t mask = enter();
    struct waiter *waiter = collides(&now);
    if (!waiter) {
        leave(mask);
        return;
    }
    describe_fully(&now);
    waits = waiter->side;
    bool is_first = is_new(&waits, &now);
    chase.races++;
    let_go(waiter);
    if (!chase.keep_going) {
        __atomic_store_n(&chase.over, 1, __ATOMIC_RELAXED);
        for (unsigned i = 0; i < RF_CHASE_WAITERS; i++)
            let_go(&chase.waiters[i]);
    }
    rf_spin_unlock(&chase.lock);
    if (is_first)
        rf_chase_report(&waits, &now);
    RF_SYSCALL(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof mask);
}

/* -- s1 -------------------------------------------------------------------------------------------------------------------------- */

static void sleep_until(struct waiter *waiter, uint64_t until)
{
    struct timespec time = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
    while (!__atomic_load_n(&waiter->caught, __ATOMIC_ACQUIRE)) {
        long result = RF_SYSCALL(SYS_futex, &waiter->caught, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &time, NULL,
                                 FUTEX_BITSET_MATCH_ANY);
        if (result != 0 && clock_now() >= until)
            return;
    }
}

static struct waiter *free_waiter(void)
{
    for (unsigned i = 0; i < RF_CHASE_WAITERS; i++)
        if (!chase.waiters[i].who)
            return &chase.waiters[i];
    chase.crowded++;
    return NULL;
}

static double uniform(struct rf_chase_self *self)
{
    if (!self->random)
        self->random = mix(chase.seed, (uint64_t)RF_SYSCALL(SYS_gettid, 0)) | 1;
    return rf_chance_uniform(rf_chance_next(&self->random));
}

/* ---- the account ---- */

static void enter_waiting(uint64_t ns)
{
    if (chase.account)
        __atomic_fetch_add(&chase.account->waited, ns, __ATOMIC_RELAXED);
}

/* Does the path lead to the memory of that name? */
static bool leads_to(const char *path, const char *name, size_t length)
{
    char link[128] = "";
    static const char before[] = "/memfd:", behind[] = " (deleted)";
    long size = RF_SYSCALL(SYS_readlinkat, AT_FDCWD, path, link, sizeof link - 1);
    const char *at = link + sizeof before - 1;
    if (size < 0 || !rf_text_begins(link, before))
        return false;
    for (size_t i = 0; i < length; i++)
        if (*at++ != name[i])
            return false;
    return rf_text_same(at, behind);
}

/* It is as large as the page that is mapped, and only its maker could make it smaller. The second look: the path led there all the time. */
static void open_account(const char *place)
{
    const char *path = place;
    while (path && *path && *path != ' ')
        path++;
    size_t length = (size_t)(path - place);
    if (!path || !*path++ || !rf_text_begins(place, RF_ACCOUNT_NAME) || !rf_text_begins(path, "/proc/") || !leads_to(path, place, length))
        return;
    long fd = RF_SYSCALL(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    long size = leads_to(path, place, length) ? RF_SYSCALL(SYS_lseek, fd, 0, 2 /* SEEK_END */) : -1;
    long at = size < (long)sizeof *chase.account
                  ? -1
                  : RF_SYSCALL(SYS_mmap, NULL, sizeof *chase.account, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    RF_SYSCALL(SYS_close, fd);
    if (at < 0 && at > -4096)
        return;
    chase.account = (struct rf_account *)(uintptr_t)at;
    __atomic_fetch_add(&chase.account->processes, 1, __ATOMIC_RELAXED);
}

/* False: there was no budget, or no room, any more. */
static bool wait_here(const struct rf_chase_side *side)
{
    double part = uniform(&rf_chase_self);
    uint64_t mask = enter(), now = clock_now();
    struct waiter *waiter = !chase.over && rf_budget_allows(&chase.budget, now) ? free_waiter() : NULL;
    if (!waiter) {
        leave(mask);
        return false;
    }
    waiter->side = *side;
    waiter->caught = 0;
    waiter->who = &rf_chase_self;
    change_begin();
    uint64_t until = rf_budget_begin(&chase.budget, now, part);
    if (chase.budget.waiters == 1)
        enter_waiting(chase.entered = until - now);
    change_end();
    rf_spin_unlock(&chase.lock); /* signals stay blocked */
    sleep_until(waiter, until);
    rf_spin_lock(&chase.lock);
    waiter->who = NULL;
    change_begin();
    now = clock_now();
    rf_budget_end(&chase.budget, now, until);
    if (!chase.budget.waiters)
        enter_waiting(now - chase.budget.since - chase.entered);
    change_end();
    leave(mask);
    return true;
}

/* While there is no budget at all and the site is in a hot loop, one reading of the clock is taken for the instances that follow within
 * some HOT_NS: their number doubles as long as they come that fast. The budget changes over milliseconds. */
#define HOT_NS 25000u
#define HOT_MOST 16383u

static uint32_t hot_skip(struct rf_chase_self *self, uint64_t since_last)
{
    if (since_last >= HOT_NS)
        self->hot = 0;
    else if (self->hot < HOT_MOST)
        self->hot = 2 * self->hot + 1;
    return self->hot;
}

/* P_freq has chosen this instance: now P_budget decides. */
static __attribute__((noinline)) void consider(uintptr_t addr, uintptr_t second, const struct rf_chase_site *site)
{
    struct rf_chase_self *self = &rf_chase_self;
    struct rf_budget budget;
    struct rf_chase_side side;
    if (__atomic_load_n(&chase.over, __ATOMIC_RELAXED)) {
        self->skip = UINT32_MAX;
        return;
    }
    uint64_t now = clock_now(), last = self->last_look;
    double probability = budget_now(&budget) ? rf_budget_probability(&budget, now) : 0;
    self->last_look = now;
    if (!(probability > 0)) {
        uint32_t hot = hot_skip(self, now - last);
        self->skip = hot ? hot : rf_chance_skip(self->samples, uniform(self));
        return;
    }
    self->hot = 0;
    if (uniform(self) < probability && our_process() && describe(&side, addr, second, site)) {
        describe_fully(&side);
        self->samples += wait_here(&side);
    }
    self->skip = rf_chance_skip(self->samples, uniform(self));
}

/* -- the hooks come here --------------------------------------------------------------------------------------------------------- */

void rf_chase_at(uintptr_t addr, uintptr_t second, uint32_t number)
{
    const struct rf_chase_site *site = &rf_chase_sites[number];
    int *error = __errno_location(), before = *error; /* what finds stacks may change it */
    if ((site->roles & RF_PAIR_SECOND) && __atomic_load_n(&rf_chase_waiting, __ATOMIC_ACQUIRE))
        look_for_waiters(addr, second, site);
    if (site->roles & RF_PAIR_FIRST) {
        if (rf_chase_self.skip)
            rf_chase_self.skip--;
        else
            consider(addr, second, site);
    }
    *error = before;
}

/* -- begin and end --------------------------------------------------------------------------------------------------------------- */

/* Nobody waits in the child. Time that somebody was waiting when it was born is counted for it too: it may have held the child up. */
static void in_child(void)
{
    uint64_t now = clock_now();
    chase.lock = 0;
    if (chase.budget.waiters)
        chase.budget.waited += now - chase.budget.since;
    chase.budget.waiters = 0;
    for (unsigned i = 0; i < RF_CHASE_WAITERS; i++)
        chase.waiters[i].who = NULL;
    chase.sequence = 0;
    chase.process = (int32_t)RF_SYSCALL(SYS_getpid, 0);
    chase.races = 0;
    rf_chase_self.number = 0;
    __atomic_store_n(&rf_chase_waiting, 0, __ATOMIC_RELEASE);
    rf_chase_report_fork_child();
}

void rf_chase_begin(const struct rf_chase_wish *wish)
{
    uint64_t now = clock_now();
    chase.budget = (struct rf_budget){
        .rate = wish->rate, .delay = wish->delay_ns, .least = wish->least_ns, .started = now
    };
    chase.process = (int32_t)RF_SYSCALL(SYS_getpid, 0);
    chase.keep_going = wish->keep_going;
    open_account(wish->account);
    chase.seed = wish->seed ? wish->seed : now ^ (uint64_t)chase.process << 40;
    pthread_atfork(NULL, NULL, in_child);
    if (wish->first[0] && wish->second[0])
        rf_chase_stack_begin();
    rf_chase_wanted(wish->first, wish->second);
}

void rf_chase_end(void)
{
    if (!rf_options.stats)
        return;
    uint64_t mask = enter(), now = clock_now(), total = now - chase.budget.started;
    uint64_t waited = rf_budget_waited(&chase.budget, now);
    struct rf_chase_found found = rf_chase_found();
    uint64_t waits = chase.budget.waits, late = chase.budget.late, crowded = chase.crowded, races = chase.races;
    bool holds = rf_budget_holds(&chase.budget, now);
    leave(mask);
    rf_say("chase: %u hooks at the first site, %u at the second, %u taken out, %u not patched", found.first, found.second,
           found.removed, rf_chase_unpatched);
    rf_say("chase: %llu waits, %llu collisions, %llu us waited of %llu us, latest %llu us, %llu found no room; %s",
           (unsigned long long)waits, (unsigned long long)races, (unsigned long long)waited / 1000,
           (unsigned long long)total / 1000, (unsigned long long)late / 1000, (unsigned long long)crowded,
           holds ? "within the budget" : "over the budget");
}
