/* The transactional multiset of "Goldilocks: a race and transaction-aware Java runtime", section 6 (Table 3): an array of slots; an
 * insertion of several elements allocates a slot for each by a transaction of its own, and then makes all of them visible in one, or
 * frees what it has got in one if there is no room.
 *
 *   multiset THREADS OPERATIONS
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define SIZE 10

enum state { FREE, TAKEN, VISIBLE };

static struct slot {
    enum state state;
    int element;
} slots[SIZE];

static int operations;
static long inserted, deleted; /* changed in transactions */

static int allocate(int element)
{
    int got = -1;
    __transaction_atomic {
        for (int i = 0; i < SIZE && got < 0; i++)
            if (slots[i].state == FREE) {
                slots[i].state = TAKEN;
                slots[i].element = element;
                got = i;
            }
    }
    return got;
}

static void insert(const int *elements, int count)
{
    int got[SIZE], n = 0;
    while (n < count && (got[n] = allocate(elements[n])) >= 0)
        n++;
    __transaction_atomic {
        for (int i = 0; i < n; i++)
            slots[got[i]].state = n == count ? VISIBLE : FREE;
        if (n == count)
            inserted += count;
    }
}

static int delete (int element)
{
    int done = 0;
    __transaction_atomic {
        for (int i = 0; i < SIZE && !done; i++)
            if (slots[i].state == VISIBLE && slots[i].element == element) {
                slots[i].state = FREE;
                deleted++;
                done = 1;
            }
    }
    return done;
}

static int count(int element)
{
    int found = 0;
    __transaction_atomic {
        for (int i = 0; i < SIZE; i++)
            found += slots[i].state == VISIBLE && slots[i].element == element;
    }
    return found;
}

static void *work(void *argument)
{
    unsigned random = (unsigned)(long)argument * 2654435761u + 1;
    long seen = 0;
    for (int i = 0; i < operations; i++) {
        random = random * 1103515245u + 12345u;
        int elements[3] = { (int)(random >> 8 & 7), (int)(random >> 11 & 7), (int)(random >> 14 & 7) };
        switch (random >> 20 & 3) {
        case 0: insert(elements, 1 + (int)(random >> 22 & 1)); break;
        case 1:
        case 2: seen += delete (elements[0]); break;
        default: seen += count(elements[1]);
        }
    }
    return (void *)seen;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 5;
    operations = argc > 2 ? atoi(argv[2]) : 100;
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, work, (void *)i) != 0)
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    long left = 0;
    for (int i = 0; i < SIZE; i++)
        left += slots[i].state == VISIBLE;
    free(all);
    printf("%ld inserted, %ld deleted, %ld left\n", inserted, deleted, left);
    return inserted - deleted != left;
}
