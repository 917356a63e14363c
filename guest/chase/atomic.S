/* Ways through the library that keep all arguments.
 *
 * An atomic hook at a site: the hook is the access, so it is called afterwards, with all of its arguments.
 *
 * Comes from the code that guest/chase/sites.c made: the site's number in %r10d, the hook in %r11, the stack as at the hook's entry. It is
 * told in full how the stack is used, so that the program's stack is found from below.
 */
        .text
        .globl  rf_chase_atomic
        .hidden rf_chase_atomic
        .type   rf_chase_atomic, @function
rf_chase_atomic:
        .cfi_startproc
.irp register, rdi, rsi, rdx, rcx, r8, r9, r11
        push    %\register
        .cfi_adjust_cfa_offset 8
.endr
        mov     %r10d, %edx
        call    rf_chase_at
.irp register, r11, r9, r8, rcx, rdx, rsi, rdi
        pop     %\register
        .cfi_adjust_cfa_offset -8
.endr
        jmp     *%r11
        .cfi_endproc
        .size   rf_chase_atomic, . - rf_chase_atomic

/* The first call of a function that goes on to libc's (guest/chase/names): its name in %r10, where its address is kept in %r11. */
        .globl  rf_chase_find
        .hidden rf_chase_find
        .type   rf_chase_find, @function
rf_chase_find:
        .cfi_startproc
.irp register, rdi, rsi, rdx, rcx, r8, r9, r11
        push    %\register
        .cfi_adjust_cfa_offset 8
.endr
        mov     %r10, %rdi
        call    rf_find_real
.irp register, r11, r9, r8, rcx, rdx, rsi, rdi
        pop     %\register
        .cfi_adjust_cfa_offset -8
.endr
        mov     %rax, (%r11)
        jmp     *%rax
        .cfi_endproc
        .size   rf_chase_find, . - rf_chase_find

        .section .note.GNU-stack, "", @progbits
