/* Input for the programs that are measured, the same in every run.
 *
 *   input text BYTES            prose of words that repeat as words do, with numbers and some noise in between: compresses about 3:1
 *   input video FRAMES          YUV4MPEG of 176x144: a drifting pattern, a moving square, noise
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static unsigned random_below(unsigned limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 32) * limit >> 32);
}

static void text(long bytes)
{
    enum { WORDS = 4096 };
    static char words[WORDS][12];
    for (int i = 0; i < WORDS; i++) {
        unsigned length = 2 + random_below(8);
        for (unsigned j = 0; j < length; j++)
            words[i][j] = "etaoinshrdlucmfwypvbgkqjxz"[random_below(26) * random_below(26) / 26];
    }
    for (long written = 0; written < bytes;) {
        unsigned kind = random_below(64);
        if (kind == 0)
            written += printf("%u", random_below(1000000));
        else if (kind == 1)
            written += printf("%c", (int)random_below(256));
        else /* the square of a uniform number: few words are frequent */
            written += printf("%s", words[random_below(WORDS) * (unsigned long)random_below(WORDS) / WORDS]);
        written += printf("%s", kind < 4 ? ".\n" : " ");
    }
}

static void video(long frames)
{
    enum { WIDTH = 176, HEIGHT = 144 };
    static unsigned char plane[WIDTH * HEIGHT];
    printf("YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n", WIDTH, HEIGHT);
    for (long frame = 0; frame < frames; frame++) {
        puts("FRAME");
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                double wave = sin((double)(x + 2 * frame) / 9) * cos((double)(y - frame) / 13);
                int square = x > 20 + frame && x < 60 + frame && y > 40 && y < 80;
                plane[y * WIDTH + x] = (unsigned char)(120 + (int)(60 * wave) + 40 * square + (int)random_below(9));
            }
        fwrite(plane, 1, sizeof plane, stdout);
        for (int i = 0; i < 2; i++) {
            memset(plane, (int)(100 + 20 * i + frame % 30), sizeof plane / 4);
            fwrite(plane, 1, sizeof plane / 4, stdout);
        }
    }
}

int main(int argc, char **argv)
{
    long amount = argc == 3 ? atol(argv[2]) : 0;
    if (amount > 0 && strcmp(argv[1], "text") == 0)
        text(amount);
    else if (amount > 0 && strcmp(argv[1], "video") == 0)
        video(amount);
    else
        return fputs("usage: input text|video AMOUNT\n", stderr), 2;
    return fflush(stdout) != 0;
}
