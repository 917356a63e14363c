/* What the programs of generate.c are made of, and the hooks that watch them (hooks.c). */
#ifndef RF_TESTS_PLUGIN_ARENA_H
#define RF_TESTS_PLUGIN_ARENA_H

#include <stdint.h>
#include <string.h>

/* All that they access and is looked at: in every build at the same address. */
#define ARENA ((unsigned char *)0x200000000000)
#define ARENA_SIZE 65536

struct inner {
    uint32_t a;
    uint16_t b, c;
    uint64_t d;
};

struct item {
    uint64_t e;
    uint32_t f, g;
    uint8_t h[8];
    uint16_t i[6];
    struct inner in;
    struct item *next;
};

void synchronise(void);      /* an epoch ends here. Nobody who compiles a call of it knows what it does */
void say(uint64_t result);   /* what was computed: the same in every build */
extern volatile int unknown; /* 0 */

#endif
