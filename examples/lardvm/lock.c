/* Locks of the language: every object can be one.
 *
 * 1. A monitor is made when its object is first locked, outside the heap, and ends with the object. Monitors are under one mutex of the
 *    machine's; while the world is stopped, the collector's.
 * 2. The program's lock is told after it was taken and before it is given back: as a lock on the object, whose address the collector
 *    keeps right; or, as in the paper, by a clock in the monitor that is written on the one side and read on the other.
 * 3. A native thread waits here; a green one comes again, so that its kernel thread can run others.
 */
#include <stdlib.h>

#include "vm.h"

struct monitor {
    struct thread *owner;
    unsigned depth;
    struct redflag_clock *clock;
    pthread_cond_t free;
};

static pthread_mutex_t monitors = PTHREAD_MUTEX_INITIALIZER;

static struct monitor *monitor_of(struct object *object)
{
    if (!object->monitor) {
        object->monitor = calloc(1, sizeof *object->monitor);
        object->monitor->clock = redflag_clock_new();
        pthread_cond_init(&object->monitor->free, NULL);
    }
    return object->monitor;
}

void free_monitor(struct object *object)
{
    if (!object->monitor)
        return;
    redflag_clock_free(object->monitor->clock);
    pthread_cond_destroy(&object->monitor->free);
    free(object->monitor);
    object->monitor = NULL;
}

bool lock_object(struct thread *self, const value *local, bool with_clocks)
{
    char name[32];
    if (!*local || is_number(*local))
        wrong(self, "only objects can be locked");
    pthread_mutex_lock(&monitors);
    struct monitor *monitor = monitor_of((struct object *)*local);
    while (monitor->owner && monitor->owner != self) {
        if (!self->native) {
            pthread_mutex_unlock(&monitors);
            return false;
        }
        wait_begin();
        pthread_cond_wait(&monitor->free, &monitors);
        pthread_mutex_unlock(&monitors);
        wait_end();
        pthread_mutex_lock(&monitors);
    }
    monitor->owner = self;
    bool first = !monitor->depth++;
    pthread_mutex_unlock(&monitors);
    if (!first)
        return true;
    tell_begin();
    if (with_clocks)
        redflag_clock_write(monitor->clock);
    else
        redflag_lock((const void *)*local, 0);
    tell(self, "acq", object_name(*local, name), NULL);
    tell_end();
    return true;
}

void unlock_object(struct thread *self, value object, bool with_clocks)
{
    char name[32];
    struct monitor *monitor = ((struct object *)object)->monitor;
    if (monitor->depth == 1) {
        tell_begin();
        if (with_clocks)
            redflag_clock_read(monitor->clock);
        else
            redflag_unlock((const void *)object, 0);
        tell(self, "rel", object_name(object, name), NULL);
        tell_end();
    }
    pthread_mutex_lock(&monitors);
    if (!--monitor->depth) {
        monitor->owner = NULL;
        pthread_cond_signal(&monitor->free);
    }
    pthread_mutex_unlock(&monitors);
}
