/* Semaphores.
 *
 * 1. A wait comes after every earlier post, as reading an atomic counter would.
 * 2. strict_semaphores: tokens are counted, first in, first out. Those of sem_init() come first and order nothing; each post adds one
 *    with what the poster knew, which goes to one wait.
 * 3. What is posted is kept before the real post, so that the wait which it lets through finds it. Of a semaphore that other processes
 *    post to, too (sem_open, shared memory), a wait may find less than was posted, never more.
 */
#include <errno.h>
#include <semaphore.h>
#include <time.h>

#include "guest/access.h"
#include "guest/memory.h"
#include "guest/objects.h"
#include "guest/options.h"
#include "guest/pthread.h"
#include "guest/tap.h"
#include "guest/threads.h"
#include "guest/versions.h"

/* rf_object.extra is the number of tokens that nobody posted; rf_object.detail the posts. */
struct post {
    struct post *next;
    struct rf_clock clock;
    uint64_t version; /* guest/versions.h */
    uint64_t key; /* guest/tap.h */
};

struct posts {
    struct post *first, *last;
};

void rf_semaphore_end(struct rf_object *object);
static struct post *take_first(struct posts *posts)
{
    struct post *post = posts->first;
    if (post && !(posts->first = post->next))
        posts->last = NULL;
    return post;
}

static void give_post(struct post *post)
{
    rf_tap_forget(post->key);
    rf_clock_give(&post->clock);
    rf_give(post, sizeof *post);
}

void rf_semaphore_end(struct rf_object *object)
{
    struct posts *posts = object->detail;
    if (!posts)
        return;
    for (struct post *post; (post = take_first(posts));)
        give_post(post);
    rf_give(posts, sizeof *posts);
    object->detail = NULL;
}

static void posted(struct rf_self *self, uintptr_t addr)
{
    if (self->ignore_sync)
        return;
    struct rf_object *object = rf_object_lock(self, addr, RF_O_SEMAPHORE, true);
    if (rf_options.strict_semaphores && object->kind == RF_O_SEMAPHORE) {
        struct posts *posts = object->detail ? object->detail : (object->detail = rf_take(sizeof *posts));
        struct post *post = rf_take(sizeof *post);
        post->key = rf_tap ? rf_tap_new_key() : 0;
        rf_tap_sync(self, RF_SIGNAL, post->key, 0);
        rf_clock_room(&post->clock, self->thread.clock.len);
        rf_clock_replace(self, &post->clock, &post->version);
        if (posts->last)
            posts->last->next = post;
        else
            posts->first = post;
        posts->last = post;
        rf_epoch_begin(self);
    } else {
        rf_object_release(self, object);
    }
    rf_object_unlock(self, object);
}

static void waited(struct rf_self *self, uintptr_t addr)
{
    if (self->ignore_sync)
        return;
    struct rf_object *object = rf_object_lock(self, addr, RF_O_SEMAPHORE, false);
    if (!object)
        return;
    if (rf_options.strict_semaphores && object->kind == RF_O_SEMAPHORE) {
        struct post *post = NULL;
        if (object->extra)
            object->extra--;
        else if (object->detail)
            post = take_first(object->detail);
        if (post) {
            rf_tap_sync(self, RF_WAIT, post->key, 0);
            rf_clock_room(&self->thread.clock, post->clock.len);
            rf_clock_receive(self, &post->clock, post->version);
            give_post(post);
        }
    } else {
        rf_object_acquire(self, object);
    }
    rf_object_unlock(self, object);
}

#define WAITED(call)                                    \
    rf_park_here(scope.self);                           \
    int result = (call);                                \
    if (scope.self && !result)                          \
        waited(scope.self, (uintptr_t)semaphore);       \
    rf_leave(&scope);                                   \
    return result

RF_INTERCEPT(int, sem_wait, (sem_t *semaphore))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_wait, semaphore);
    WAITED(RF_REAL(sem_wait)(semaphore));
}

RF_INTERCEPT(int, sem_trywait, (sem_t *semaphore))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_trywait, semaphore);
    WAITED(RF_REAL(sem_trywait)(semaphore));
}

RF_INTERCEPT(int, sem_timedwait, (sem_t *semaphore, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_timedwait, semaphore, until);
    WAITED(RF_REAL(sem_timedwait)(semaphore, until));
}

RF_INTERCEPT(int, sem_clockwait, (sem_t *semaphore, clockid_t clock, const struct timespec *until))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_clockwait, semaphore, until);
    WAITED(RF_REAL(sem_clockwait)(semaphore, clock, until));
}

RF_INTERCEPT(int, sem_post, (sem_t *semaphore))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_post, semaphore);
    if (scope.self)
        posted(scope.self, (uintptr_t)semaphore);
    int result = RF_REAL(sem_post)(semaphore);
    rf_leave(&scope);
    return result;
}

/* To read the value is to see the posts that made it. */
RF_INTERCEPT(int, sem_getvalue, (sem_t *semaphore, int *value))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_getvalue, semaphore, value);
    int result = RF_REAL(sem_getvalue)(semaphore, value);
    if (scope.self && !result && !rf_options.strict_semaphores)
        rf_acquire((uintptr_t)semaphore, RF_O_SEMAPHORE);
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, sem_init, (sem_t *semaphore, int shared, unsigned value))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_init, semaphore);
    int result = RF_REAL(sem_init)(semaphore, shared, value);
    if (scope.self && !result) {
        rf_objects_forget((uintptr_t)semaphore, 1);
        if (rf_options.strict_semaphores) {
            struct rf_object *object = rf_object_lock(scope.self, (uintptr_t)semaphore, RF_O_SEMAPHORE, true);
            object->extra = value;
            rf_object_unlock(scope.self, object);
        }
    }
    rf_leave(&scope);
    return result;
}

RF_INTERCEPT(int, sem_destroy, (sem_t *semaphore))
{
    struct rf_scope scope = RF_ENTER_SYNC(sem_destroy, semaphore);
    int result = RF_REAL(sem_destroy)(semaphore);
    if (scope.self && !result)
        rf_objects_forget((uintptr_t)semaphore, 1);
    rf_leave(&scope);
    return result;
}
