// expect: none
// compilers: gcc
// flags: -fgnu-tm
// runs: 3
// text: all is well
// stock: the compiler crashes over functions that are called in transactions
/* Transactions that call functions, are left by exceptions, nest, allocate and free; blocks that a transaction takes out are the thread's. */
#include "tests/programs/order.h"

#define THREADS 12
#define ROUNDS 200

struct node {
    node *next;
    long value;
};

static node *head;
static long count, thrown, taken;

__attribute__((transaction_safe, noinline)) static void push(long value)
{
    node *fresh = static_cast<node *>(malloc(sizeof *fresh));
    fresh->value = value;
    fresh->next = head;
    head = fresh;
    count++;
}

__attribute__((transaction_safe, noinline)) static node *take()
{
    node *first = head;
    if (first) {
        head = first->next;
        count--;
    }
    return first;
}

/* What has thrown has happened. */
static NOINLINE void push_and_throw(long value)
{
    __transaction_atomic {
        push(value);
        if (value % 3 == 0)
            throw 7;
    }
}

static void *work(void *argument)
{
    long me = reinterpret_cast<long>(argument), caught = 0, mine = 0;
    for (long i = me; i < me + ROUNDS; i++) {
        switch (i % 4) {
        case 0:
            __transaction_atomic {
                push(i);
                __transaction_atomic {
                    push(i + 1);
                }
            }
            break;
        case 1:
            __transaction_atomic {
                free(take());
            }
            break;
        case 2:
            try {
                push_and_throw(i);
            } catch (int) {
                caught++;
            }
            break;
        default: {
            node *own;
            __transaction_atomic {
                own = take();
            }
            if (own) {
                own->value = -1; /* nobody else knows it */
                free(own);
                mine++;
            }
        }
        }
    }
    __transaction_atomic {
        thrown += caught;
        taken += mine;
    }
    return nullptr;
}

int main()
{
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], nullptr, work, reinterpret_cast<void *>(i)) == 0);
    for (pthread_t thread : threads)
        MUST(pthread_join(thread, nullptr) == 0);
    long left = 0;
    while (node *own = take()) {
        free(own);
        left++;
    }
    MUST(count == 0 && left > 0 && thrown > THREADS * ROUNDS / 15 && taken > 0);
    puts("all is well");
    return 0;
}
