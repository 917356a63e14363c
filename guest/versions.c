/* See guest/versions.h. */
#include "guest/versions.h"

#include "guest/memory.h"

#define NUMBER_BITS 40 /* and the thread's number + 1 above */
#define THREADS (UINT64_C(1) << (64 - NUMBER_BITS))
#define NUMBERS (UINT64_C(1) << NUMBER_BITS)

static uint32_t own_time(const struct rf_self *self)
{
    return self->thread.clock.times[self->thread.slot];
}

/* Of the thread's clock as it is; 0: it has none, or its time has advanced. */
static uint64_t present(const struct rf_self *self)
{
    return self->version_time == own_time(self) ? self->version : 0;
}

static void is_equal_to(struct rf_self *self, uint64_t version)
{
    self->version = version;
    self->version_time = own_time(self);
}

static uint64_t version_of(struct rf_self *self)
{
    if (!present(self) && self->number + UINT64_C(1) < THREADS && self->versions + 1 < NUMBERS)
        is_equal_to(self, (self->number + UINT64_C(1)) << NUMBER_BITS | ++self->versions);
    return present(self);
}

static uint64_t *place_of(const struct rf_self *self, uint64_t version)
{
    return &self->received[(version >> NUMBER_BITS) % RF_VERSIONS];
}

static bool is_known(const struct rf_self *self, uint64_t version)
{
    if (!version || version == present(self))
        return version;
    if (!self->received)
        return false;
    uint64_t received = *place_of(self, version);
    return received >> NUMBER_BITS == version >> NUMBER_BITS && received >= version;
}

static void remember(struct rf_self *self, uint64_t version)
{
    if (!self->received)
        self->received = rf_take(RF_VERSIONS * sizeof *self->received);
    *place_of(self, version) = version;
}

enum { GREW = 1, HAD_MORE = 2 };

/* into := into ⊔ from, and what that did. */
static unsigned join(struct rf_clock *into, const struct rf_clock *from)
{
    uint32_t grew = 0, more = 0, common = from->len, *restrict a = into->times;
    const uint32_t *restrict b = from->times;
    for (uint32_t i = from->len; i < into->len; i++)
        more |= a[i];
    for (uint32_t i = 0; i < common; i++) { /* beyond its length a clock is 0 */
        uint32_t old = a[i], new = old < b[i] ? b[i] : old;
        a[i] = new;
        grew |= new ^ old;
        more |= new ^ b[i];
    }
    into->len = into->len < common ? common : into->len;
    return (grew ? GREW : 0) | (more ? HAD_MORE : 0);
}

void rf_version_receive(struct rf_self *self, const struct rf_clock *from, uint64_t version)
{
    if (!from->len || is_known(self, version))
        return;
    unsigned what = join(&self->thread.clock, from);
    if (what & GREW)
        self->version = 0;
    if (!version)
        return;
    remember(self, version);
    if (!(what & HAD_MORE))
        is_equal_to(self, version);
}

void rf_version_publish(struct rf_self *self, struct rf_clock *into, uint64_t *version)
{
    uint64_t mine = version_of(self);
    if (mine && *version == mine)
        return;
    *version = join(into, &self->thread.clock) & HAD_MORE ? 0 : mine;
}

void rf_version_replace(struct rf_self *self, struct rf_clock *into, uint64_t *version)
{
    uint64_t mine = version_of(self);
    if (mine && *version == mine)
        return;
    rf_clock_copy(into, NULL, &self->thread.clock);
    *version = mine;
}

void rf_versions_thread_end(struct rf_self *self)
{
    if (self->received)
        rf_give(self->received, RF_VERSIONS * sizeof *self->received);
    self->received = NULL;
}
