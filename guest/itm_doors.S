/* The doors of libitm (guest/itm.def) and _ITM_beginTransaction, which returns more than once.
 *
 * 1. Nothing of these stays on the stack when libitm's own function is entered, by a jump: it returns to the program, and what
 *    _ITM_beginTransaction saves, to come back to after a roll-back, is the program's place.
 * 2. Arguments and results may be in any of the registers for them, vectors included: they are saved around guest/itm.c, which uses no
 *    more than their lower halves (no code of the guest is compiled for AVX).
 */
        .text
        .macro DOOR name, number
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
        movl $\number, %eax
        jmp rf_itm_door
        .cfi_endproc
        .size \name, . - \name
        .endm

        .type rf_itm_door, @function
rf_itm_door:
        .cfi_startproc
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        pushq %rsi
        .cfi_adjust_cfa_offset 8
        pushq %rdx
        .cfi_adjust_cfa_offset 8
        pushq %rcx
        .cfi_adjust_cfa_offset 8
        subq $40, %rsp
        .cfi_adjust_cfa_offset 40
        movups %xmm0, (%rsp)
        movups %xmm1, 16(%rsp)
        movq 72(%rsp), %r8      /* who called */
        movq %rdx, %rcx
        movq %rsi, %rdx
        movq %rdi, %rsi
        movl %eax, %edi
        call rf_itm_heard
        movups 16(%rsp), %xmm1
        movups (%rsp), %xmm0
        addq $40, %rsp
        .cfi_adjust_cfa_offset -40
        popq %rcx
        .cfi_adjust_cfa_offset -8
        popq %rdx
        .cfi_adjust_cfa_offset -8
        popq %rsi
        .cfi_adjust_cfa_offset -8
        popq %rdi
        .cfi_adjust_cfa_offset -8
        jmp *%rax
        .cfi_endproc
        .size rf_itm_door, . - rf_itm_door

        .globl _ITM_beginTransaction
        .type _ITM_beginTransaction, @function
_ITM_beginTransaction:
        .cfi_startproc
        pushq %rdi
        .cfi_adjust_cfa_offset 8
        call rf_itm_begins
        popq %rdi
        .cfi_adjust_cfa_offset -8
        jmp *%rax
        .cfi_endproc
        .size _ITM_beginTransaction, . - _ITM_beginTransaction

/* In the order of guest/itm.c. */
#define ITM(name, what, size) DOOR name, __COUNTER__;
#include "guest/itm.def"

        .section .note.GNU-stack, "", @progbits
