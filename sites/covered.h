/* Calls of hooks that may be left out: those before a read of bytes that a write follows at once, as in `x += 1`, whose check is as good.
 *
 * 1. Whatever races with the read races with the write: between the two the thread neither acquires nor releases anything, so that nothing is
 *    ordered before, or after, only one of them. And a write races with all that a read does. clang leaves such reads out by itself. What keeps
 *    the write from being looked at hides a race of the read: a division by zero in between, or an annotation that writes are to be ignored.
 * 2. A read is covered if the code goes straight from its call to that of the write, over instructions and calls of other plain hooks, and
 *    both calls have the same address: a sum of registers that a call keeps, and nothing on the way changes, but by a constant. A jump into the
 *    midst of it does not matter: whoever comes so has not come by the read.
 * 3. That the read's argument is what the instruction before its call says needs more: no jump may lead to between the two. Those that jump far
 *    are looked for at every byte of the code (rf_jumps_find()), and those that jump near by a walk over the instructions around. A jump
 *    through a table leads to the beginning of a block of the compiler's, which sets the arguments of a call in the block of the call.
 * 4. Where anything is in doubt a call stays.
 */
#ifndef RF_SITES_COVERED_H
#define RF_SITES_COVERED_H

#include "sites/effects.h"
#include "sites/hook.h"
#include "sites/scan.h"

#define RF_NEAR_JUMP 130 /* bytes: the longest with the place that it leads to */

/* A bit for each byte of the code from `begin` on: a jump of four bytes may lead there. */
struct rf_jumps {
    const uint8_t *begin, *end;
    uint64_t *bits;
};

static inline size_t rf_jumps_bytes(const struct rf_jumps *jumps)
{
    return ((size_t)(jumps->end - jumps->begin) / 64 + 1) * sizeof *jumps->bits;
}

static inline void rf_jump_add(struct rf_jumps *jumps, const uint8_t *next)
{
    uintptr_t place = (uintptr_t)next + (uintptr_t)(intptr_t)rf_scan_displacement(next - 4) - (uintptr_t)jumps->begin;
    if (place < (uintptr_t)(jumps->end - jumps->begin))
        jumps->bits[place / 64] |= (uint64_t)1 << place % 64;
}

/* Whatever looks like one is taken for one. */
static inline void rf_jump_consider(struct rf_jumps *jumps, const uint8_t *at)
{
    if (*at == 0xe9 && jumps->end - at >= 5)
        rf_jump_add(jumps, at + 5);
    else if (*at == 0x0f && jumps->end - at >= 6 && (at[1] & 0xf0) == 0x80)
        rf_jump_add(jumps, at + 6);
}

static inline void rf_jumps_find(struct rf_jumps *jumps)
{
    const __m128i jump = _mm_set1_epi8((char)0xe9), two = _mm_set1_epi8(0x0f);
    const __m128i high = _mm_set1_epi8((char)0xf0), condition = _mm_set1_epi8((char)0x80);
    const uint8_t *at = jumps->begin;
    for (; jumps->end - at >= 17; at += 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)at), second = _mm_loadu_si128((const __m128i *)(at + 1));
        __m128i likely = _mm_and_si128(_mm_cmpeq_epi8(bytes, two), _mm_cmpeq_epi8(_mm_and_si128(second, high), condition));
        for (int hits = _mm_movemask_epi8(_mm_or_si128(likely, _mm_cmpeq_epi8(bytes, jump))); hits; hits &= hits - 1)
            rf_jump_consider(jumps, at + __builtin_ctz((unsigned)hits));
    }
    for (; at < jumps->end; at++)
        rf_jump_consider(jumps, at);
}

/* -- addresses ------------------------------------------------------------------------------------------------------------------ */

/* base + index * scale + offset, of the registers as they are now. */
struct rf_address {
    int8_t base, index; /* -1: none */
    uint8_t scale;      /* as it is encoded */
    uint64_t offset;
};

static inline unsigned rf_address_registers(const struct rf_address *address)
{
    return (address->base < 0 ? 0 : RF_REGISTER(address->base)) | (address->index < 0 ? 0 : RF_REGISTER(address->index));
}

/* Only of addresses that were made in the same way: equal ones may look different. */
static inline bool rf_address_is(const struct rf_address *one, const struct rf_address *other)
{
    return one->base == other->base && one->index == other->index && one->scale == other->scale && one->offset == other->offset;
}

/* What lea computes; false: not known here. */
static inline bool rf_address_of(const struct rf_instruction *instruction, const struct rf_operands *operands, struct rf_address *address)
{
    const uint8_t *at = operands->modrm;
    unsigned mode = *at >> 6, low = *at & 7;
    *address = (struct rf_address){ .base = (int8_t)operands->rm, .index = -1 };
    at++;
    if (low == 5 && mode == 0) {
        *address = (struct rf_address){ -1, -1, 0, (uintptr_t)instruction->next + (uintptr_t)(intptr_t)rf_scan_displacement(at) };
        return true;
    }
    bool wide = mode == 2;
    if (low == 4) {
        unsigned index = (*at >> 3 & 7) | (operands->rex & 2) << 2, base = *at & 7;
        address->index = index == RF_RSP ? -1 : (int8_t)index;
        address->scale = index == RF_RSP ? 0 : *at >> 6;
        address->base = (int8_t)(base | (operands->rex & 1) << 3);
        if (base == 5 && mode == 0) {
            address->base = -1;
            wide = true;
        }
        at++;
    }
    address->offset = wide ? (uint64_t)(int64_t)rf_scan_displacement(at) : mode == 1 ? (uint64_t)(int64_t)(int8_t)*at : 0;
    return true;
}

/* rdi, the first argument: what an instruction makes of it. */
enum rf_argument { RF_ARGUMENT_KEPT, RF_ARGUMENT_LOST, RF_ARGUMENT_SET };

static inline enum rf_argument rf_argument_after(const uint8_t *at, const struct rf_instruction *instruction, struct rf_effect effect,
                                                 struct rf_address *address)
{
    if (effect.stops || !(effect.writes & RF_REGISTER(RF_RDI)))
        return effect.stops ? RF_ARGUMENT_LOST : RF_ARGUMENT_KEPT;
    const uint8_t *opcode = instruction->opcode;
    uint8_t rex = rf_rex_of(at, opcode);
    if (*opcode == 0xbf && !rex && opcode == at) { /* mov $, %edi: code that lies where it was linked */
        *address = (struct rf_address){ -1, -1, 0, (uint32_t)rf_scan_displacement(opcode + 1) };
        return RF_ARGUMENT_SET;
    }
    if ((rex & 8) && opcode == at + 1 && (*opcode == 0x89 || *opcode == 0x8b || *opcode == 0x8d)) {
        struct rf_operands operands = rf_operands_at(opcode + 1, rex);
        uint8_t to = *opcode == 0x89 ? operands.rm : operands.reg, from = *opcode == 0x89 ? operands.reg : operands.rm;
        if (to == RF_RDI && *opcode != 0x8d && operands.direct) {
            *address = (struct rf_address){ (int8_t)from, -1, 0, 0 };
            return from == RF_RDI ? RF_ARGUMENT_LOST : RF_ARGUMENT_SET;
        }
        if (to == RF_RDI && *opcode == 0x8d && !operands.direct && rf_address_of(instruction, &operands, address))
            return rf_address_registers(address) & RF_REGISTER(RF_RDI) ? RF_ARGUMENT_LOST : RF_ARGUMENT_SET;
    }
    return RF_ARGUMENT_LOST;
}

/* After an instruction that does not stop: the same address of the registers as they are now. false: it cannot be told. */
static inline bool rf_address_moves(const uint8_t *at, const struct rf_instruction *instruction, struct rf_effect effect,
                                    struct rf_address *address)
{
    if (!(effect.writes & rf_address_registers(address)))
        return true;
    const uint8_t *opcode = instruction->opcode;
    uint8_t rex = rf_rex_of(at, opcode);
    if (opcode != at + 1 || !(rex & 8) || (*opcode != 0x83 && *opcode != 0x81))
        return false;
    struct rf_operands operands = rf_operands_at(opcode + 1, rex);
    unsigned which = *operands.modrm >> 3 & 7;
    if (!operands.direct || operands.rm != address->base || operands.rm == address->index || (which != 0 && which != 5))
        return false;
    uint64_t added = *opcode == 0x83 ? (uint64_t)(int64_t)(int8_t)opcode[2] : (uint64_t)(int64_t)rf_scan_displacement(opcode + 2);
    address->offset += which ? added : -added; /* add or sub */
    return true;
}

/* -- the calls ------------------------------------------------------------------------------------------------------------------ */

#define RF_COVER_STEPS 24 /* instructions: nearly all writes that cover a read are nearer */
#define RF_ARGUMENT_NEAR 48 /* bytes before a call in which its argument is looked for */

/* Where it is known that an instruction begins: behind the last calls of hooks, in a ring. */
#define RF_COVER_SURE 32
struct rf_cover {
    const struct rf_scan *scan;
    struct rf_hook (*hook)(uint32_t number);
    struct rf_jumps jumps; /* of the code's only segment */
    const uint8_t *sure[RF_COVER_SURE];
    unsigned count;
    const uint8_t *walked; /* from before here on: rf_cover_any_write_follows() */
    bool found;
};

/* A call was passed: they come in ascending order. */
static inline void rf_cover_pass(struct rf_cover *cover, const struct rf_hook_call *call)
{
    cover->sure[cover->count++ % RF_COVER_SURE] = call->at + call->length;
}

/* The argument of the call, and where it is known from. */
static inline bool rf_cover_argument(const struct rf_cover *cover, const struct rf_hook_call *call, struct rf_address *address,
                                     const uint8_t **from)
{
    bool known = false;
    const uint8_t *at = cover->count ? cover->sure[(cover->count - 1) % RF_COVER_SURE] : NULL;
    if (!at || call->at - at > 4 * RF_NEAR_JUMP)
        return false;
    while (at <= call->at) {
        struct rf_instruction instruction = rf_instruction_at(at);
        if (instruction.opcode >= call->at)
            return instruction.opcode == call->at && known && !(rf_address_registers(address) & ~RF_KEPT_REGISTERS);
        struct rf_effect effect = { .stops = true };
        if (call->at - at <= RF_ARGUMENT_NEAR)
            effect = rf_effect_of(at, &instruction);
        switch (rf_argument_after(at, &instruction, effect, address)) {
        case RF_ARGUMENT_SET:
            known = true;
            *from = instruction.next;
            break;
        case RF_ARGUMENT_LOST: known = false; break;
        case RF_ARGUMENT_KEPT: known = known && rf_address_moves(at, &instruction, effect, address); break;
        }
        at = instruction.next;
    }
    return false;
}

/* Whether the code goes straight on to a write at all: most reads go no further than this. What lies on the way to one need not be walked again
 * for the reads on it. */
static inline bool rf_cover_any_write_follows(struct rf_cover *cover, const uint8_t *at)
{
    if (at < cover->walked)
        return cover->found;
    cover->found = false;
    for (unsigned steps = 0; steps < RF_COVER_STEPS && cover->jumps.end - at >= 16; steps++) {
        struct rf_instruction instruction = rf_instruction_at(at);
        uint8_t opcode = *instruction.opcode;
        struct rf_hook_call call;
        cover->walked = at;
        if (opcode == 0xe8 || (opcode == 0xff && instruction.opcode[1] == 0x15)) {
            struct rf_hook hook = { .kind = RF_HOOK_NONE };
            if (rf_scan_call_at(cover->scan, instruction.opcode, &call))
                hook = cover->hook(call.hook);
            cover->found = hook.kind == RF_HOOK_ACCESS && hook.write;
            if (cover->found || (hook.kind != RF_HOOK_ACCESS && hook.kind != RF_HOOK_RANGE))
                break;
        } else if (rf_stops_early(instruction.opcode)) {
            break;
        }
        at = instruction.next;
    }
    return cover->found;
}

/* The same for these bytes. */
static inline bool rf_cover_write_follows(const struct rf_cover *cover, const uint8_t *at, struct rf_address address, unsigned size)
{
    bool known = true, same = false; /* the address can be told; the argument is it */
    for (unsigned steps = 0; steps < RF_COVER_STEPS && (known || same) && cover->jumps.end - at >= 16; steps++) {
        struct rf_instruction instruction = rf_instruction_at(at);
        struct rf_hook_call call;
        if (*instruction.opcode == 0xe8 || (*instruction.opcode == 0xff && instruction.opcode[1] == 0x15)) {
            if (!rf_scan_call_at(cover->scan, instruction.opcode, &call))
                return false;
            struct rf_hook hook = cover->hook(call.hook);
            if (same && hook.kind == RF_HOOK_ACCESS && hook.write && hook.size >= size)
                return true;
            if (hook.kind != RF_HOOK_ACCESS && hook.kind != RF_HOOK_RANGE)
                return false;
            same = false;
        } else {
            struct rf_address other;
            struct rf_effect effect = rf_effect_of(at, &instruction);
            if (effect.stops)
                return false;
            enum rf_argument argument = rf_argument_after(at, &instruction, effect, &other);
            if (argument != RF_ARGUMENT_KEPT)
                same = argument == RF_ARGUMENT_SET && known && rf_address_is(&address, &other);
            known = known && rf_address_moves(at, &instruction, effect, &address);
        }
        at = instruction.next;
    }
    return false;
}

static inline bool rf_is_near_jump(uint8_t opcode)
{
    return (opcode & 0xf0) == 0x70 || opcode == 0xeb || (opcode & 0xfc) == 0xe0;
}

/* Whether a near jump at an instruction's opcode would lead to a place from `from` to `to`. */
static inline bool rf_leads_to(const uint8_t *opcode, const uint8_t *from, const uint8_t *to)
{
    const uint8_t *target = opcode + 2 + (int8_t)opcode[1];
    return rf_is_near_jump(*opcode) && target >= from && target <= to;
}

/* Whether no jump leads there. Only where some byte looks like one are instructions walked over. */
static inline bool rf_cover_unreached(const struct rf_cover *cover, const uint8_t *from, const uint8_t *to)
{
    const uint8_t *at = NULL;
    for (const uint8_t *byte = from; byte <= to; byte++) {
        size_t place = (size_t)(byte - cover->jumps.begin);
        if (cover->jumps.bits[place / 64] >> place % 64 & 1)
            return false;
    }
    for (unsigned i = 0; i < RF_COVER_SURE && i < cover->count; i++) {
        const uint8_t *sure = cover->sure[(cover->count - 1 - i) % RF_COVER_SURE];
        if (from - sure >= RF_NEAR_JUMP) {
            at = sure;
            break;
        }
    }
    if (!at || from - at > 16 * RF_NEAR_JUMP)
        return false;
    bool looks = false;
    for (const uint8_t *byte = from - RF_NEAR_JUMP; byte < to + RF_NEAR_JUMP && cover->jumps.end - byte >= 2; byte++)
        looks |= rf_leads_to(byte, from, to);
    for (; looks && at < to + RF_NEAR_JUMP && cover->jumps.end - at >= 16; at = rf_instruction_at(at).next)
        if (rf_leads_to(rf_instruction_at(at).opcode, from, to))
            return false;
    return true;
}

/* Whether the call, which was not passed yet, may be left out. */
static inline bool rf_covered(struct rf_cover *cover, const struct rf_hook_call *call)
{
    struct rf_hook hook = cover->hook(call->hook);
    struct rf_address address;
    const uint8_t *from = NULL;
    return hook.kind == RF_HOOK_ACCESS && !hook.write && !hook.vptr && !hook.is_volatile && !call->jump &&
           rf_cover_any_write_follows(cover, call->at + call->length) && rf_cover_argument(cover, call, &address, &from) &&
           rf_cover_write_follows(cover, call->at + call->length, address, hook.size) && rf_cover_unreached(cover, from, call->at);
}

#endif
