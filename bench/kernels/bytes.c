/* Loops over bytes: a checksum, letters made small, words counted. */
#include "bench/kernels/kernel.h"

enum { ROOM = 4 << 20, ROUNDS = SCALED(8) };

static uint64_t results[THREADS][8];

static void *part(void *argument)
{
    uint64_t seed = 13 + (uint64_t)(intptr_t)argument;
    unsigned char *text = malloc(ROOM);
    for (int i = 0; i < ROOM; i++)
        text[i] = " ABCDEFabcdef-"[random_next(&seed) % 14];
    uint32_t a = 1, b = 0, words = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < ROOM; i++)
            if (text[i] >= 'A' && text[i] <= 'Z')
                text[i] = (unsigned char)(text[i] + 32);
        for (int i = 1; i < ROOM; i++)
            words += text[i - 1] == ' ' && text[i] != ' ';
        for (int i = 0; i < ROOM; i++) {
            a = (a + text[i]) % 65521;
            b = (b + a) % 65521;
        }
    }
    results[(intptr_t)argument][0] = a + b + words;
    free(text);
    return NULL;
}

int main(void)
{
    run_threads(part);
    printf("%llu\n", (unsigned long long)(results[0][0] + results[1][0]));
}
