/* The detector behind the tap is chosen, and hears of synchronisation. See guest/online_parts.h. */
#include "guest/online_parts.h"

#include "guest/accu.h"
#include "guest/memory.h"
#include "guest/options.h"
#include "guest/pacer.h"
#include "guest/pair.h"
#include "guest/text.h"
#include "guest/threads.h"

#define RF_ONLINE(name) extern const struct rf_online rf_online_##name;
#include "guest/online.def"
#undef RF_ONLINE

static const struct rf_online *const all[] = {
#define RF_ONLINE(name) &rf_online_##name,
#include "guest/online.def"
#undef RF_ONLINE
};

const struct rf_online *rf_online_detector;
struct rf_options rf_online_settings;
uint32_t rf_online_lock;
uint64_t rf_online_changes, rf_online_work;
bool rf_online_by_time, rf_online_by_function;

/* ---- synchronisation ---- */

static bool hands_on(enum rf_op op)
{
    return op != RF_ACQUIRE && op != RF_READ_ACQUIRE;
}

/* Atomics have the rules of signals: the key is the object's, whatever it is used as. */
static enum rf_op as_signal(enum rf_op op)
{
    return op == RF_VOLATILE_READ ? RF_WAIT : op == RF_VOLATILE_WRITE ? RF_SIGNAL : op;
}

static void hear_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    (void)pc;
    struct rf_listener *me = rf_listener_of(self);
    if (hands_on(op))
        rf_filter_next(&me->filter);
    rf_spin_lock(&rf_online_lock);
    rf_online_work++;
    if (rf_online_detector->has_periods)
        rf_online_turn(me, as_signal(op));
    if (op == RF_FORK || op == RF_JOIN)
        key = rf_online_index((uint32_t)key);
    rf_online_detector->sync(rf_online_index_for(self, me, who), as_signal(op), key);
    rf_spin_unlock(&rf_online_lock);
}

static void hear_forget(uint64_t key)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    bool mine = rf_busy_enter(self);
    struct rf_listener *me = rf_listener_of(self);
    rf_spin_lock(&rf_online_lock);
    rf_online_detector->sync(me->index, RF_FORGET, key);
    rf_spin_unlock(&rf_online_lock);
    rf_busy_leave(self, mine);
}

/* ---- fork ---- */

/* The child's thread knows what the others, who are not there any more, have done. */
static void hear_fork_child(void)
{
    struct rf_self *self = rf_hot.self;
    if (!self)
        return;
    struct rf_listener *me = rf_listener_of(self);
    uint64_t key = rf_tap_new_key();
    rf_pairs_drop();
    for (uint32_t i = 0; i < rf_online_indexes(); i++)
        if (i != me->index)
            rf_online_detector->sync(i, RF_SIGNAL, key);
    rf_online_detector->sync(me->index, RF_WAIT, key);
}

static struct rf_tap listening = { .alone = true,
                                   .access = rf_hear_access,
                                   .sync = hear_sync,
                                   .memory = rf_hear_memory,
                                   .copy = rf_hear_copy,
                                   .unseen = rf_hear_unseen,
                                   .commit = rf_hear_commit,
                                   .end = rf_listener_end,
                                   .modules = rf_tap_nothing,
                                   .fork_child = hear_fork_child,
                                   .hook = rf_online_hook,
                                   .forget = hear_forget };

/* ---- the beginning, and the end ---- */

/* The number of a site is its role in the pair. */
static uint32_t class_of_site(void *unused, uint32_t site)
{
    (void)unused;
    return site;
}

static void take_pair(void *pair, const char *name, const char *value)
{
    if (rf_text_same(name, "first") || rf_text_same(name, "second"))
        ((const char **)pair)[name[0] == 's'] = value;
}

static void begin_pair(char **environment)
{
    const char *pair[2] = { "", "" }, *text = rf_environment(environment, "REDFLAG_CHASE");
    if (text)
        rf_pair_settings(text, take_pair, pair);
    if (!pair[0][0] || !pair[1][0])
        rf_die("the detector %s looks at one pair of sites: use `redflag chase -d %s --pair`", rf_options.detector,
               rf_options.detector);
    rf_pair_set(pair[0], pair[1]);
    rf_online_settings.site_class = class_of_site;
}

/* `none`: nobody listens, and hooks return at once. */
static const struct rf_tap deaf = { .alone = true,
                                    .access = rf_tap_no_access,
                                    .sync = rf_tap_no_sync,
                                    .memory = rf_tap_no_memory,
                                    .end = rf_tap_no_end,
                                    .modules = rf_tap_nothing,
                                    .fork_child = rf_tap_nothing,
                                    .hooks = RF_HOOKS_RETURN };

static void read_settings(void)
{
    uint32_t usual = rf_text_same(rf_options.sample_by, "time") ? 10 : 100;
    rf_online_by_time = rf_online_detector->has_periods && rf_text_same(rf_options.sample_by, "time");
    rf_online_by_function = rf_text_same(rf_online_detector->name, "literace");
    rf_online_settings.rate = rf_share_of(rf_options.rate);
    rf_online_settings.period = rf_options.period ? (uint32_t)rf_options.period : usual;
    rf_online_settings.burst = (uint32_t)rf_options.period;
    rf_online_settings.seed = (uint64_t)rf_options.seed * UINT64_C(0xd1342543de82ef95);
}

void rf_online_begin(char **environment)
{
    rf_online_settings.full = rf_text_same(rf_options.detector, "fullhb"); /* LiteHB that always tracks */
    if (rf_text_same(rf_options.detector, "none")) {
        rf_tap = &deaf;
        return;
    }
    if (rf_accu_begin() || rf_pacer_begin())
        return;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (rf_text_same(all[i]->name, rf_online_settings.full ? "litehb" : rf_options.detector))
            rf_online_detector = all[i];
    if (!rf_online_detector)
        return;
    if (rf_online_detector->wants_site)
        begin_pair(environment);
    read_settings();
    rf_online_settings.transactions = rf_options.transactions[0] == 'a'   ? RF_TXN_ALL
                                      : rf_options.transactions[0] == 'w' ? RF_TXN_WRITES
                                                                          : RF_TXN_SHARED;
    rf_online_threads_begin();
    rf_online_settings.certainty = true;
    rf_online_detector->begin(&rf_online_settings);
    listening.conditions = rf_online_detector->conditions;
    if (rf_online_detector->pairs) {
        listening.hook = rf_online_hook_of_pairs;
        rf_options.suppress_equal_addresses = false; /* one address may show many pairs */
    }
    rf_tap = &listening;
}

static void say_statistic(void *context, const char *name, uint64_t value)
{
    (void)context;
    rf_say("%s: %llu", name, (unsigned long long)value);
}

void rf_online_statistics(void)
{
    if (!rf_online_detector || !rf_options.stats)
        return;
    rf_online_detector->statistics(say_statistic, NULL);
    rf_say("bytes of the detector: %zu", rf_online_detector->bytes());
}
