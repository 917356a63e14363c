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
enum rf_role {
    RF_ROLE_STOPS,
    RF_ROLE_NONE,
    RF_ROLE_REG,
    RF_ROLE_RM,
    RF_ROLE_BOTH,
    RF_ROLE_GROUP,  /* the ModRM byte says more */
    RF_ROLE_OPCODE, /* it has none: the register is in the opcode */
    RF_ROLE_BYTE = 16,
};

#define RF_ROLE_ARITHMETIC                                                                                                           \
    RF_ROLE_RM | RF_ROLE_BYTE, RF_ROLE_RM, RF_ROLE_REG | RF_ROLE_BYTE, RF_ROLE_REG, RF_ROLE_NONE, RF_ROLE_NONE, RF_ROLE_STOPS,         \
        RF_ROLE_STOPS

static const uint8_t rf_role_one[256] = {
    /* 00 */ RF_ROLE_ARITHMETIC, RF_ROLE_ARITHMETIC, RF_ROLE_ARITHMETIC, RF_ROLE_ARITHMETIC,
    /* 20 */ RF_ROLE_ARITHMETIC, RF_ROLE_ARITHMETIC, RF_ROLE_ARITHMETIC,
    [0x38 ... 0x3d] = RF_ROLE_NONE, /* cmp */
    [0x63] = RF_ROLE_REG,           /* movslq */
    [0x69] = RF_ROLE_REG, [0x6b] = RF_ROLE_REG, /* imul */
    [0x80] = RF_ROLE_GROUP | RF_ROLE_BYTE, [0x81] = RF_ROLE_GROUP, [0x83] = RF_ROLE_GROUP,
    [0x84 ... 0x85] = RF_ROLE_NONE, /* test */
    [0x86] = RF_ROLE_GROUP | RF_ROLE_BYTE, [0x87] = RF_ROLE_GROUP, /* xchg */
    [0x88] = RF_ROLE_RM | RF_ROLE_BYTE, [0x89] = RF_ROLE_RM, [0x8a] = RF_ROLE_REG | RF_ROLE_BYTE, [0x8b] = RF_ROLE_REG, /* mov */
    [0x8d] = RF_ROLE_REG, /* lea */
    [0x90] = RF_ROLE_NONE,
    [0x91 ... 0x97] = RF_ROLE_OPCODE, /* xchg with rax */
    [0x98 ... 0x99] = RF_ROLE_NONE,   /* cltq, cqto: rax and rdx */
    [0xa8 ... 0xa9] = RF_ROLE_NONE,   /* test */
    [0xb0 ... 0xb7] = RF_ROLE_OPCODE | RF_ROLE_BYTE, [0xb8 ... 0xbf] = RF_ROLE_OPCODE, /* mov of an immediate */
    [0xc0] = RF_ROLE_RM | RF_ROLE_BYTE, [0xc1] = RF_ROLE_RM, /* shifts */
    [0xc6] = RF_ROLE_GROUP | RF_ROLE_BYTE, [0xc7] = RF_ROLE_GROUP,
    [0xd0] = RF_ROLE_RM | RF_ROLE_BYTE, [0xd1] = RF_ROLE_RM, [0xd2] = RF_ROLE_RM | RF_ROLE_BYTE, [0xd3] = RF_ROLE_RM, /* shifts */
    [0xd8 ... 0xdf] = RF_ROLE_NONE, /* x87 */
    [0xf6] = RF_ROLE_GROUP | RF_ROLE_BYTE, [0xf7] = RF_ROLE_GROUP, [0xfe] = RF_ROLE_GROUP | RF_ROLE_BYTE, [0xff] = RF_ROLE_GROUP,
};

/* After 0f. */
static const uint8_t rf_role_two[256] = {
    [0x0d] = RF_ROLE_NONE, [0x18] = RF_ROLE_NONE, [0x1f] = RF_ROLE_NONE, /* prefetch, nop */
    [0x10 ... 0x17] = RF_ROLE_NONE, [0x28 ... 0x2b] = RF_ROLE_NONE, [0x2e ... 0x2f] = RF_ROLE_NONE, /* vectors, as all others without a word */
    [0x2c ... 0x2d] = RF_ROLE_REG,  /* cvtsd2si */
    [0x40 ... 0x4f] = RF_ROLE_REG,  /* cmov */
    [0x50] = RF_ROLE_REG,           /* movmskps */
    [0x51 ... 0x76] = RF_ROLE_NONE,
    [0x7c ... 0x7d] = RF_ROLE_NONE, [0x7e] = RF_ROLE_RM, [0x7f] = RF_ROLE_NONE, /* movd to a register */
    [0x90 ... 0x9f] = RF_ROLE_RM | RF_ROLE_BYTE, /* set */
    [0xa3] = RF_ROLE_NONE,                       /* bt */
    [0xa4 ... 0xa5] = RF_ROLE_RM, [0xab ... 0xad] = RF_ROLE_RM, /* shld; bts, shrd */
    [0xaf] = RF_ROLE_REG,                                       /* imul */
    [0xb3] = RF_ROLE_RM, [0xba] = RF_ROLE_GROUP, [0xbb] = RF_ROLE_RM, /* btr, btc */
    [0xb6 ... 0xb8] = RF_ROLE_REG, [0xbc ... 0xbf] = RF_ROLE_REG, /* movz, popcnt; bsf, bsr, movs */
    [0xc2 ... 0xc4] = RF_ROLE_NONE, [0xc5] = RF_ROLE_REG, [0xc6] = RF_ROLE_NONE, /* pextrw */
    [0xc8 ... 0xcf] = RF_ROLE_OPCODE, /* bswap */
    [0xd0 ... 0xd6] = RF_ROLE_NONE, [0xd7] = RF_ROLE_REG, [0xd8 ... 0xfe] = RF_ROLE_NONE, /* pmovmskb */
};

static inline unsigned rf_role_of_group(uint8_t opcode, const struct rf_operands *operands)
{
    unsigned which = *operands->modrm >> 3 & 7;
    switch (opcode) {
    case 0x80: case 0x81: case 0x83: return which == 7 ? RF_ROLE_NONE : RF_ROLE_RM; /* cmp */
    case 0x86: case 0x87: return operands->direct ? RF_ROLE_BOTH : RF_ROLE_STOPS;   /* xchg with memory is atomic */
    case 0xba: return which == 4 ? RF_ROLE_NONE : RF_ROLE_RM;                       /* bt */
    case 0xc6: case 0xc7: return which ? RF_ROLE_STOPS : RF_ROLE_RM;
    case 0xf6: case 0xf7: return which == 2 || which == 3 ? RF_ROLE_RM : RF_ROLE_NONE; /* test; products go to rax and rdx */
    default: return which < 2 ? RF_ROLE_RM : RF_ROLE_STOPS; /* fe, ff: inc, dec; calls, jumps, push */
    }
}

/* After 0f 38 and 0f 3a. */
static inline unsigned rf_role_three(uint8_t map, uint8_t opcode)
{
    if (map == 0x38)
        return opcode < 0x80 ? RF_ROLE_NONE : opcode == 0xf0 || opcode == 0xf1 ? RF_ROLE_REG : RF_ROLE_STOPS;
    return opcode >= 0x14 && opcode <= 0x17 ? RF_ROLE_RM : RF_ROLE_NONE; /* pextr */
}

/* A register of one byte: without a REX prefix 4 to 7 are the second bytes of 0 to 3. Both are named. */
static inline uint16_t rf_register_of(uint8_t number, bool byte)
{
    return (uint16_t)(RF_REGISTER(number) | (byte && number < 8 ? RF_REGISTER(number & 3) : 0));
}

static inline struct rf_effect rf_effect_of_role(unsigned role, uint8_t opcode, const struct rf_operands *operands)
{
    bool byte = role & RF_ROLE_BYTE;
    role &= ~(unsigned)RF_ROLE_BYTE;
    if (role == RF_ROLE_GROUP)
        role = rf_role_of_group(opcode, operands);
    unsigned writes = 0;
    if (role == RF_ROLE_OPCODE)
        writes = rf_register_of((uint8_t)((opcode & 7) | (operands->rex & 1) << 3), byte);
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
    struct rf_effect effect = rf_effect_of_role(RF_ROLE_BOTH, 0, &operands);
    effect.writes |= (uint16_t)RF_REGISTER(~last >> 3 & 15);
    effect.stops = two && opcode[2] == 0x77; /* vzeroupper has no ModRM byte */
    return effect;
}

/* Without a look at more than the opcode: of what does not stop here much stops all the same. */
static inline bool rf_stops_early(const uint8_t *opcode)
{
    if (*opcode == 0x0f)
        return (opcode[1] & 0xf0) == 0x80; /* jumps */
    return rf_role_one[*opcode] == RF_ROLE_STOPS && *opcode != 0xc4 && *opcode != 0xc5;
}

/* The instruction at `at`, which is `instruction`. */
static inline struct rf_effect rf_effect_of(const uint8_t *at, const struct rf_instruction *instruction)
{
    const uint8_t *opcode = instruction->opcode;
    uint8_t rex = rf_rex_of(at, opcode);
    for (const uint8_t *prefix = at; prefix < opcode; prefix++)
        if (*prefix == 0xf0) /* lock */
            return (struct rf_effect){ .stops = true };
    if (*opcode == 0xc4 || *opcode == 0xc5)
        return rf_effect_of_vector(opcode);
    bool two = *opcode == 0x0f;
    unsigned role = two ? rf_role_two[*++opcode] : rf_role_one[*opcode];
    if (two && (*opcode == 0x38 || *opcode == 0x3a)) {
        role = rf_role_three(*opcode, opcode[1]);
        opcode++;
    }
    struct rf_operands operands = rf_operands_at(opcode + 1, rex);
    return rf_effect_of_role(role, *opcode, &operands);
}

#endif
