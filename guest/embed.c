/* The interface for runtimes of languages: accesses, sections of the runtime system, synchronisation on objects, histories, threads
 * (include/redflag.h; doc/embedding.md). Clocks are in guest/embed_clock.c, names of places in guest/embed_place.c.
 *
 * 1. Inside a section of the runtime system a thread is ignored, but for the calls of this interface: each of them is the program's
 *    and lifts the section while it lasts. A listener that hears the system (guest/tap.h, 6) is told of both, apart.
 * 2. A section belongs to the kernel thread: who goes on as another thread of the language (redflag_thread_run) is still in it.
 * 3. A thread of the language is a record of guest/threads.h without a kernel thread, as a fiber is. Its slot in clocks is used again
 *    after its join as soon as its joiner starts another, or once no history names it: clocks grow with the threads that live.
 * 4. Nothing here orders two threads but acquire, lock, clock_write, thread_new and thread_join; least of all thread_run.
 */
#include "guest/embed.h"

#include "guest/access.h"
#include "guest/annotations.h"
#include "guest/atomics.h"
#include "guest/fibers.h"
#include "guest/intercept.h"
#include "guest/locks.h"
#include "guest/seen.h"
#include "guest/tap.h"
#include "guest/threads.h"

#define PC ((uintptr_t)__builtin_return_address(0))
#define LOCK (RF_L_RW | RF_L_RECURSIVE | RF_L_STATIC | RF_L_TOLD)

RF_EXPORT void redflag_rt_read(const void *address, size_t size, const void *place);
RF_EXPORT void redflag_rt_write(const void *address, size_t size, const void *place);
RF_EXPORT void redflag_rt_system_begin(void);
RF_EXPORT void redflag_rt_system_end(void);
RF_EXPORT void redflag_rt_acquire(const void *object);
RF_EXPORT void redflag_rt_release(const void *object);
RF_EXPORT void redflag_rt_lock(const void *object, int shared);
RF_EXPORT void redflag_rt_unlock(const void *object, int shared);
RF_EXPORT void redflag_rt_system_acquire(const void *object);
RF_EXPORT void redflag_rt_system_release(const void *object);
RF_EXPORT void redflag_rt_clear_history(const void *address, size_t size);
RF_EXPORT void redflag_rt_copy_history(const void *to, const void *from, size_t size);
RF_EXPORT void redflag_rt_move_history(const void *to, const void *from, size_t size);
RF_EXPORT void *redflag_rt_thread_new(const char *name);
RF_EXPORT void redflag_rt_thread_run(void *thread);
RF_EXPORT void redflag_rt_thread_join(void *thread);
RF_EXPORT void redflag_rt_thread_end(void *thread);
RF_EXPORT void *redflag_rt_thread_now(void);

/* ---- sections ---- */

static void section_begin(struct rf_self *self)
{
    if (rf_system_is_ignored(self))
        rf_ignore_begin(self);
}

static void section_end(struct rf_self *self)
{
    if (rf_system_is_ignored(self))
        rf_ignore_end(self);
}

struct rf_embed rf_embed_enter(void)
{
    struct rf_embed embed = { .self = rf_atomic_self() };
    if (embed.self && embed.self->system) {
        section_end(embed.self);
        embed.system = embed.self->system;
        embed.self->system = 0;
    }
    return embed;
}

void rf_embed_leave(const struct rf_embed *embed)
{
    if (embed->system) {
        embed->self->system = embed->system;
        section_begin(embed->self);
    }
}

void redflag_rt_system_begin(void)
{
    struct rf_self *self = rf_atomic_self();
    if (self && !self->system++)
        section_begin(self);
}

void redflag_rt_system_end(void)
{
    struct rf_self *self = rf_atomic_self();
    if (!self || !self->system)
        return;
    if (self->system == 1)
        section_end(self);
    self->system--;
}

/* ---- accesses ---- */

static inline void access(const void *address, size_t size, unsigned flags, uintptr_t pc)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self && size <= RF_GRANULE)
        rf_slow_access((uintptr_t)address, pc, (unsigned)size, flags);
    else if (embed.self)
        rf_access((uintptr_t)address, size, flags, pc);
    rf_embed_leave(&embed);
}

void redflag_rt_read(const void *address, size_t size, const void *place)
{
    if (size)
        access(address, size, 0, rf_embed_place(place, PC));
}

void redflag_rt_write(const void *address, size_t size, const void *place)
{
    if (size)
        access(address, size, RF_A_WRITE, rf_embed_place(place, PC));
}

/* ---- synchronisation ---- */

void redflag_rt_acquire(const void *object)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self)
        rf_acquire((uintptr_t)object, RF_O_USER);
    rf_embed_leave(&embed);
}

void redflag_rt_release(const void *object)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self)
        rf_release((uintptr_t)object, RF_O_USER);
    rf_embed_leave(&embed);
}

void redflag_rt_lock(const void *object, int shared)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self)
        rf_lock_acquired((uintptr_t)object, LOCK | (shared ? RF_L_READ : 0), PC);
    rf_embed_leave(&embed);
}

void redflag_rt_unlock(const void *object, int shared)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self)
        rf_lock_released((uintptr_t)object, LOCK | (shared ? RF_L_READ : 0), PC);
    rf_embed_leave(&embed);
}

/* Only a listener that hears the system learns of these. */
void redflag_rt_system_acquire(const void *object)
{
    redflag_rt_system_begin();
    rf_acquire((uintptr_t)object, RF_O_USER);
    redflag_rt_system_end();
}

void redflag_rt_system_release(const void *object)
{
    redflag_rt_system_begin();
    rf_release((uintptr_t)object, RF_O_USER);
    redflag_rt_system_end();
}

/* ---- histories ---- */

void redflag_rt_clear_history(const void *address, size_t size)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self && size) {
        rf_objects_forget((uintptr_t)address, size);
        rf_range_clear((uintptr_t)address, size);
        if (rf_tap && rf_tap->unseen)
            rf_tap->unseen();
        if (!rf_tap && !rf_seen_off) {
            embed.self->inside++; /* a signal handler must not wait for the world that its thread has stopped */
            rf_world_stop(embed.self);
            rf_seen_stop();
            rf_world_go(embed.self);
            embed.self->inside--;
        }
    }
    rf_embed_leave(&embed);
}

void redflag_rt_copy_history(const void *to, const void *from, size_t size)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self)
        rf_range_copy((uintptr_t)from, (uintptr_t)to, size, false, PC);
    rf_embed_leave(&embed);
}

void redflag_rt_move_history(const void *to, const void *from, size_t size)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self) {
        rf_objects_move((uintptr_t)from, (uintptr_t)to, size);
        rf_range_copy((uintptr_t)from, (uintptr_t)to, size, true, PC);
    }
    rf_embed_leave(&embed);
}

/* ---- threads ---- */

void *redflag_rt_thread_new(const char *name)
{
    struct rf_embed embed = rf_embed_enter();
    struct rf_self *thread = NULL;
    if (embed.self) {
        thread = rf_thread_created(embed.self, rf_note_here(PC, 0, 0), 0);
        thread->is_fiber = true;
        rf_fibers_used = true;
        if (name)
            rf_thread_name(thread, name);
    }
    rf_embed_leave(&embed);
    return thread;
}

/* Invariant 2. The section is lifted from the one and laid on the other: at no time both, or neither, have it. */
void redflag_rt_thread_run(void *thread)
{
    struct rf_self *self = rf_atomic_self(), *to = thread ? thread : rf_thread_kernel();
    if (!self || !to || to == self)
        return;
    uint32_t system = self->system;
    section_end(self);
    self->system = 0;
    rf_thread_switch(to);
    to->system = system;
    section_begin(to);
}

void redflag_rt_thread_join(void *thread)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self && thread && thread != embed.self)
        rf_thread_joined(embed.self, thread);
    rf_embed_leave(&embed);
}

void redflag_rt_thread_end(void *thread)
{
    struct rf_embed embed = rf_embed_enter();
    if (embed.self && thread && thread != embed.self)
        rf_thread_end(thread);
    rf_embed_leave(&embed);
}

void *redflag_rt_thread_now(void)
{
    return rf_started ? rf_self() : NULL;
}
