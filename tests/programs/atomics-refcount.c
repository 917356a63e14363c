// expect: none
// runs: 10
// stock: knows no fences
// Reference counting as everybody does it: relaxed increments, release decrements, and an acquire fence before the end.
#include "tests/programs/order.h"
#include <stdatomic.h>

struct object {
    atomic_int references;
    int a, b;
};

static struct object *shared;

static void drop(struct object *object)
{
    if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_release) == 1) {
        atomic_thread_fence(memory_order_acquire);
        MUST(object->a + object->b == 3);
        object->a = object->b = 0;
        free(object);
    }
}

static void *one(void *unused)
{
    struct object *object = shared;
    object->a = 1;
    drop(object);
    return unused;
}

static void *two(void *unused)
{
    struct object *object = shared;
    object->b = 2;
    drop(object);
    return unused;
}

int main(void)
{
    for (int i = 0; i < 200; i++) {
        shared = malloc(sizeof *shared);
        atomic_init(&shared->references, 2);
        shared->a = shared->b = 0;
        run_both(one, two);
    }
    return 0;
}
