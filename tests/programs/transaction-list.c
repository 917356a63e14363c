// expect: none
// compilers: gcc
// flags: -fgnu-tm
// runs: 5
// stock: libitm's own synchronisation is invisible to it
/* Goldilocks, Example 3: an object is its thread's own, then in a list that transactions protect, then another thread's own. */
#include "tests/programs/order.h"

struct foo {
    int data;
    struct foo *next;
};

static struct foo *head;

static void *first(void *unused)
{
    struct foo *own = malloc(sizeof *own);
    own->data = 42;
    __transaction_atomic {
        own->next = head;
        head = own;
    }
    return unused;
}

static void *second(void *unused)
{
    for (int seen = 0; !seen;)
        __transaction_atomic {
            for (struct foo *at = head; at; at = at->next) {
                at->data = 0;
                seen = 1;
            }
        }
    return unused;
}

static void *third(void *unused)
{
    struct foo *own = NULL;
    while (!own)
        __transaction_atomic {
            if (head && head->data == 0) { /* after the second */
                own = head;
                head = own->next;
            }
        }
    own->data++;
    MUST(own->data == 1);
    free(own);
    return unused;
}

int main(void)
{
    void *(*work[])(void *) = { first, second, third };
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        MUST(pthread_create(&threads[i], NULL, work[i], NULL) == 0);
    for (int i = 0; i < 3; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    MUST(!head);
    return 0;
}
