/* Reads whose hooks may be left out (sites/covered.h), and what instructions change (sites/effects.h).
 *
 * 1. Each instruction of the list is run, with all registers set: what it has changed must be among what the table says.
 * 2. Each piece of code has a hook before it, far enough away, and the read's hook is the first one of the piece.
 */
#include "tests/harness.h"

#include <stdio.h>

#include "sites/covered.h"

/* -- what instructions change ---------------------------------------------------------------------------------------------------- */

struct instruction_case {
    void (*run)(void); /* on `registers` */
    const uint8_t *begin, *end;
    const char *text;
};
extern const struct instruction_case instruction_cases[], instruction_cases_end[];
uint64_t registers[16] __attribute__((used));
uint64_t scratch[8] __attribute__((used)) = { 0x1122334455667788, 0x99aabbccddeeff00, 3, 5 };

__asm__(".macro CASE text:vararg\n"
        "       .text\n"
        "700:   push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "       lea registers(%rip), %rax\n"
        "       mov 8(%rax), %rcx; mov 16(%rax), %rdx; mov 24(%rax), %rbx; mov 40(%rax), %rbp; mov 48(%rax), %rsi; mov 56(%rax), %rdi\n"
        "       mov 64(%rax), %r8; mov 72(%rax), %r9; mov 80(%rax), %r10; mov 88(%rax), %r11\n"
        "       mov 96(%rax), %r12; mov 104(%rax), %r13; mov 112(%rax), %r14; mov 120(%rax), %r15; mov (%rax), %rax\n"
        "       mov %rsp, registers + 32(%rip)\n"
        "701:   \\text\n"
        "702:   mov %rsp, registers + 32(%rip)\n"
        "       mov %rax, registers(%rip); mov %rcx, registers + 8(%rip); mov %rdx, registers + 16(%rip); mov %rbx, registers + 24(%rip)\n"
        "       mov %rbp, registers + 40(%rip); mov %rsi, registers + 48(%rip); mov %rdi, registers + 56(%rip)\n"
        "       mov %r8, registers + 64(%rip); mov %r9, registers + 72(%rip); mov %r10, registers + 80(%rip); mov %r11, registers + 88(%rip)\n"
        "       mov %r12, registers + 96(%rip); mov %r13, registers + 104(%rip); mov %r14, registers + 112(%rip); mov %r15, registers + 120(%rip)\n"
        "       pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "       ret\n"
        "       .section .rodata\n"
        "703:   .asciz \"\\text\"\n"
        "       .section .data.rel.ro, \"aw\"\n"
        "       .quad 700b, 701b, 702b, 703b\n"
        ".endm\n"
        "       .section .data.rel.ro, \"aw\"\n"
        "       .balign 8\n"
        "       .globl instruction_cases, instruction_cases_end\n"
        "instruction_cases:\n"
        ".irp operation, add, or, adc, sbb, and, sub, xor, cmp, mov, test\n"
        "CASE \\operation %rbx, %r12\n"
        "CASE \\operation %r13d, %ebp\n"
        "CASE \\operation %bl, %r14b\n"
        "CASE \\operation %r15w, %bx\n"
        "CASE \\operation %ch, %bh\n"
        "CASE \\operation %rbp, scratch(%rip)\n"
        "CASE \\operation scratch(%rip), %r13\n"
        "CASE \\operation $17, %rbx\n"
        "CASE \\operation $0x12345, %r14d\n"
        "CASE \\operation $1, %bpl\n"
        "CASE \\operation $1, %bh\n"
        "CASE \\operation $77, %eax\n"
        ".endr\n"
        ".irp operation, inc, dec, not, neg\n"
        "CASE \\operation %rbx\n"
        "CASE \\operation %r12b\n"
        "CASE \\operation %bh\n"
        "CASE \\operation\\()l scratch(%rip)\n"
        ".endr\n"
        ".irp operation, shl, shr, sar, rol, ror, rcl\n"
        "CASE \\operation %rbx\n"
        "CASE \\operation $3, %r13d\n"
        "CASE \\operation %cl, %bpl\n"
        "CASE \\operation %cl, %r15\n"
        ".endr\n"
        "CASE mov $0x1122334455667788, %rbx\n"
        "CASE mov $0x11223344, %r12d\n"
        "CASE mov $1, %bl\n"
        "CASE mov $1, %bh\n"
        "CASE mov $1, %r13b\n"
        "CASE lea 5(%rbx,%rbp,2), %r14\n"
        "CASE lea scratch(%rip), %rdi\n"
        "CASE lea (%r12), %ebx\n"
        "CASE movslq %ebx, %r12\n"
        "CASE movslq scratch(%rip), %rbp\n"
        "CASE movzbl %bl, %r13d\n"
        "CASE movzbl %bh, %ebp\n"
        "CASE movsbq %r12b, %rbx\n"
        "CASE movzwl scratch(%rip), %ebx\n"
        "CASE movswq %bp, %r15\n"
        "CASE imul %rbx, %r12\n"
        "CASE imul $7, %r13, %rbx\n"
        "CASE imul $1234567, scratch(%rip), %rbp\n"
        "CASE imul %rbx\n"
        "CASE mul %r12\n"
        "CASE mulb %bl\n"
        "CASE xchg %rbx, %r12\n"
        "CASE xchg %rax, %rbx\n"
        "CASE xchg %rax, %r15\n"
        "CASE bswap %rbx\n"
        "CASE bswap %r13d\n"
        "CASE cmove %rbx, %r12\n"
        "CASE cmovne scratch(%rip), %rbp\n"
        "CASE sete %bl\n"
        "CASE setne %bh\n"
        "CASE setg %r13b\n"
        "CASE setae scratch(%rip)\n"
        "CASE bt $3, %rbx\n"
        "CASE bts $3, %rbx\n"
        "CASE btr %rcx, %r12\n"
        "CASE btc %rdx, %rbp\n"
        "CASE bsf %rbx, %r12\n"
        "CASE bsr %r12, %rbx\n"
        "CASE shld $3, %rbx, %r12\n"
        "CASE shrd %cl, %r12, %rbx\n"
        "CASE cltq\n"
        "CASE cqto\n"
        "CASE nop\n"
        "CASE nopl 8(%rax,%rax)\n"
        "CASE prefetcht0 scratch(%rip)\n"
        "CASE cvttsd2si scratch(%rip), %rbx\n"
        "CASE cvtsd2si %xmm3, %r12\n"
        "CASE cvtsi2sd %rbx, %xmm3\n"
        "CASE movd %xmm3, %ebx\n"
        "CASE movq %xmm3, %r12\n"
        "CASE movd %ebp, %xmm3\n"
        "CASE movq %rbx, %xmm3\n"
        "CASE movmskps %xmm5, %ebx\n"
        "CASE pmovmskb %xmm3, %r12d\n"
        "CASE pextrw $1, %xmm3, %ebx\n"
        "CASE pinsrw $1, %ebx, %xmm3\n"
        "CASE movsd scratch(%rip), %xmm3\n"
        "CASE movsd %xmm3, scratch(%rip)\n"
        "CASE movups %xmm3, scratch(%rip)\n"
        "CASE mulsd scratch(%rip), %xmm3\n"
        "CASE addsd %xmm3, %xmm5\n"
        "CASE pxor %xmm3, %xmm3\n"
        "CASE paddd %xmm3, %xmm5\n"
        "CASE pshufd $1, %xmm3, %xmm5\n"
        "CASE psrldq $1, %xmm3\n"
        "CASE ucomisd %xmm3, %xmm5\n"
        "CASE shufps $1, %xmm3, %xmm5\n"
        "CASE unpcklps %xmm3, %xmm5\n"
        "CASE cvttps2dq %xmm3, %xmm5\n"
        "CASE movnti %rbx, scratch(%rip)\n"
        "CASE fldl scratch(%rip)\n"
        "CASE fstpl scratch(%rip)\n"
        "       .section .data.rel.ro, \"aw\"\n"
        "instruction_cases_end:\n"
        "       .text\n");

static void test_changes_are_named(void **state)
{
    (void)state;
    for (const struct instruction_case *one = instruction_cases; one < instruction_cases_end; one++) {
        struct rf_instruction instruction = rf_instruction_at(one->begin);
        assert_ptr_equal(instruction.next, one->end);
        struct rf_effect effect = rf_effect_of(one->begin, &instruction);
        for (unsigned pattern = 1; pattern < 4; pattern++) {
            uint64_t before[16];
            for (unsigned i = 0; i < 16; i++)
                before[i] = registers[i] = 0x0123456789abcdef * pattern + i * 0x0101010101010111;
            one->run();
            unsigned changed = 0;
            for (unsigned i = 0; i < 16; i++)
                changed |= i != RF_RSP && registers[i] != before[i] ? RF_REGISTER(i) : 0;
            changed &= ~(RF_REGISTER(RF_RAX) | RF_REGISTER(RF_RCX) | RF_REGISTER(RF_RDX));
            if (changed & ~(unsigned)effect.writes && !effect.stops)
                fail_msg("%s changes %#x, not only %#x", one->text, changed, effect.writes);
        }
        if (effect.stops)
            fail_msg("%s stops", one->text);
    }
}

/* -- pieces of code --------------------------------------------------------------------------------------------------------------- */

struct piece {
    const uint8_t *begin, *read, *end;
    const char *name;
    uint64_t covered;
};
extern const struct piece pieces[], pieces_end[];
extern const uint8_t pieces_text[], pieces_text_end[];

enum { ENTRY, READ4, READ8, WRITE4, WRITE8, READ_RANGE, VOLATILE_READ8, ATOMIC };
extern const uint8_t hook_entry[], hook_read4[], hook_read8[], hook_write4[], hook_write8[], hook_range[], hook_volatile[], hook_atomic[];

/* READ: the call that is asked about. */
__asm__("       .macro PIECE covered name\n"
        "       .section .pieces, \"ax\"\n"
        "       .balign 16\n"
        "800:   call hook_entry\n"
        "       .skip 160, 0x90\n"
        "       .pushsection .data.rel.ro, \"aw\"\n"
        "       .quad 800b, 801f, 802f, 803f, \\covered\n"
        "       .popsection\n"
        "       .pushsection .rodata\n"
        "803:   .asciz \"\\name\"\n"
        "       .popsection\n"
        "       .endm\n"
        "       .macro READ hook=hook_read8\n"
        "801:   call \\hook\n"
        "       .endm\n"
        "       .macro END\n"
        "       .skip 160, 0x90\n"
        "802:   ret\n"
        "       .endm\n"
        "       .section .data.rel.ro, \"aw\"\n"
        "       .balign 8\n"
        "       .globl pieces, pieces_end, pieces_text, pieces_text_end\n"
        "pieces:\n"
        "       .section .pieces, \"ax\"\n"
        "pieces_text:\n"
        "       .irp name, entry, read4, read8, write4, write8, range, volatile, atomic\n"
        "       .globl hook_\\name\n"
        "hook_\\name: ret\n"
        "       .endr\n"
        "other: ret\n"

        "PIECE 1 \"a sum\"\n mov %rbx, %rdi\n READ\n mov (%rbx), %rax\n add $1, %rax\n mov %rax, %r12\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a field\"\n lea 16(%rbx), %rdi\n READ\n incl 20(%rbx)\n lea 16(%rbx), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"an element\"\n lea -8(%rbp,%r12,4), %rdi\n READ\n mov %eax, %ecx\n lea -8(%rbp,%r12,4), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a table's element\"\n lea 0x1000(,%r13,8), %rdi\n READ\n lea 0x1000(,%r13,8), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a global\"\n lea scratch(%rip), %rdi\n READ\n mov scratch(%rip), %rax\n lea scratch(%rip), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a global where it was linked\"\n mov $0x404040, %edi\n READ\n nop\n mov $0x404040, %edi\n call hook_write8\n END\n"
        "PIECE 1 \"a local\"\n lea 8(%rsp), %rdi\n READ\n lea 8(%rsp), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a running pointer\"\n mov %r12, %rdi\n add $8, %r12\n READ\n movsd -8(%r12), %xmm0\n lea -8(%r12), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a pointer that has run on\"\n mov %r14, %rdi\n READ\n sub $-128, %r14\n lea -128(%r14), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a pointer that runs on before the call\"\n mov %r14, %rdi\n READ\n mov %r14, %rdi\n xor %r14, %r14\n call hook_write8\n END\n"
        "PIECE 1 \"far on\"\n mov %r14, %rdi\n READ\n sub $0x1000, %r14\n lea 0x1000(%r14), %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"other reads between\"\n mov %rbx, %rdi\n READ\n mov %r12, %rdi\n call hook_read8\n mov $24, %esi\n call hook_range\n mov %rbx, %rdi\n"
        " call hook_write8\n END\n"
        "PIECE 1 \"another write first\"\n mov %rbx, %rdi\n READ\n mov %r12, %rdi\n call hook_write8\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a larger write\"\n mov %rbx, %rdi\n READ hook_read4\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a jump into the midst\"\n jmp 1f\n mov %rbx, %rdi\n READ\n1: mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 1 \"a jump to the argument\"\n jmp 1f\n nop\n1: mov %rbx, %rdi\n READ\n mov %rbx, %rdi\n call hook_write8\n je 1b\n END\n"

        "PIECE 0 \"no write\"\n mov %rbx, %rdi\n READ\n mov %rbx, %rdi\n call hook_read8\n END\n"
        "PIECE 0 \"a smaller write\"\n mov %rbx, %rdi\n READ\n mov %rbx, %rdi\n call hook_write4\n END\n"
        "PIECE 0 \"another address\"\n mov %rbx, %rdi\n READ\n mov %rbp, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"another offset\"\n lea 8(%rbx), %rdi\n READ\n lea 16(%rbx), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"another scale\"\n lea (%rbx,%rbp,4), %rdi\n READ\n lea (%rbx,%rbp,8), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"another index\"\n lea (%rbx,%rbp,4), %rdi\n READ\n lea (%rbx,%r12,4), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a pointer that has run on too far\"\n mov %r14, %rdi\n READ\n add $8, %r14\n mov %r14, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an index that has run on\"\n lea (%rbx,%r14,8), %rdi\n READ\n add $1, %r14\n lea -8(%rbx,%r14,8), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"base and index in one\"\n lea (%r14,%r14), %rdi\n READ\n add $1, %r14\n lea -1(%r14,%r14), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"half of the register run on\"\n mov %r14, %rdi\n READ\n add $8, %r14d\n lea -8(%r14), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed register\"\n mov %rbx, %rdi\n READ\n mov 8(%rbx), %rbx\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed byte\"\n mov %rbx, %rdi\n READ\n mov $1, %bl\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed second byte\"\n mov %rbx, %rdi\n READ\n mov $1, %bh\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed register, by a move under condition\"\n mov %rbx, %rdi\n READ\n cmove %rcx, %rbx\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed register, by BMI\"\n mov %rbx, %rdi\n READ\n andn %rax, %rcx, %rbx\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed register, the second of BMI\"\n mov %rbx, %rdi\n READ\n blsr %rax, %rbx\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a popped register\"\n mov %rbx, %rdi\n READ\n pop %rbx\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a moved stack\"\n lea 8(%rsp), %rdi\n READ\n push %rax\n lea 8(%rsp), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an argument that goes on\"\n mov %rbx, %rdi\n READ\n mov %rbx, %rdi\n add $8, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an argument that was used up\"\n mov %rbx, %rdi\n READ\n mov %rbx, %rdi\n call hook_read8\n call hook_write8\n END\n"
        "PIECE 0 \"half an argument\"\n mov %ebx, %edi\n READ\n mov %ebx, %edi\n call hook_write8\n END\n"
        "PIECE 0 \"an argument from memory\"\n mov 8(%rsp), %rdi\n READ\n mov 8(%rsp), %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a register that a call loses\"\n mov %rsi, %rdi\n READ\n mov %rsi, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an argument before a call\"\n mov %rbx, %rdi\n call other\n READ\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a changed register before the call\"\n mov %rbx, %rdi\n mov %rcx, %rbx\n READ\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a branch\"\n mov %rbx, %rdi\n READ\n cmpl $0, (%rbx)\n je 1f\n mov %rbx, %rdi\n call hook_write8\n1: END\n"
        "PIECE 0 \"a jump\"\n mov %rbx, %rdi\n READ\n jmp 1f\n1: mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a return\"\n mov %rbx, %rdi\n READ\n ret\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a call\"\n mov %rbx, %rdi\n READ\n call other\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a call through a pointer\"\n mov %rbx, %rdi\n READ\n call *%r12\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an atomic hook\"\n mov %rbx, %rdi\n READ\n mov %r12, %rdi\n call hook_atomic\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an atomic instruction\"\n mov %rbx, %rdi\n READ\n lock incl (%r12)\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"an exchange\"\n mov %rbx, %rdi\n READ\n xchg %eax, (%r12)\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a fence\"\n mov %rbx, %rdi\n READ\n mfence\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a system call\"\n mov %rbx, %rdi\n READ\n syscall\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a volatile read\"\n mov %rbx, %rdi\n READ hook_volatile\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a write itself\"\n mov %rbx, %rdi\n READ hook_write8\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a near jump to the call, from before\"\n mov %rcx, %rdi\n jmp 1f\n mov %rbx, %rdi\n1: READ\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "PIECE 0 \"a near jump to the call, from behind\"\n mov %rbx, %rdi\n1: READ\n mov %rbx, %rdi\n call hook_write8\n mov %rcx, %rdi\n jne 1b\n END\n"
        "PIECE 0 \"a near jump between\"\n mov %rbx, %rdi\n1: mov %rax, %rcx\n READ\n mov %rbx, %rdi\n call hook_write8\n jrcxz 1b\n END\n"
        "PIECE 0 \"a far jump to the call\"\n mov %rbx, %rdi\n1: READ\n mov %rbx, %rdi\n call hook_write8\n .skip 200, 0x90\n jmp 1b\n END\n"
        "PIECE 0 \"a far jump under condition\"\n mov %rbx, %rdi\n1: READ\n mov %rbx, %rdi\n call hook_write8\n .skip 200, 0x90\n jae 1b\n END\n"
        "PIECE 0 \"too far away\"\n mov %rbx, %rdi\n READ\n .skip 100, 0x90\n mov %rbx, %rdi\n call hook_write8\n END\n"
        "pieces_text_end:\n"
        "       .section .data.rel.ro, \"aw\"\n"
        "pieces_end:\n"
        "       .text\n");

static struct rf_hook hook_of(uint32_t number)
{
    static const char *const names[] = { [ENTRY] = "__tsan_func_entry",
                                         [READ4] = "__tsan_read4",
                                         [READ8] = "__tsan_read8",
                                         [WRITE4] = "__tsan_write4",
                                         [WRITE8] = "__tsan_write8",
                                         [READ_RANGE] = "__tsan_read_range",
                                         [VOLATILE_READ8] = "__tsan_volatile_read8",
                                         [ATOMIC] = "__tsan_atomic8_load" };
    return rf_hook_named(names[number]);
}

static struct rf_scan scan;

static struct rf_hook_call call_at(const uint8_t *at)
{
    struct rf_hook_call call = { .at = NULL };
    assert_true(rf_scan_call_at(&scan, at, &call));
    return call;
}

static void test_pieces(void **state)
{
    (void)state;
    rf_scan_clear(&scan.stubs);
    const uint8_t *hooks[] = { hook_entry, hook_read4, hook_read8, hook_write4, hook_write8, hook_range, hook_volatile, hook_atomic };
    for (uint32_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
        rf_scan_add(&scan.stubs, (uintptr_t)hooks[i], i, false);
    struct rf_jumps jumps = { pieces_text, pieces_text_end, NULL };
    jumps.bits = calloc(1, rf_jumps_bytes(&jumps));
    rf_jumps_find(&jumps);
    for (const struct piece *piece = pieces; piece < pieces_end; piece++) {
        struct rf_cover cover = { .scan = &scan, .hook = hook_of, .jumps = jumps };
        struct rf_hook_call entry = call_at(piece->begin), read = call_at(piece->read);
        rf_cover_pass(&cover, &entry);
        if (rf_covered(&cover, &read) != piece->covered)
            fail_msg("%s: %s", piece->name, piece->covered ? "the call stays" : "the call is left out");
    }
    assert_true(pieces_end - pieces > 50);
    free(jumps.bits);
}

/* Without a place from which all near jumps are seen, nothing is left out. */
static void test_too_near_to_the_beginning(void **state)
{
    (void)state;
    struct rf_jumps jumps = { pieces_text, pieces_text_end, NULL };
    jumps.bits = calloc(1, rf_jumps_bytes(&jumps));
    struct rf_cover cover = { .scan = &scan, .hook = hook_of, .jumps = jumps };
    struct rf_hook_call read = call_at(pieces->read), before = { .at = pieces->read - 20, .length = 5 };
    assert_false(rf_covered(&cover, &read));
    rf_cover_pass(&cover, &before);
    assert_false(rf_covered(&cover, &read));
    free(jumps.bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_changes_are_named),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_too_near_to_the_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
