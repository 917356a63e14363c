/* Matrices of doubles, multiplied by rows: long runs of reads that several threads share. */
#include "bench/kernels/kernel.h"

enum { N = KERNEL_PERCENT < 25 ? 160 : 400, ROUNDS = SCALED(4) };
static double a[N][N], b[N][N], c[N][N];

static void *part(void *argument)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = (int)(intptr_t)argument; i < N; i += THREADS)
            for (int k = 0; k < N; k++)
                for (int j = 0; j < N; j++)
                    c[i][j] += a[i][k] * b[k][j];
    return NULL;
}

int main(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[i][j] = (double)(random_next(&seed) % 100);
            b[i][j] = (double)(random_next(&seed) % 100);
        }
    run_threads(part);
    printf("%g\n", c[N / 2][N / 3]);
}
