/* Which general registers an x86-64 instruction changes: for code that gcc and clang have compiled, walked over by sites/instruction.h.
 *
 * 1. What is named, with rax, rcx and rdx, is all that may change. It may be too much: an instruction on vectors that has a general register's
 *    number is taken to change that one too where telling them apart would not pay.
 * 2. What leads elsewhere, may end or order anything, moves the stack pointer or is not known here `stops`: nothing else is said of it.
 */
#ifndef RF_SITES_EFFECTS_H
#define RF_SITES_EFFECTS_H

#include "sites/instruction.h"

enum { RF_RAX, RF_RCX, RF_RDX, RF_RBX, RF_RSP, RF_RBP, RF_RSI, RF_RDI, RF_R12 = 12, RF_R13, RF_R14, RF_R15 };
#define RF_REGISTER(number) (1u << (number))
/* What a function finds as it was after a call. */
#define RF_KEPT_REGISTERS                                                                                                            \
    (RF_REGISTER(RF_RBX) | RF_REGISTER(RF_RSP) | RF_REGISTER(RF_RBP) | RF_REGISTER(RF_R12) | RF_REGISTER(RF_R13) |                    \
     RF_REGISTER(RF_R14) | RF_REGISTER(RF_R15))

struct rf_effect {
    bool stops;
    uint16_t writes;
};

/* The operands of an instruction with a ModRM byte. */
struct rf_operands {
    const uint8_t *modrm;
    uint8_t rex;  /* 0: none */
    uint8_t reg;  /* or what belongs to the opcode, without the fourth bit */
    uint8_t rm;   /* if `direct`; else it belongs to an address in memory */
    bool direct;
};

static inline uint8_t rf_rex_of(const uint8_t *at, const uint8_t *opcode)
{
    return opcode > at && (opcode[-1] & 0xf0) == 0x40 ? opcode[-1] : 0;
}

static inline struct rf_operands rf_operands_at(const uint8_t *modrm, uint8_t rex)
{
    return (struct rf_operands){ modrm, rex, (uint8_t)((*modrm >> 3 & 7) | (rex & 4) << 1), (uint8_t)((*modrm & 7) | (rex & 1) << 3),
                                 *modrm >= 0xc0 };
}

/* What an instruction does with the registers that its ModRM byte names. */
enum rf_role { RF_ROLE_STOPS, RF_ROLE_NONE, RF_ROLE_REG, RF_ROLE_RM, RF_ROLE_BOTH };

static inline enum rf_role rf_role_of_group(uint8_t opcode, const struct rf_operands *operands)
{
    unsigned which = *operands->modrm >> 3 & 7;
    switch (opcode) {
    case 0x80: case 0x81: case 0x83: return which == 7 ? RF_ROLE_NONE : RF_ROLE_RM; /* cmp */
    case 0xc6: case 0xc7: return which ? RF_ROLE_STOPS : RF_ROLE_RM;
    case 0xf6: case 0xf7: return which == 2 || which == 3 ? RF_ROLE_RM : RF_ROLE_NONE; /* test; products go to rax and rdx */
    default: return which < 2 ? RF_ROLE_RM : RF_ROLE_STOPS; /* fe, ff: inc, dec; calls, jumps, push */
    }
}

static inline enum rf_role rf_role_one(uint8_t opcode, const struct rf_operands *operands)
{
    if (opcode < 0x40) { /* arithmetic; cmp changes nothing */
        unsigned form = opcode & 7;
        return form > 5 ? RF_ROLE_STOPS : form > 3 || opcode >= 0x38 ? RF_ROLE_NONE : form < 2 ? RF_ROLE_RM : RF_ROLE_REG;
    }
    switch (opcode) {
    case 0x80: case 0x81: case 0x83: case 0xc6: case 0xc7: case 0xf6: case 0xf7: case 0xfe: case 0xff:
        return rf_role_of_group(opcode, operands);
    case 0x63: case 0x69: case 0x6b: case 0x8a: case 0x8b: case 0x8d: return RF_ROLE_REG;
    case 0x88: case 0x89: case 0xc0: case 0xc1: case 0xd0: case 0xd1: case 0xd2: case 0xd3: return RF_ROLE_RM;
    case 0x86: case 0x87: return operands->direct ? RF_ROLE_BOTH : RF_ROLE_STOPS; /* xchg with memory is atomic */
    case 0x84: case 0x85: case 0x90: case 0x98: case 0x99: case 0xa8: case 0xa9: return RF_ROLE_NONE; /* test, nop; rax and rdx */
    case 0xd8: case 0xd9: case 0xda: case 0xdb: case 0xdc: case 0xdd: case 0xde: case 0xdf: return RF_ROLE_NONE; /* x87 */
    default: return RF_ROLE_STOPS;
    }
}

/* After 0f. */
static inline enum rf_role rf_role_two(uint8_t opcode, const struct rf_operands *operands)
{
    switch (opcode) {
    case 0x0d: case 0x18: case 0x1f: return RF_ROLE_NONE; /* prefetch, nop */
    case 0x2c: case 0x2d: case 0x50: case 0xaf: case 0xb6: case 0xb7: case 0xb8: case 0xbc: case 0xbd: case 0xbe: case 0xbf: case 0xc5:
    case 0xd7: return RF_ROLE_REG;
    case 0x7e: case 0xa4: case 0xa5: case 0xab: case 0xac: case 0xad: case 0xb3: case 0xbb: return RF_ROLE_RM;
    case 0xa3: return RF_ROLE_NONE; /* bt */
    case 0xba: return (*operands->modrm >> 3 & 7) == 4 ? RF_ROLE_NONE : RF_ROLE_RM;
    case 0x2a: case 0x2b: case 0x2e: case 0x2f: case 0xc2: case 0xc3: case 0xc4: case 0xc6: return RF_ROLE_NONE;
    case 0x77: case 0x78: case 0x79: case 0xff: return RF_ROLE_STOPS;
    }
    if ((opcode & 0xf0) == 0x40) /* cmov */
        return RF_ROLE_REG;
    if ((opcode & 0xf0) == 0x90) /* set */
        return RF_ROLE_RM;
    bool vectors = (opcode >= 0x10 && opcode < 0x18) || opcode == 0x28 || opcode == 0x29 || (opcode >= 0x51 && opcode < 0x80) || opcode >= 0xd0;
    return vectors ? RF_ROLE_NONE : RF_ROLE_STOPS;
}

/* After 0f 38 and 0f 3a. */
static inline enum rf_role rf_role_three(uint8_t map, uint8_t opcode)
{
    if (map == 0x38)
        return opcode < 0xf0 ? (opcode < 0x80 ? RF_ROLE_NONE : RF_ROLE_STOPS) : opcode < 0xf2 ? RF_ROLE_REG : RF_ROLE_STOPS;
    return opcode >= 0x14 && opcode <= 0x17 ? RF_ROLE_RM : RF_ROLE_NONE; /* pextr */
}

/* A register of one byte: without a REX prefix 4 to 7 are the second bytes of 0 to 3. Both are named. */
static inline uint16_t rf_register_of(uint8_t number, bool byte)
{
    return (uint16_t)(RF_REGISTER(number) | (byte && number < 8 ? RF_REGISTER(number & 3) : 0));
}

static inline struct rf_effect rf_effect_of_role(enum rf_role role, const struct rf_operands *operands, bool byte)
{
    unsigned writes = 0;
    if (role == RF_ROLE_REG || role == RF_ROLE_BOTH)
        writes |= rf_register_of(operands->reg, byte);
    if ((role == RF_ROLE_RM || role == RF_ROLE_BOTH) && operands->direct)
        writes |= rf_register_of(operands->rm, byte);
    return (struct rf_effect){ role == RF_ROLE_STOPS, (uint16_t)writes };
}

/* VEX: all three registers that it names, as if they were general ones. */
static inline struct rf_effect rf_effect_of_vector(const uint8_t *opcode)
{
    bool two = *opcode == 0xc5;
    uint8_t first = opcode[1], last = two ? first : opcode[2];
    struct rf_operands operands =
        rf_operands_at(opcode + (two ? 3 : 4), (uint8_t)((first & 0x80 ? 0 : 4) | (two || first & 0x20 ? 0 : 1)));
    struct rf_effect effect = rf_effect_of_role(RF_ROLE_BOTH, &operands, false);
    effect.writes |= (uint16_t)RF_REGISTER(~last >> 3 & 15);
    effect.stops = two && opcode[2] == 0x77; /* vzeroupper has no ModRM byte */
    return effect;
}

/* The instruction at `at`, which is `instruction`. */
static inline struct rf_effect rf_effect_of(const uint8_t *at, const struct rf_instruction *instruction)
{
    const uint8_t *opcode = instruction->opcode;
    uint8_t rex = rf_rex_of(at, opcode);
    for (const uint8_t *prefix = at; prefix < opcode; prefix++)
        if (*prefix == 0xf0) /* lock */
            return (struct rf_effect){ .stops = true };
    if (*opcode == 0x0f) {
        uint8_t second = opcode[1];
        if ((second & 0xf8) == 0xc8) /* bswap */
            return (struct rf_effect){ .writes = (uint16_t)RF_REGISTER((second & 7) | (rex & 1) << 3) };
        if (second == 0x38 || second == 0x3a) {
            struct rf_operands operands = rf_operands_at(opcode + 3, rex);
            return rf_effect_of_role(rf_role_three(second, opcode[2]), &operands, false);
        }
        struct rf_operands operands = rf_operands_at(opcode + 2, rex);
        return rf_effect_of_role(rf_role_two(second, &operands), &operands, (second & 0xf0) == 0x90);
    }
    if ((*opcode & 0xf0) == 0xb0) /* mov of an immediate */
        return (struct rf_effect){ .writes = rf_register_of((uint8_t)((*opcode & 7) | (rex & 1) << 3), *opcode < 0xb8) };
    if (*opcode > 0x90 && *opcode < 0x98) /* xchg with rax */
        return (struct rf_effect){ .writes = (uint16_t)RF_REGISTER((*opcode & 7) | (rex & 1) << 3) };
    if (*opcode == 0xc4 || *opcode == 0xc5)
        return rf_effect_of_vector(opcode);
    struct rf_operands operands = rf_operands_at(opcode + 1, rex);
    bool byte = *opcode < 0x40 || *opcode == 0x80 || *opcode == 0x86 || *opcode == 0x88 || *opcode == 0x8a || *opcode == 0xc0 || *opcode == 0xc6 ||
                *opcode == 0xd0 || *opcode == 0xd2 || *opcode == 0xf6 || *opcode == 0xfe;
    return rf_effect_of_role(rf_role_one(*opcode, &operands), &operands, byte && (*opcode >= 0x40 || !(*opcode & 1)));
}

#endif
