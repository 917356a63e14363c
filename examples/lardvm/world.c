/* Kernel threads, the threads of the language on them, and how all of them are stopped.
 *
 * 1. `running` counts the kernel threads that are in a program and do not wait. Whoever wants the world to stop sets `stopping` and
 *    waits until it is the only one. Everybody else comes to a safepoint, or waits already and does not get out.
 * 2. Nobody changes identity (redflag_thread_run) with a mutex held: the mutex is the one's who took it.
 * 3. A thread of the language is in the table before it can run, so that the collector sees what it was given.
 */
#include <sched.h>
#include <stdlib.h>

#include "vm.h"

#define BUDGET 97u /* instructions of a green thread before the next one has its turn */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool stopping;
static unsigned running;
static struct thread *threads[MAX_THREADS];
static unsigned count, alive;
static struct thread *queue, **queue_end = &queue; /* green threads that can go on */
static bool closing;                               /* the pool is not needed any more */
static int64_t stage;

struct thread *thread_at(unsigned number)
{
    return number < count ? threads[number] : NULL;
}

unsigned thread_count(void)
{
    return count;
}

/* ---- stopping ---- */

static void leave(void)
{
    running--;
    pthread_cond_broadcast(&changed);
}

static void enter(void)
{
    while (__atomic_load_n(&stopping, __ATOMIC_RELAXED))
        pthread_cond_wait(&changed, &lock);
    running++;
}

void wait_begin(void)
{
    pthread_mutex_lock(&lock);
    leave();
    pthread_mutex_unlock(&lock);
}

void wait_end(void)
{
    pthread_mutex_lock(&lock);
    enter();
    pthread_mutex_unlock(&lock);
}

void safepoint(void)
{
    if (__atomic_load_n(&stopping, __ATOMIC_RELAXED)) {
        wait_begin();
        wait_end();
    }
}

void stop_world(void)
{
    pthread_mutex_lock(&lock);
    leave();
    enter(); /* after whoever stops it now */
    __atomic_store_n(&stopping, true, __ATOMIC_RELAXED);
    while (running > 1)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

void start_world(void)
{
    pthread_mutex_lock(&lock);
    __atomic_store_n(&stopping, false, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* ---- order that is no synchronisation of the program ---- */

void reach(int64_t to)
{
    pthread_mutex_lock(&lock);
    if (to > stage)
        stage = to;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

bool await(struct thread *self, int64_t to)
{
    pthread_mutex_lock(&lock);
    if (self->native && stage < to) {
        leave();
        while (stage < to)
            pthread_cond_wait(&changed, &lock);
        enter();
    }
    bool there = stage >= to;
    pthread_mutex_unlock(&lock);
    return there;
}

/* ---- threads ---- */

static void enqueue(struct thread *thread)
{
    thread->next = NULL;
    *queue_end = thread;
    queue_end = &thread->next;
    pthread_cond_broadcast(&changed);
}

static void ended(struct thread *thread)
{
    thread->top = thread->stack;
    thread->done = true;
    alive--;
    leave();
}

static void run_to_the_end(struct thread *thread)
{
    wait_end();
    redflag_thread_run(thread->identity);
    interpret(thread, 0);
    redflag_thread_run(NULL);
    pthread_mutex_lock(&lock);
    ended(thread);
    pthread_mutex_unlock(&lock);
}

static void *native_main(void *thread)
{
    redflag_system_begin();
    run_to_the_end(thread);
    redflag_system_end();
    return NULL;
}

struct thread *start_thread(struct thread *parent, const struct function *function, value *arguments, bool native)
{
    char name[16];
    struct thread *thread = calloc(1, sizeof *thread);
    thread->native = native;
    thread->stack = calloc(MAX_STACK, sizeof *thread->stack);
    thread->frames = calloc(MAX_DEPTH, sizeof *thread->frames);
    thread->frames[thread->depth++] = (struct frame){ .function = function, .locals = thread->stack };
    for (unsigned i = 0; i < function->parameters; i++)
        thread->stack[i] = arguments[i];
    thread->top = thread->stack + function->locals;
    pthread_mutex_lock(&lock);
    if (count == MAX_THREADS)
        die("more than %u threads", MAX_THREADS);
    thread->number = count;
    threads[count++] = thread;
    alive++;
    pthread_mutex_unlock(&lock);
    snprintf(name, sizeof name, thread->number ? "T%u" : "main", thread->number);
    if (parent)
        tell_begin();
    thread->identity = redflag_thread_new(name);
    if (parent) {
        tell(parent, "fork", name, NULL);
        tell_end();
    }
    if (!native) {
        pthread_mutex_lock(&lock);
        enqueue(thread);
        pthread_mutex_unlock(&lock);
    } else if (parent && pthread_create(&thread->kernel, NULL, native_main, thread)) {
        die("no more kernel threads");
    }
    return thread;
}

bool join_thread(struct thread *self, struct thread *other)
{
    pthread_mutex_lock(&lock);
    if (self->native && !other->done) {
        leave();
        while (!other->done)
            pthread_cond_wait(&changed, &lock);
        enter();
    }
    bool done = other->done;
    bool mine = done && !other->joined;
    other->joined |= done;
    pthread_mutex_unlock(&lock);
    if (!mine)
        return done;
    char name[16];
    snprintf(name, sizeof name, "T%u", other->number);
    tell_begin();
    redflag_thread_join(other->identity);
    tell(self, "join", name, NULL);
    tell_end();
    other->identity = NULL;
    return true;
}

/* ---- the pool ---- */

/* The first one in the queue that this worker may run; NULL: there is none. */
static struct thread *dequeue(unsigned worker)
{
    struct thread **link = &queue;
    while (*link && settings.wander && (*link)->worker == worker)
        link = &(*link)->next;
    struct thread *thread = *link;
    if (!thread)
        return NULL;
    *link = thread->next;
    if (queue_end == &thread->next)
        queue_end = link;
    thread->worker = worker;
    return thread;
}

static void *worker_main(void *number)
{
    redflag_system_begin();
    pthread_mutex_lock(&lock);
    for (;;) {
        struct thread *thread = dequeue((unsigned)(uintptr_t)number);
        if (!thread && closing)
            break;
        if (!thread) {
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        enter();
        pthread_mutex_unlock(&lock);
        redflag_thread_run(thread->identity);
        enum progress progress = interpret(thread, BUDGET);
        redflag_thread_run(NULL);
        pthread_mutex_lock(&lock);
        if (progress == ENDS) {
            ended(thread);
            continue;
        }
        leave();
        if (progress == YIELDS && !queue) { /* it waits for somebody who is not in the queue */
            pthread_mutex_unlock(&lock);
            sched_yield();
            pthread_mutex_lock(&lock);
        }
        enqueue(thread);
    }
    pthread_mutex_unlock(&lock);
    redflag_system_end();
    return NULL;
}

void run_program(unsigned workers)
{
    pthread_t pool[64];
    for (unsigned i = 0; i < workers; i++)
        if (pthread_create(&pool[i], NULL, worker_main, (void *)(uintptr_t)(i + 1)))
            die("no more kernel threads");
    run_to_the_end(start_thread(NULL, &program.functions[program.main - 1], NULL, true));
    pthread_mutex_lock(&lock);
    while (alive)
        pthread_cond_wait(&changed, &lock);
    closing = true;
    pthread_cond_broadcast(&changed);
    unsigned all = count;
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < workers; i++)
        pthread_join(pool[i], NULL);
    for (unsigned i = 0; i < all; i++) {
        if (threads[i]->native && i)
            pthread_join(threads[i]->kernel, NULL);
        if (threads[i]->identity)
            redflag_thread_end(threads[i]->identity);
        free(threads[i]->stack);
        free(threads[i]->frames);
        free(threads[i]);
    }
}
