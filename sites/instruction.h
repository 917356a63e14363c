/* How long an x86-64 instruction is: enough of the encoding to walk over compiled code from one instruction to the next.
 *
 * 1. The length of every instruction that gcc and clang make is right; so is where its opcode lies.
 * 2. What is no instruction, or one of those that only hand-written code has (AMD's XOP), gets some length from 1 to 15: the walk may
 *    then be out of step until it meets a place that is known to begin an instruction, or falls into step by itself.
 */
#ifndef RF_SITES_INSTRUCTION_H
#define RF_SITES_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

/* What follows an opcode. The low bits are the bytes of its immediate. */
enum {
    RF_I_BYTES = 7,
    RF_I_MODRM = 8,
    RF_I_FULL = 16,   /* + 4 bytes, 2 after the prefix 0x66 */
    RF_I_OTHER = 32,  /* needs a look of its own */
    RF_I_PREFIX = 64,
};

#define RF_I_M RF_I_MODRM
#define RF_I_M1 (RF_I_MODRM | 1)
#define RF_I_MF (RF_I_MODRM | RF_I_FULL)
#define RF_I_F RF_I_FULL
#define RF_I_O RF_I_OTHER
#define RF_I_P RF_I_PREFIX
#define RF_I_ARITHMETIC RF_I_M, RF_I_M, RF_I_M, RF_I_M, 1, RF_I_F
#define RF_I_8(x) x, x, x, x, x, x, x, x

static const uint8_t rf_instruction_one[256] = {
    /* 00 */ RF_I_ARITHMETIC, 0, 0, RF_I_ARITHMETIC, 0, RF_I_O,
    /* 10 */ RF_I_ARITHMETIC, 0, 0, RF_I_ARITHMETIC, 0, 0,
    /* 20 */ RF_I_ARITHMETIC, RF_I_P, 0, RF_I_ARITHMETIC, RF_I_P, 0,
    /* 30 */ RF_I_ARITHMETIC, RF_I_P, 0, RF_I_ARITHMETIC, RF_I_P, 0,
    /* 40 */ RF_I_8(RF_I_P), RF_I_8(RF_I_P),
    /* 50 */ RF_I_8(0), RF_I_8(0),
    /* 60 */ 0, 0, RF_I_O, RF_I_M, RF_I_P, RF_I_P, RF_I_P, RF_I_P, RF_I_F, RF_I_MF, 1, RF_I_M1, 0, 0, 0, 0,
    /* 70 */ RF_I_8(1), RF_I_8(1),
    /* 80 */ RF_I_M1, RF_I_MF, RF_I_M1, RF_I_M1, RF_I_M, RF_I_M, RF_I_M, RF_I_M, RF_I_8(RF_I_M),
    /* 90 */ RF_I_8(0), RF_I_8(0),
    /* a0 */ RF_I_O, RF_I_O, RF_I_O, RF_I_O, 0, 0, 0, 0, 1, RF_I_F, 0, 0, 0, 0, 0, 0,
    /* b0 */ RF_I_8(1), RF_I_8(RF_I_O),
    /* c0 */ RF_I_M1, RF_I_M1, 2, 0, RF_I_O, RF_I_O, RF_I_M1, RF_I_MF, 3, 0, 2, 0, 0, 1, 0, 0,
    /* d0 */ RF_I_M, RF_I_M, RF_I_M, RF_I_M, 1, 1, 0, 0, RF_I_8(RF_I_M),
    /* e0 */ RF_I_8(1), 4, 4, 0, 1, 0, 0, 0, 0,
    /* f0 */ RF_I_P, 0, RF_I_P, RF_I_P, 0, 0, RF_I_O, RF_I_O, 0, 0, 0, 0, 0, 0, RF_I_M, RF_I_M,
};

/* After 0f, or under VEX and EVEX its map 1. */
static const uint8_t rf_instruction_two[256] = {
    /* 00 */ RF_I_M, RF_I_M, RF_I_M, RF_I_M, 0, 0, 0, 0, 0, 0, 0, 0, 0, RF_I_M, 0, RF_I_M1,
    /* 10 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* 20 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* 30 */ RF_I_8(0), RF_I_8(0),
    /* 40 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* 50 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* 60 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* 70 */ RF_I_M1, RF_I_M1, RF_I_M1, RF_I_M1, RF_I_M, RF_I_M, RF_I_M, 0, RF_I_8(RF_I_M),
    /* 80 */ RF_I_8(4), RF_I_8(4),
    /* 90 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* a0 */ 0, 0, 0, RF_I_M, RF_I_M1, RF_I_M, 0, 0, 0, 0, 0, RF_I_M, RF_I_M1, RF_I_M, RF_I_M, RF_I_M,
    /* b0 */ RF_I_8(RF_I_M), RF_I_M, RF_I_M, RF_I_M1, RF_I_M, RF_I_M, RF_I_M, RF_I_M, RF_I_M,
    /* c0 */ RF_I_M, RF_I_M, RF_I_M1, RF_I_M, RF_I_M1, RF_I_M1, RF_I_M1, RF_I_M, RF_I_8(0),
    /* d0 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* e0 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
    /* f0 */ RF_I_8(RF_I_M), RF_I_8(RF_I_M),
};

/* The bytes from a ModRM byte up to the immediate. */
static inline unsigned rf_instruction_operand(const uint8_t *at)
{
    unsigned mode = *at >> 6, low = *at & 7;
    if (mode == 3)
        return 1;
    if (low == 4)
        return mode == 1 ? 3 : mode == 2 || (at[1] & 7) == 5 ? 6 : 2;
    return mode == 1 ? 2 : mode == 2 || low == 5 ? 5 : 1;
}

struct rf_instruction {
    const uint8_t *opcode; /* after prefixes; of two bytes if it begins with 0f */
    const uint8_t *next;
    bool narrow;           /* it has the prefix 0x66 */
};

/* VEX and EVEX: `opcode` after the prefix, in one of the maps of that prefix. */
static inline const uint8_t *rf_instruction_vector(const uint8_t *opcode, unsigned map)
{
    unsigned kind = map == 3 ? RF_I_M1 : map == 1 ? rf_instruction_two[*opcode] : RF_I_M;
    const uint8_t *at = opcode + 1;
    if (kind & RF_I_MODRM)
        at += rf_instruction_operand(at);
    return at + (kind & RF_I_BYTES);
}

/* Up to 15 bytes from `at` are read. */
static inline __attribute__((always_inline)) struct rf_instruction rf_instruction_at(const uint8_t *at)
{
    struct rf_instruction found = { .narrow = false };
    const uint8_t *start = at;
    bool wide = false, small_address = false;
    unsigned kind = rf_instruction_one[*at];
    while (kind & RF_I_PREFIX) {
        found.narrow |= *at == 0x66;
        small_address |= *at == 0x67;
        wide = (*at & 0xf8) == 0x48;
        if (++at - start == 14)
            break;
        kind = rf_instruction_one[*at];
    }
    found.opcode = at;
    unsigned opcode = *at++;
    if (__builtin_expect(kind & RF_I_OTHER, 0)) {
        if (opcode == 0x0f) {
            opcode = *at++;
            if (opcode == 0x38 || opcode == 0x3a) {
                kind = opcode == 0x38 ? RF_I_M : RF_I_M1;
                at++;
            } else {
                kind = rf_instruction_two[opcode];
            }
        } else if ((opcode & 0xf8) == 0xb8) {
            kind = wide ? 0 : RF_I_FULL;
            at += wide ? 8 : 0;
        } else if (opcode == 0xf6 || opcode == 0xf7) { /* test has an immediate, not and neg have none */
            kind = RF_I_MODRM | (*at & 0x30 ? 0 : opcode == 0xf6 ? 1 : RF_I_FULL);
        } else if (opcode == 0xc5) {
            found.next = rf_instruction_vector(at + 1, 1);
            return found;
        } else if (opcode == 0xc4) {
            found.next = rf_instruction_vector(at + 2, *at & 31);
            return found;
        } else if (opcode == 0x62) {
            found.next = rf_instruction_vector(at + 3, *at & 7);
            return found;
        } else { /* a0 to a3: an absolute address */
            kind = 0;
            at += small_address ? 4 : 8;
        }
    }
    if (kind & RF_I_MODRM)
        at += rf_instruction_operand(at);
    if (kind & RF_I_FULL)
        at += found.narrow && !wide ? 2 : 4;
    found.next = at + (kind & RF_I_BYTES);
    return found;
}

#endif
