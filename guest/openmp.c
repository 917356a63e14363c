/* What orders teams and tasks of OpenMP. guest/openmp.h has the vocabulary. */
#include "guest/openmp.h"

#include "guest/access.h"
#include "guest/memory.h"
#include "guest/objects.h"

static void release(const char *object)
{
    rf_release((uintptr_t)object, RF_O_USER);
}

static void acquire(const char *object)
{
    rf_acquire((uintptr_t)object, RF_O_USER);
}

static char event;
static uint32_t events_used; /* 0 until the first one is fulfilled */

void rf_omp_fulfilled(void)
{
    release(&event);
    __atomic_store_n(&events_used, 1, __ATOMIC_RELEASE);
}

static void waited(const char *object)
{
    acquire(object);
    if (__atomic_load_n(&events_used, __ATOMIC_ACQUIRE))
        acquire(&event);
}

static void *take(struct rf_self *self, size_t bytes)
{
    rf_busy_begin(self);
    void *block = rf_take(bytes);
    rf_busy_end(self);
    return block;
}

static void give(struct rf_self *self, void *block, size_t bytes)
{
    rf_objects_forget((uintptr_t)block, bytes);
    rf_busy_begin(self);
    rf_give(block, bytes);
    rf_busy_end(self);
}

struct rf_omp_team *rf_omp_team_new(struct rf_self *self)
{
    return take(self, sizeof(struct rf_omp_team));
}

void rf_omp_team_end(struct rf_self *self, struct rf_omp_team *team)
{
    give(self, team, sizeof *team);
}

void rf_omp_fork(struct rf_omp_team *team)
{
    release(&team->fork);
}

void rf_omp_member(struct rf_omp_team *team)
{
    acquire(&team->fork);
}

void rf_omp_member_end(struct rf_omp_team *team)
{
    release(&team->join);
}

/* Tasks that were left for the barrier at the region's end have released to that barrier. */
void rf_omp_join(struct rf_omp_team *team)
{
    acquire(&team->barrier[0]);
    acquire(&team->barrier[1]);
    waited(&team->join);
}

void rf_omp_arrive(const struct rf_omp_task *task)
{
    release(&task->team->barrier[task->round & 1]);
}

void rf_omp_leave(struct rf_omp_task *task)
{
    waited(&task->team->barrier[task->round & 1]);
    task->round++;
}

static size_t record_size(const struct rf_omp_task *task)
{
    return sizeof *task + task->args_size;
}

void *rf_omp_args(struct rf_omp_task *task, size_t align)
{
    uintptr_t at = (uintptr_t)(task + 1);
    return (void *)((at + align - 1) & ~(align - 1));
}

struct rf_omp_task *rf_omp_task_new(struct rf_self *self, struct rf_omp_team *team, struct rf_omp_task *parent, size_t args,
                                    size_t align)
{
    size_t args_size = args ? args + align : 0;
    struct rf_omp_task *task = take(self, sizeof *task + args_size);
    task->references = 1;
    task->team = team;
    task->parent = parent;
    task->args_size = args_size;
    if (args_size)
        rf_range_clear((uintptr_t)(task + 1), args_size); /* the program's, for now: what others did here is over */
    if (parent) {
        task->round = parent->round;
        task->group = parent->group;
        __atomic_fetch_add(&parent->references, 1, __ATOMIC_RELAXED);
    }
    return task;
}

static void free_places(struct rf_self *self, struct rf_omp_task *task)
{
    for (unsigned i = 0; i < RF_OMP_PLACES; i++)
        for (struct rf_omp_place *place = task->places[i], *next; place; place = next) {
            next = place->next;
            give(self, place, sizeof *place);
        }
    give(self, task->places, RF_OMP_PLACES * sizeof *task->places);
}

void rf_omp_task_drop(struct rf_self *self, struct rf_omp_task *task)
{
    while (task && __atomic_sub_fetch(&task->references, 1, __ATOMIC_ACQ_REL) == 0) {
        struct rf_omp_task *parent = task->parent;
        if (task->places)
            free_places(self, task);
        if (task->uses)
            give(self, task->uses, task->use_cap * sizeof *task->uses);
        give(self, task, record_size(task));
        task = parent;
    }
}

static struct rf_omp_place *place_of(struct rf_self *self, struct rf_omp_task *parent, uintptr_t addr)
{
    if (!parent->places)
        parent->places = take(self, RF_OMP_PLACES * sizeof *parent->places);
    struct rf_omp_place **chain = &parent->places[(addr >> 3 ^ addr >> 9 ^ addr >> 15) % RF_OMP_PLACES], *place = *chain;
    while (place && place->addr != addr)
        place = place->next;
    if (!place) {
        place = take(self, sizeof *place);
        place->addr = addr;
        place->next = *chain;
        *chain = place;
    }
    return place;
}

void rf_omp_depends(struct rf_self *self, struct rf_omp_task *task, uintptr_t addr, enum rf_omp_depend kind)
{
    if (!task->parent)
        return;
    if (task->use_count == task->use_cap) {
        uint32_t cap = task->use_cap ? 2 * task->use_cap : 4;
        struct rf_omp_use *larger = take(self, cap * sizeof *larger);
        if (task->use_count)
            memcpy(larger, task->uses, task->use_count * sizeof *larger);
        if (task->uses)
            give(self, task->uses, task->use_cap * sizeof *larger);
        task->uses = larger;
        task->use_cap = cap;
    }
    task->uses[task->use_count++] = (struct rf_omp_use){ place_of(self, task->parent, addr), kind };
}

/* Who reads comes after who wrote; who writes after both. Tasks of a mutexinoutset exclude each other: as good as writers. */
static void use_begins(const struct rf_omp_use *use)
{
    acquire(&use->place->written);
    if (use->kind != RF_OMP_IN)
        acquire(&use->place->read);
}

static void use_ends(const struct rf_omp_use *use)
{
    release(use->kind == RF_OMP_IN ? &use->place->read : &use->place->written);
}

void rf_omp_task_created(struct rf_omp_task *task)
{
    release(&task->start);
}

void rf_omp_task_begin(struct rf_omp_task *task)
{
    acquire(&task->start);
    for (uint32_t i = 0; i < task->use_count; i++)
        use_begins(&task->uses[i]);
}

void rf_omp_task_end(struct rf_omp_task *task)
{
    for (uint32_t i = 0; i < task->use_count; i++)
        use_ends(&task->uses[i]);
    if (task->group)
        release(&task->group->done);
    if (task->parent)
        release(&task->parent->children);
    release(&task->team->barrier[task->round & 1]);
}

void rf_omp_taskwait(struct rf_omp_task *task)
{
    waited(&task->children);
}

void rf_omp_taskwait_depend(struct rf_self *self, struct rf_omp_task *task, uintptr_t addr, enum rf_omp_depend kind)
{
    struct rf_omp_use use = { place_of(self, task, addr), kind };
    use_begins(&use);
}

void rf_omp_group_begin(struct rf_self *self, struct rf_omp_task *task)
{
    struct rf_omp_group *group = take(self, sizeof *group);
    group->outer = task->group;
    task->group = group;
}

void rf_omp_group_end(struct rf_self *self, struct rf_omp_task *task)
{
    struct rf_omp_group *group = task->group;
    if (!group)
        return;
    waited(&group->done);
    task->group = group->outer;
    give(self, group, sizeof *group);
}
