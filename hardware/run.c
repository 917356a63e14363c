/* What the events of a trace do to the two machines. See hardware/simulate.h. */
#include "hardware/simulate.h"

/* When an object was handed over last: by whoever releases it, and by those who read under it; and where it is, which never changes. */
struct object {
    uint64_t released[RF_MACHINES], readers[RF_MACHINES];
    uint64_t line_plus_1;
};

/* ---- races ---- */

static void on_race(void *context, uint64_t addr)
{
    struct rf_simulation *s = context;
    uint64_t *bytes = rf_map_at(&s->racy, addr / RF_GRANULE);
    uint64_t bit = UINT64_C(1) << addr % RF_GRANULE;
    if (*bytes & bit)
        return;
    *bytes |= bit;
    struct rf_hardware_race *last = s->race_count ? &s->races[s->race_count - 1] : NULL;
    if (last && last->number == s->number && last->addr + last->size == addr) {
        last->size++;
        return;
    }
    s->races = rf_grow(&s->memory, s->races, &s->race_cap, s->race_count + 1, sizeof *s->races);
    s->races[s->race_count++] = (struct rf_hardware_race){
        .number = s->number, .addr = addr, .size = 1, .thread = s->event->thread, .site = s->event->site
    };
}

void rf_events_begin(struct rf_simulation *s)
{
    rf_radish_attach(&s->radish);
    s->radish.race = on_race;
    s->radish.race_context = s;
}

/* ---- threads on cores ---- */

static RF_APART struct rf_simulated_thread *thread_of(struct rf_simulation *s, uint32_t thread)
{
    uint32_t known = s->thread_cap;
    if (__builtin_expect(thread >= known, 0)) {
        s->threads = rf_grow(&s->memory, s->threads, &s->thread_cap, (size_t)thread + 1, sizeof *s->threads);
        for (uint32_t i = known; i < s->thread_cap; i++)
            s->threads[i] = (struct rf_simulated_thread){ .core = RF_UNKNOWN, .last_core = RF_UNKNOWN, .carrier = i };
    }
    return &s->threads[thread];
}

/* The core that a thread gets: 3. */
static uint32_t choose_core(const struct rf_simulation *s, const struct rf_simulated_thread *thread)
{
    uint32_t best = RF_UNKNOWN;
    if (thread->last_core != RF_UNKNOWN && s->cores[thread->last_core].carrier == RF_UNKNOWN)
        return thread->last_core;
    for (uint32_t core = 0; core < s->config.cores; core++)
        if (s->cores[core].carrier == RF_UNKNOWN)
            return core;
    for (uint32_t core = 0; core < s->config.cores; core++)
        if (best == RF_UNKNOWN || s->cores[core].last < s->cores[best].last)
            best = core;
    return best;
}

static void leave_core(struct rf_simulation *s, uint32_t core)
{
    struct rf_simulated_core *c = &s->cores[core];
    if (c->carrier == RF_UNKNOWN)
        return;
    struct rf_simulated_thread *carrier = thread_of(s, c->carrier);
    for (int m = 0; m < RF_MACHINES; m++)
        carrier->ready[m] = s->times[m][core];
    carrier->core = RF_UNKNOWN;
    carrier->last_core = core;
    c->carrier = c->thread = RF_UNKNOWN;
}

static uint32_t enter_core(struct rf_simulation *s, uint32_t carrier)
{
    uint32_t core = choose_core(s, thread_of(s, carrier));
    bool busy = s->cores[core].carrier != RF_UNKNOWN;
    leave_core(s, core);
    s->switches += busy;
    for (int m = 0; m < RF_MACHINES; m++) {
        uint64_t ready = thread_of(s, carrier)->ready[m];
        s->times[m][core] += busy ? s->config.switch_cycles : 0;
        if (s->times[m][core] < ready)
            s->times[m][core] = ready;
    }
    thread_of(s, carrier)->core = core;
    s->cores[core].carrier = carrier;
    s->cores[core].thread = RF_UNKNOWN;
    return core;
}

static RF_APART uint32_t place_far(struct rf_simulation *s, uint32_t thread)
{
    uint32_t carrier = thread_of(s, thread)->carrier, core = thread_of(s, carrier)->core;
    struct rf_thread *ordered = rf_order_thread(&s->order, thread);
    if (__builtin_expect(core == RF_UNKNOWN, 0))
        core = enter_core(s, carrier);
    struct rf_simulated_core *c = &s->cores[core];
    if (__builtin_expect(c->thread != thread || s->radish.cores[core].slot != ordered->slot, 0)) {
        s->identities += c->thread != RF_UNKNOWN;
        c->thread = thread;
        rf_radish_switch(&s->radish, core, ordered);
    }
    c->last = s->events;
    s->placed = thread;
    s->placed_core = core;
    return core;
}

/* The core where this thread acts, now: nearly always the one where it acted last, and nearly always it was the last to act. */
RF_HOT uint32_t place(struct rf_simulation *s, uint32_t thread)
{
    if (thread == s->placed) {
        s->cores[s->placed_core].last = s->events;
        return s->placed_core;
    }
    const struct rf_thread *ordered = rf_order_known_thread(&s->order, thread);
    if (__builtin_expect(!ordered || ordered->joined || thread >= s->thread_cap, 0))
        return place_far(s, thread);
    uint32_t carrier = s->threads[thread].carrier;
    uint32_t core = __builtin_expect(carrier == thread, 1) ? s->threads[thread].core : RF_UNKNOWN;
    if (__builtin_expect(
            core == RF_UNKNOWN || s->cores[core].thread != thread || s->radish.cores[core].slot != ordered->slot, 0))
        return place_far(s, thread);
    s->cores[core].last = s->events;
    s->placed = thread;
    s->placed_core = core;
    return core;
}

void rf_simulation_identify(struct rf_simulation *s, uint32_t thread, uint32_t performer)
{
    struct rf_simulated_thread *performed = thread_of(s, performer);
    s->placed = RF_UNKNOWN;
    if (performed->core != RF_UNKNOWN && performer != thread) { /* it had a core of its own; it acts elsewhere now */
        uint32_t core = performed->core;
        leave_core(s, core);
        rf_radish_switch(&s->radish, core, NULL);
    }
    thread_of(s, performer)->carrier = thread;
}

/* ---- accesses ---- */

static RF_APART void tally(struct rf_simulation *s, struct rf_tallies *tallies, uint64_t key, const struct rf_checks *before,
                           uint64_t extra)
{
    const struct rf_checks *after = &s->radish.counts.checks;
    uint64_t *at = rf_map_at(&tallies->places, key);
    if (!*at) {
        tallies->list = rf_grow(&s->memory, tallies->list, &tallies->cap, tallies->count + 1, sizeof *tallies->list);
        tallies->list[tallies->count++].key = key;
        *at = tallies->count;
    }
    struct rf_tally *t = &tallies->list[*at - 1];
    t->checks.permission += after->permission - before->permission;
    t->checks.hardware += after->hardware - before->hardware;
    t->checks.software += after->software - before->software;
    t->checks.untracked += after->untracked - before->untracked;
    t->extra_cycles += extra;
}

static bool is_tracked(struct rf_simulation *s, uint32_t site)
{
    if (__builtin_expect(!s->config.untracked_count || !s->site_name, 1))
        return true;
    s->site_tracked = rf_grow(&s->memory, s->site_tracked, &s->site_cap, (size_t)site + 1, 1);
    if (!s->site_tracked[site]) {
        const char *name = s->site_name(s->names, site);
        s->site_tracked[site] = 1;
        for (size_t i = 0; i < s->config.untracked_count; i++)
            if (!strncmp(name, s->config.untracked[i], strlen(s->config.untracked[i])))
                s->site_tracked[site] = 2;
    }
    return s->site_tracked[site] == 1;
}

static void access_memory(struct rf_simulation *s, const struct rf_event *event, bool write)
{
    uint32_t core = place(s, event->thread);
    const struct rf_near *page = rf_near_of(&s->pages, event->addr);
    struct rf_access access = { .addr = event->addr,
                                .physical = rf_physical_at(&s->pages, page->number, event->addr),
                                .frame = page->frame,
                                .size = event->size,
                                .write = write,
                                .tracked = !page->race_free && is_tracked(s, event->site) };
    bool tallied = s->tally_sites || s->tally_variables;
    uint64_t before = s->times[RF_WITH][core];
    uint64_t cycles = rf_machine_access(&s->baseline, core, access.physical >> rf_line_bits(&s->baseline), write);
    cycles += s->config.work_cycles;
    s->times[RF_WITHOUT][core] += cycles;
    s->accesses++;
    struct rf_checks checks = { 0 };
    if (__builtin_expect(tallied, 0))
        checks = s->radish.counts.checks;
    rf_radish_access(&s->radish, core, &access); /* one call: then it is part of this function where that is worth most */
    if (__builtin_expect(!tallied, 1))
        return;
    uint64_t with = s->times[RF_WITH][core] - before, extra = with > cycles ? with - cycles : 0;
    if (s->tally_sites)
        tally(s, &s->sites, event->site, &checks, extra);
    if (s->tally_variables)
        tally(s, &s->variables, event->addr & ~(uint64_t)(RF_GRANULE - 1), &checks, extra);
}

/* ---- synchronisation ---- */

static struct object *object_of(struct rf_simulation *s, int space, uint64_t key)
{
    uint64_t *at = rf_map_at(&s->objects[space], key);
    if (RF_RARELY(!*at))
        *at = (uint64_t)(uintptr_t)rf_alloc(&s->memory, sizeof(struct object));
    return (struct object *)(uintptr_t)*at;
}

static void forget_object(struct rf_simulation *s, int space, uint64_t key)
{
    uint64_t *at = rf_map_find(&s->objects[space], key);
    if (!at)
        return;
    rf_free(&s->memory, (void *)(uintptr_t)*at, sizeof(struct object));
    rf_map_remove(&s->objects[space], key);
}

static void later(uint64_t *time, uint64_t other)
{
    *time = *time > other ? *time : other;
}

/* The cache line that an object is in. */
static uint64_t line_of(struct rf_simulation *s, struct object *object, int space, uint64_t key)
{
    if (__builtin_expect(!object->line_plus_1, 0)) {
        struct rf_frame *frame = rf_frame_far(&s->pages, key >> rf_page_bits(&s->pages), 1 + (uint32_t)space);
        object->line_plus_1 = 1 + (rf_physical(&s->pages, frame, key) >> rf_line_bits(&s->baseline));
    }
    return object->line_plus_1 - 1;
}

/* Waits for an object, or hands it over. */
static void pass_object(struct rf_simulation *s, uint32_t core, const struct rf_event *event)
{
    int space = event->op == RF_VOLATILE_READ || event->op == RF_VOLATILE_WRITE ? RF_SPACE_VOLATILE
                : event->op == RF_SIGNAL || event->op == RF_WAIT                ? RF_SPACE_SIGNAL
                                                                                : RF_SPACE_LOCK;
    bool hands =
        event->op == RF_RELEASE || event->op == RF_READ_RELEASE || event->op == RF_VOLATILE_WRITE || event->op == RF_SIGNAL;
    struct object *object = object_of(s, space, event->addr);
    uint64_t line = line_of(s, object, space, event->addr);
    bool write = event->op != RF_VOLATILE_READ && event->op != RF_WAIT;
    for (int m = 0; m < RF_MACHINES && !hands; m++) {
        later(&s->times[m][core], object->released[m]);
        if (event->op == RF_ACQUIRE)
            later(&s->times[m][core], object->readers[m]);
    }
    s->times[RF_WITHOUT][core] += rf_machine_access(&s->baseline, core, line, write);
    s->times[RF_WITH][core] += rf_machine_access(&s->radish.machine, core, line, write);
    rf_software_vector(&s->radish, core, event->addr * RF_SPACES + (uint64_t)space, s->order.slot_count);
    for (int m = 0; m < RF_MACHINES && hands; m++)
        later(event->op == RF_READ_RELEASE ? &object->readers[m] : &object->released[m], s->times[m][core]);
}

/* The child's core, or when it was there last. */
static void pass_thread(struct rf_simulation *s, uint32_t core, uint32_t other, bool fork)
{
    struct rf_simulated_thread *child = thread_of(s, other);
    for (int m = 0; m < RF_MACHINES; m++) {
        uint64_t *theirs = child->core == RF_UNKNOWN ? &child->ready[m] : &s->times[m][child->core];
        later(fork ? theirs : &s->times[m][core], fork ? s->times[m][core] : *theirs);
    }
    rf_software_vector(&s->radish, core, other, s->order.slot_count);
    if (!fork && child->core != RF_UNKNOWN && child->core != core) {
        uint32_t left = child->core;
        leave_core(s, left);
        rf_radish_switch(&s->radish, left, NULL);
    }
}

/* The vector clock of a core's thread has changed; its slot may have (core/order.h, 3.). */
static void refresh(struct rf_simulation *s, uint32_t core)
{
    struct rf_thread *thread = s->radish.cores[core].thread;
    if (RF_RARELY(thread->slot != s->radish.cores[core].slot))
        rf_radish_switch(&s->radish, core, thread);
    else
        rf_radish_synchronised(&s->radish, core);
}

static void synchronise(struct rf_simulation *s, const struct rf_event *event)
{
    if (RF_RARELY(event->op == RF_FORGET)) {
        rf_order_sync(&s->order, NULL, event);
        forget_object(s, RF_SPACE_SIGNAL, event->addr);
        return;
    }
    if (RF_RARELY(event->op == RF_SAMPLE_BEGIN || event->op == RF_SAMPLE_END))
        return;
    uint32_t core = place(s, event->thread);
    for (int m = 0; m < RF_MACHINES; m++)
        s->times[m][core] += s->config.sync_cycles;
    rf_order_sync(&s->order, rf_order_thread(&s->order, event->thread), event);
    refresh(s, core);
    if (RF_RARELY(event->op == RF_FORK || event->op == RF_JOIN)) {
        s->placed = RF_UNKNOWN;
        uint32_t other = (uint32_t)event->addr;
        pass_thread(s, core, other, event->op == RF_FORK);
        uint32_t theirs = thread_of(s, thread_of(s, other)->carrier)->core;
        if (event->op == RF_FORK && theirs != RF_UNKNOWN && s->cores[theirs].thread == other)
            refresh(s, theirs);
    } else if (event->op != RF_COMMIT) {
        pass_object(s, core, event);
    }
}

/* ---- the trace ---- */

static RF_APART void commit(struct rf_simulation *s, const struct rf_event *event)
{
    synchronise(s, event);
    for (uint32_t i = 1; i <= event->size; i++) {
        s->event = &event[i];
        access_memory(s, &event[i], event[i].op == RF_COMMIT_WRITE);
    }
    rf_order_commit_end(&s->order, rf_order_thread(&s->order, event->thread), event);
    refresh(s, place(s, event->thread));
}

void rf_events_run(struct rf_simulation *s, const struct rf_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct rf_event *event = &batch->events[i];
        rf_ahead_look(s, batch, i);
        s->events++;
        s->event = event;
        s->number = rf_event_number(batch, event);
        switch ((enum rf_op)event->op) {
        case RF_READ:
        case RF_WRITE:
            access_memory(s, event, event->op == RF_WRITE);
            break;
        case RF_COMMIT:
            commit(s, event);
            i += event->size;
            break;
        case RF_ALLOC:
        case RF_FREE:
            rf_radish_clear(&s->radish, place(s, event->thread), event->addr, event->size, event->op == RF_FREE);
            break;
        case RF_COPY:
            rf_radish_copy(&s->radish, place(s, event->thread), event->addr, event[1].addr, event->size);
            i++;
            break;
        default:
            if (rf_op_kind((enum rf_op)event->op) == RF_SYNC)
                synchronise(s, event);
        }
    }
}
