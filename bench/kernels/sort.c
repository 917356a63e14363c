/* Quicksort of integers, a half for each thread, then merged. */
#include "bench/kernels/kernel.h"

enum { N = SCALED(8000000) };
static int data[N], sorted[N];

static void sort(int *from, int *to)
{
    while (to - from > 12) {
        int pivot = from[(to - from) / 2], *low = from, *high = to - 1;
        while (low <= high) {
            while (*low < pivot)
                low++;
            while (*high > pivot)
                high--;
            if (low <= high) {
                int swap = *low;
                *low++ = *high;
                *high-- = swap;
            }
        }
        if (high + 1 - from < to - low) {
            sort(from, high + 1);
            from = low;
        } else {
            sort(low, to);
            to = high + 1;
        }
    }
    for (int *at = from + 1; at < to; at++) {
        int value = *at, *place = at;
        for (; place > from && place[-1] > value; place--)
            *place = place[-1];
        *place = value;
    }
}

static void *part(void *argument)
{
    intptr_t which = (intptr_t)argument;
    sort(data + which * (N / THREADS), data + (which + 1) * (N / THREADS));
    return NULL;
}

int main(void)
{
    uint64_t seed = 2;
    for (int i = 0; i < N; i++)
        data[i] = (int)(random_next(&seed) >> 33);
    run_threads(part);
    for (int i = 0, a = 0, b = N / 2; i < N; i++)
        sorted[i] = b == N || (a < N / 2 && data[a] <= data[b]) ? data[a++] : data[b++];
    for (int i = 1; i < N; i++)
        if (sorted[i - 1] > sorted[i])
            return 1;
    printf("%d\n", sorted[N / 2]);
}
