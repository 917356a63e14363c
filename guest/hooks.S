/* The hot hooks: leaf functions that return at once if the access repeats one of the present epoch (guest/hot.h, 3).
 *
 * 1. Every hook exists twice. The first form is what the program calls through its PLT: it finds the plane through variables, which
 *    point to a word of zeros until the guest has started, and the thread through the GOT. The second one is a template: guest/near.c
 *    copies it to within reach of the program's calls and puts constants where it says RF_PUT_*.
 * 2. Hooks use only registers that a call may change, and no stack.
 * 3. The long way is a jump with (address, return address, size, flags): guest/slow_access.c. Most hooks go on in functions that know the
 *    last two.
 * tests/cli/hooks.sh counts the instructions to each return.
 */
#include "guest/hot.h"

#define RF_PUT_TLS 0x7a5a0000 /* + offset in struct rf_hot */
#define RF_PUT_SLOW 0x7a5a7a5a7a5a0001
#define RF_PUT_GATE 0x7a5a7a5a7a5a0002
#define RF_PUT_READ_RANGE 0x7a5a7a5a7a5a0003
#define RF_PUT_WRITE_RANGE 0x7a5a7a5a7a5a0004
#define RF_PUT_COLD 0x7a5a7a5a7a5a0005
#define RF_PUT_YIELD 0x7a5a7a5a7a5a0006
#define RF_PUT_WAYS 0x100 /* RF_PUT_SLOW, this, twice the size, and 1 for writes: functions that know both */
#define RF_PUT_HOOK 0x7a5a0100

        .text

/* The word's place -> %rax, and %rcx if it is near; the word -> %rdx. The program is going to ask for its own line, but not before the long way is
 * through, if it comes to that: a locked instruction lets nothing pass. So both are asked for together. */
.macro LOAD_WORD near
.if \near
        movabs  $RF_ADDRESS_MASK, %rax
        and     %rdi, %rax
        movabs  $RF_WORDS, %rcx
        mov     (%rax,%rcx), %rdx
        prefetcht0 (%rdi)
.else
        mov     rf_plane_now(%rip), %rax
        and     %rdi, %rax
        add     rf_plane_now + 8(%rip), %rax
        mov     rf_hot@gottpoff(%rip), %rcx
        mov     (%rax), %rdx
.endif
.endm

/* ... -> %r8, for what follows */
.macro KEEP_PLACE near
.if \near
        lea     (%rax,%rcx), %r8
.else
        mov     %rax, %r8
.endif
.endm

/* Behind the checks: a hook's return, or that of a cold one, which gives back the registers that the checks use. */
.macro RETURN
.if .Lcold
        pop     %r9
        pop     %r8
        pop     %rsi
        pop     %rdx
        pop     %rcx
        pop     %rax
.endif
        ret
.endm

/* The same for some bytes of a granule: jumps to 2 unless the word, of one of the two plain forms or mixed, says that these were accessed
 * in this epoch. It is loaded again: to keep it would be one more instruction for all others. */
.macro CHECK_PART near size write
        mov     (%r8), %rdx
.if \write
        bt      $27, %rdx
        jnc     2f
.endif
        mov     %rdx, %rax
        shr     $28, %rax
        and     $0x7ffffff, %eax
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %rax
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rax
.else
        sub     %fs:RF_HOT_FIRST(%rcx), %rax
        cmp     %fs:RF_HOT_SPAN(%rcx), %rax
.endif
        jae     2f
        mov     %rdx, %rax
        shr     $56, %rax
        bt      $55, %rdx
        jnc     5f
.if \write == 0
        bt      $27, %rdx /* else Y is a number of something else */
        jnc     2f
.endif
        lea     near_mixed(%rip), %rcx
        movzbl  \write(%rcx,%rax,2), %eax
5:      mov     %edi, %ecx
        and     $7, %ecx
        mov     $(1 << \size) - 1, %edx
        shl     %cl, %edx
        not     %eax
        test    %edx, %eax
        jne     2f
        RETURN
.endm

/* The same for a read where X is a pair: jumps to \to unless its read, which is of the bytes that are not in M, is of this epoch, and Y is, too,
 * if bytes in M are met. If all are in M they were read by two threads, in Y and in the pair's read. The word must still name the pair
 * afterwards: sweeps give names to others. What remains is what guest/units.h, 2, says of units: two sweeps between the two looks. */
.macro CHECK_PAIR near size to
        mov     %edx, %esi
        and     $0x7ffffff, %esi
        cmp     $RF_PAIRS_FIRST, %esi
        jb      \to
        mov     %rdx, %rax
        shr     $56, %rax
        cmp     $0xff, %eax
        je      9f
.if \size < 8
        mov     %edi, %ecx
        and     $7, %ecx
        mov     $(1 << \size) - 1, %r9d
        shl     %cl, %r9d
        cmp     $0xff, %r9d /* what leaves the granule, though its type says that it cannot */
        ja      \to
        test    %r9d, %eax
        je      9f
.endif
        mov     %rdx, %rax
        shr     $28, %rax
        and     $0x7ffffff, %eax
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %rax
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rax
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        sub     %fs:RF_HOT_FIRST(%rcx), %rax
        cmp     %fs:RF_HOT_SPAN(%rcx), %rax
.endif
        jae     \to
9:      movabs  $RF_NOTES + 4, %rax
        mov     (%rax,%rsi,8), %eax
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %rax
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rax
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        sub     %fs:RF_HOT_FIRST(%rcx), %rax
        cmp     %fs:RF_HOT_SPAN(%rcx), %rax
.endif
        jae     \to
        cmp     %rdx, (%r8)
        jne     \to
.endm

/* X of the word in %rdx -> %esi. Goes to \to if the granule is in lanes. */
.macro LANES_TO to
        mov     %edx, %esi
        and     $0x7ffffff, %esi
        cmp     $RF_LANES_FIRST, %esi
        jae     \to
.endm

/* The same for a granule that several threads read: jumps to 3 unless one of the first moments of its read map is of this epoch. Those
 * of a map that has got many stay true for the thread that they are of (guest/units.h, 3). The word must still name the map
 * afterwards (guest/units.h, 2). */
.macro CHECK_MAP near
        mov     %rdx, %rax
        shr     $55, %rax
        cmp     $0x1ff, %eax
        jne     3f
        bt      $27, %rdx
        jc      3f
        mov     %rdx, %rax
        shr     $28 - 5, %rax
        and     $-32, %eax /* 27 bits of the number, 32 bytes each */
        movabs  $RF_READERS + RF_READERS_FEW, %rsi
.if \near == 0
        mov     rf_hot@gottpoff(%rip), %rcx
.endif
.irp entry, 0, 4, 8, 12
        mov     \entry(%rax,%rsi), %r9d
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %r9
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %r9
.else
        sub     %fs:RF_HOT_FIRST(%rcx), %r9
        cmp     %fs:RF_HOT_SPAN(%rcx), %r9
.endif
        jb      9f
.endr
        jmp     3f
9:      cmp     %rdx, (%r8)
        jne     3f
.endm

/* The same for a granule in lanes, whose name is in %esi: jumps to 3 unless the cells of all bytes have one moment of this epoch. If Y is of this
 * epoch, too, what it does not say is most likely new: there is no look at the lanes. The word must still name them afterwards
 * (guest/units.h, 2). If so it returns, or goes on at \on. */
.macro CHECK_LANES near size write on
        mov     %rdx, %rax
        shr     $28, %rax
        and     $0x7ffffff, %eax
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %rax
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rax
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        sub     %fs:RF_HOT_FIRST(%rcx), %rax
        cmp     %fs:RF_HOT_SPAN(%rcx), %rax
.endif
        jb      3f
        shl     $RF_LANES_BITS, %rsi
.if \size < 8
        mov     %edi, %ecx
        and     $7, %ecx
.if \size > 1
        cmp     $8 - \size, %ecx /* what leaves the granule, though its type says that it cannot */
        ja      3f
.endif
        lea     (%rsi,%rcx,8), %rsi
.endif
        movabs  $RF_LANES - (RF_LANES_FIRST << RF_LANES_BITS) + 4 * \write, %rax
.if \near == 0
        mov     rf_hot@gottpoff(%rip), %rcx
.endif
        mov     (%rax,%rsi), %r9d
.irp byte, 1, 2, 3, 4, 5, 6, 7
.if \byte < \size
        cmp     8 * \byte(%rax,%rsi), %r9d
        jne     3f
.endif
.endr
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %r9
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %r9
.else
        sub     %fs:RF_HOT_FIRST(%rcx), %r9
        cmp     %fs:RF_HOT_SPAN(%rcx), %r9
.endif
        jae     3f
        cmp     %rdx, (%r8)
        jne     3f
.ifb \on
        RETURN
.else
        jmp     \on
.endif
.endm

/* Jumps to 4 unless the thread has seen these bytes in this epoch (guest/hot.h, 4). */
.macro CHECK_SEEN near size write
        mov     %rdi, %rdx
        shr     $3, %rdx
        lea     (%rdi,%rdi), %esi
        and     $(RF_SEEN - 1) << 4, %esi
        shl     $20, %rdx
.if \near
        or      %fs:RF_PUT_TLS + RF_HOT_STAMP, %rdx
        mov     %fs:RF_PUT_TLS + RF_HOT_SEEN, %rax
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        or      %fs:RF_HOT_STAMP(%rcx), %rdx
        mov     %fs:RF_HOT_SEEN(%rcx), %rax
        test    %rax, %rax /* a resolver runs before the loader has filled in what threads begin with */
        je      4f
.endif
        xor     8 * \write(%rax,%rsi), %rdx
        cmp     $0xff, %rdx
.if \size < 8
        ja      4f
        mov     %edi, %ecx
        and     $7, %ecx
        mov     $(1 << \size) - 1, %eax
        shl     %cl, %eax
        not     %edx
        test    %eax, %edx
.endif
        jne     4f
        RETURN
.endm

/* Jumps to 1 unless the word in %rdx says that all of the granule was accessed in this epoch. */
.macro CHECK_READ near
        shr     $28, %rdx
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_BASE, %rdx
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rdx
.else
        sub     %fs:RF_HOT_BASE(%rcx), %rdx
        cmp     %fs:RF_HOT_SPAN(%rcx), %rdx
.endif
        jae     1f
.endm

.macro CHECK_WRITE near
        shr     $27, %rdx
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_BASE2, %rdx
        ror     $1, %rdx
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rdx
.else
        sub     %fs:RF_HOT_BASE2(%rcx), %rdx
        ror     $1, %rdx
        cmp     %fs:RF_HOT_SPAN(%rcx), %rdx
.endif
        jae     1f
.endm

/* .Lway: which of the functions that know size and flags, 0 for rf_slow_access(). What `known` is not may leave its granule. */
.macro SLOW_WAY size flags known
        .set    .Lway, 0
.if \known && \flags < 2 && \size < 16
        .set    .Lway, RF_PUT_WAYS + 2 * \size + \flags
.endif
.endm

.macro GO_SLOW near size flags known=0
.if .Lcold == 0
        mov     (%rsp), %rsi
.endif
        SLOW_WAY \size \flags \known
.if .Lway == 0
        mov     $\size, %edx
        mov     $\flags, %ecx
.endif
.if \near
        movabs  $RF_PUT_SLOW + .Lway, %rax
.if .Lcold
        movabs  $RF_PUT_COLD, %r8
        jmp     *%r8
.else
        jmp     *%rax
.endif
.elseif .Lcold
.if .Lway && \flags
        lea     rf_slow_write\size(%rip), %rax
.elseif .Lway
        lea     rf_slow_read\size(%rip), %rax
.else
        lea     rf_slow_access(%rip), %rax
.endif
        jmp     rf_cold_access
.elseif .Lway && \flags
        jmp     rf_slow_write\size
.elseif .Lway
        jmp     rf_slow_read\size
.else
        jmp     rf_slow_access
.endif
.endm

.macro BEGIN near name
        .p2align 4
.if \near
near_\name:
.else
        .globl  \name
        .type   \name, @function
\name:
.Lfar_\name:
.endif
.endm

.macro END near name
.if \near == 0
        .size   \name, . - \name
.endif
.endm

/* What comes after the first look, which has found no repetition. */
.macro READ_ON near size flags
.if \size < 8
        CHECK_PART \near \size 0
.endif
2:      mov     (%r8), %rdx
        LANES_TO 6f
        bt      $55, %rdx
        jc      5f
.if \size == 8
        CHECK_PAIR \near \size 4f /* all that a plain form says of this epoch has been looked at */
.else
        CHECK_PAIR \near \size 3f
.endif
        RETURN
5:      CHECK_MAP \near
        RETURN
6:      CHECK_LANES \near \size 0
3:      CHECK_SEEN \near \size 0
4:      GO_SLOW \near \size \flags 1
.endm

.macro WRITE_ON near size flags
.if \size < 8
        CHECK_PART \near \size 1
.endif
2:      mov     (%r8), %rdx
        LANES_TO 6f
.if \size == 8 /* all that a plain form says of this epoch has been looked at */
        bt      $55, %rdx
        jnc     4f
.endif
        jmp     3f
6:      CHECK_LANES \near \size 1
3:      CHECK_SEEN \near \size 1
4:      GO_SLOW \near \size \flags 1
.endm

/* The granule of the byte at %rdi: goes on if all of it was accessed in this epoch, perhaps by others as well; jumps to 4 if not. */
.macro CHECK_SHARED near
        LOAD_WORD \near
        KEEP_PLACE \near
        mov     %rdx, %rax
        shr     $28, %rax
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_BASE, %rax
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rax
.else
        sub     %fs:RF_HOT_BASE(%rcx), %rax
        cmp     %fs:RF_HOT_SPAN(%rcx), %rax
.endif
        jb      8f
        LANES_TO 6f
        bt      $55, %rdx
        jc      5f
        CHECK_PAIR \near 8 4f
        jmp     8f
6:      CHECK_LANES \near 8 0 8f
5:      CHECK_MAP \near
8:
.endm

/* Both granules of a wide access: most of what is read in long runs is read by several threads. */
.macro READ_WIDE_ON near size flags
        CHECK_SHARED \near
        jmp     7f
3:
4:      GO_SLOW \near \size \flags
7:      add     $\size - 1, %rdi
        CHECK_SHARED \near
        sub     $\size - 1, %rdi
        RETURN
3:
4:      sub     $\size - 1, %rdi
        GO_SLOW \near \size \flags
.endm

.macro READ near name size flags
        BEGIN   \near \name
        LOAD_WORD \near
        CHECK_READ \near
        ret
1:      KEEP_PLACE \near
        READ_ON \near \size \flags
        END     \near \name
.endm

.macro WRITE near name size flags
        BEGIN   \near \name
        LOAD_WORD \near
        CHECK_WRITE \near
        ret
1:      KEEP_PLACE \near
        WRITE_ON \near \size \flags
        END     \near \name
.endm

/* An access that need not be aligned, but lies in one granule, is like one that is. */
.macro ALIGNED near size kind
.if \size <= 8
        mov     %edi, %eax
        and     $7, %eax
        cmp     $8 - \size, %eax
.if \near
        jbe     near___tsan_\kind\size
.else
        jbe     .Lfar___tsan_\kind\size
.endif
.endif
.endm

/* Jumps to 2 unless the word in %rdx, of one of the two plain forms, says that the bytes in %eax were accessed in this epoch. */
.macro CHECK_BYTES near write
.if \write
        bt      $27, %rdx
        jnc     2f
.endif
        mov     %rdx, %r9
        shr     $56, %r9
        not     %r9d
        test    %eax, %r9d
        jne     2f
        shl     $8, %rdx
        shr     $36, %rdx /* with the odd bit above it */
.if \near
        sub     %fs:RF_PUT_TLS + RF_HOT_FIRST, %rdx
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, %rdx
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        sub     %fs:RF_HOT_FIRST(%rcx), %rdx
        cmp     %fs:RF_HOT_SPAN(%rcx), %rdx
.endif
        jae     2f
.endm

/* Two granules, of neither of which all bytes are accessed: returns if those that are were in this epoch, goes on at 2 if not. */
.macro CHECK_ENDS near size write
.if \size <= 8
        LOAD_WORD \near
        KEEP_PLACE \near
        mov     %edi, %ecx
        mov     $(1 << \size) - 1, %esi
        and     $7, %ecx
        shl     %cl, %esi
        movzbl  %sil, %eax
        CHECK_BYTES \near \write
        mov     8(%r8), %rdx
        shr     $8, %esi
        mov     %esi, %eax
        CHECK_BYTES \near \write
        ret
2:
.endif
.endm

/* Two granules, or one that an unaligned access may leave at its end: the word of the first byte and that of the last. */
.macro READ_WIDE near name size flags
        BEGIN   \near \name
        ALIGNED \near \size read
        LOAD_WORD \near
        CHECK_READ \near
        mov     %rdi, %rsi
        add     $\size - 1, %rdi
        LOAD_WORD \near
        mov     %rsi, %rdi
        CHECK_READ \near
        ret
1:      CHECK_ENDS \near \size 0
        READ_WIDE_ON \near \size \flags
        END     \near \name
.endm

.macro WRITE_WIDE near name size flags
        BEGIN   \near \name
        ALIGNED \near \size write
        LOAD_WORD \near
        CHECK_WRITE \near
        mov     %rdi, %rsi
        add     $\size - 1, %rdi
        LOAD_WORD \near
        mov     %rsi, %rdi
        CHECK_WRITE \near
        ret
1:      CHECK_ENDS \near \size 1
        GO_SLOW \near \size \flags
        END     \near \name
.endm

/* A thread that the guest does not know yet has no stack of frames. */
.macro FUNC_ENTRY near
        BEGIN   \near __tsan_func_entry
.if \near
        mov     %fs:RF_PUT_TLS + RF_HOT_TOP, %rax
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        mov     %fs:RF_HOT_TOP(%rcx), %rax
.endif
        test    %rax, %rax
        je      1f
        mov     %rdi, (%rax)
        movl    $0, 8(%rax)
        mov     %esp, 12(%rax)
        add     $16, %rax
.if \near
        mov     %rax, %fs:RF_PUT_TLS + RF_HOT_TOP
.else
        mov     %rax, %fs:RF_HOT_TOP(%rcx)
.endif
1:      ret
        END     \near __tsan_func_entry
.endm

.macro FUNC_EXIT near
        BEGIN   \near __tsan_func_exit
.if \near
        mov     %fs:RF_PUT_TLS + RF_HOT_TOP, %rax
.else
        mov     rf_hot@gottpoff(%rip), %rcx
        mov     %fs:RF_HOT_TOP(%rcx), %rax
.endif
        test    %rax, %rax
        je      1f
        sub     $16, %rax
.if \near
        mov     %rax, %fs:RF_PUT_TLS + RF_HOT_TOP
.else
        mov     %rax, %fs:RF_HOT_TOP(%rcx)
.endif
1:      ret
        END     \near __tsan_func_exit
.endm

/* Flags as in guest/access.h: 1 write, 4 vtable pointer, 32 volatile. */
.macro ALL near
        READ    \near __tsan_read1 1 0
        READ    \near __tsan_read2 2 0
        READ    \near __tsan_read4 4 0
        READ    \near __tsan_read8 8 0
        READ_WIDE \near __tsan_read16 16 0
        WRITE   \near __tsan_write1 1 1
        WRITE   \near __tsan_write2 2 1
        WRITE   \near __tsan_write4 4 1
        WRITE   \near __tsan_write8 8 1
        WRITE_WIDE \near __tsan_write16 16 1
        READ_WIDE \near __tsan_unaligned_read2 2 0
        READ_WIDE \near __tsan_unaligned_read4 4 0
        READ_WIDE \near __tsan_unaligned_read8 8 0
        WRITE_WIDE \near __tsan_unaligned_write2 2 1
        WRITE_WIDE \near __tsan_unaligned_write4 4 1
        WRITE_WIDE \near __tsan_unaligned_write8 8 1
        READ    \near __tsan_volatile_read1 1 32
        READ    \near __tsan_volatile_read2 2 32
        READ    \near __tsan_volatile_read4 4 32
        READ    \near __tsan_volatile_read8 8 32
        WRITE   \near __tsan_volatile_write1 1 33
        WRITE   \near __tsan_volatile_write2 2 33
        WRITE   \near __tsan_volatile_write4 4 33
        WRITE   \near __tsan_volatile_write8 8 33
        WRITE   \near __tsan_read_write1 1 1
        WRITE   \near __tsan_read_write2 2 1
        WRITE   \near __tsan_read_write4 4 1
        WRITE   \near __tsan_read_write8 8 1
        READ    \near __tsan_vptr_read 8 4
        FUNC_ENTRY \near
        FUNC_EXIT \near
.endm

/* Where code with the first look inlined (guest/inline/hooks.c) goes on. */
.macro COLD_BEGIN near name
        BEGIN   \near \name
        push    %rax
        push    %rcx
        push    %rdx
        push    %rsi
        push    %r8
        push    %r9
.endm

.macro COLD_READ near name size flags
        COLD_BEGIN \near \name
        LOAD_WORD \near
        KEEP_PLACE \near
        READ_ON \near \size \flags
        END     \near \name
.endm

.macro COLD_WRITE near name size flags
        COLD_BEGIN \near \name
        LOAD_WORD \near
        KEEP_PLACE \near
        WRITE_ON \near \size \flags
        END     \near \name
.endm

.macro COLD_READ_WIDE near name size flags
        COLD_BEGIN \near \name
        READ_WIDE_ON \near \size \flags
        END     \near \name
.endm

.macro COLD_WRITE_WIDE near name size flags
        COLD_BEGIN \near \name
        GO_SLOW \near \size \flags
        END     \near \name
.endm

.macro ALL_COLD near
        .set    .Lcold, 1
        COLD_READ \near __tsan_cold_read1 1 0
        COLD_READ \near __tsan_cold_read2 2 0
        COLD_READ \near __tsan_cold_read4 4 0
        COLD_READ \near __tsan_cold_read8 8 0
        COLD_READ \near __tsan_cold_vptr_read 8 4
        COLD_WRITE \near __tsan_cold_write1 1 1
        COLD_WRITE \near __tsan_cold_write2 2 1
        COLD_WRITE \near __tsan_cold_write4 4 1
        COLD_WRITE \near __tsan_cold_write8 8 1
        COLD_READ_WIDE \near __tsan_cold_read16 16 0
        COLD_WRITE_WIDE \near __tsan_cold_write16 16 1
        COLD_READ_WIDE \near __tsan_cold_unaligned_read2 2 0
        COLD_READ_WIDE \near __tsan_cold_unaligned_read4 4 0
        COLD_READ_WIDE \near __tsan_cold_unaligned_read8 8 0
        COLD_WRITE_WIDE \near __tsan_cold_unaligned_write2 2 1
        COLD_WRITE_WIDE \near __tsan_cold_unaligned_write4 4 1
        COLD_WRITE_WIDE \near __tsan_cold_unaligned_write8 8 1
        .set    .Lcold, 0
.endm

/* Jumps to 1 unless the word says that all of the granule was accessed in this epoch; of one that was read and written, if `write`. */
.macro CHECK_WHOLE word write
.if \write
        shr     $27, \word
        sub     %fs:RF_PUT_TLS + RF_HOT_BASE2, \word
        ror     $1, \word
.else
        shr     $28, \word
        sub     %fs:RF_PUT_TLS + RF_HOT_BASE, \word
.endif
        cmp     %fs:RF_PUT_TLS + RF_HOT_SPAN, \word
        jae     1f
.endm

/* gcc takes ranges for every access that may be unaligned: most are a word or two long, in one granule or in two, and in three at most. All
 * others, and all that is not a repeated access to whole granules, is in guest/plain_hooks.c. */
.macro RANGE name put write
        BEGIN   1 \name
        lea     -1(%rsi), %rdx
        cmp     $15, %rdx
        ja      1f
        movabs  $RF_ADDRESS_MASK, %rax
        add     %rdi, %rdx
        and     %rax, %rdx
        and     %rdi, %rax
        movabs  $RF_WORDS, %rcx
        mov     (%rax,%rcx), %r8
        mov     (%rdx,%rcx), %r9
        CHECK_WHOLE %r8 \write
        CHECK_WHOLE %r9 \write
        sub     %rax, %rdx
        cmp     $8, %rdx
        ja      2f
        ret
2:      mov     8(%rax,%rcx), %r8
        CHECK_WHOLE %r8 \write
        ret
1:      movabs  $\put, %rax
        jmp     *%rax
.endm

/* The number of the line of memory that an address lies in. */
.macro LINE from to
        mov     \from, \to
        shl     $64 - RF_ADDRESS_BITS, \to
        shr     $64 - RF_ADDRESS_BITS + RF_LINE_BITS, \to
.endm

/* What pacer puts before a hook's copy (guest/pacer.h): outside of periods it returns if nothing is known of the memory. It is put
 * together by guest/near.c, which knows where the copy is: RF_PUT_HOOK is how far from the end of the jump. The byte of the line is looked
 * at first, since nearly all are 0 and few lines of the cache hold them; and with it, in one go, whether now is a period. */
.macro GATE size
.if \size == 1 /* %rsi bytes, if they lie in one line, or two. Their words are left to the hook */
        cmp     $1 << RF_LINE_BITS, %rsi
        ja      3f
        lea     -1(%rdi,%rsi), %rdx
        LINE    %rdx %rdx
.elseif \size
        lea     \size - 1(%rdi), %rdx
        LINE    %rdx %rdx
.endif
        LINE    %rdi %rax
        movabs  $RF_LINES, %r8
        movzbl  (%rax,%r8), %eax
.if \size
        or      (%rdx,%r8), %al
.endif
        movabs  $RF_PUT_GATE, %rcx
        or      (%rcx), %al
        jne     2f
        ret
2:
.if \size != 1
        cmpb    $0, (%rcx)
        jne     3f
        movabs  $RF_ADDRESS_MASK, %rax
        movabs  $RF_WORDS, %rcx
.if \size
        lea     \size - 1(%rdi), %rdx
        and     %rax, %rdx
        and     %rdi, %rax
        mov     (%rdx,%rcx), %rdx
        or      (%rax,%rcx), %rdx
.else
        and     %rdi, %rax
        cmpq    $0, (%rax,%rcx)
.endif
        jne     3f
        ret
.endif
3:      .byte   0xe9 /* jmp */
        .long   RF_PUT_HOOK
.endm

/* What FIB puts there: every hook is a yield point, also one that returns by itself. It looks whether anybody waits for an owner; whom, is
 * rf_fib_yields()' to find out. */
.macro YIELD_GATE
        movabs  $RF_PUT_GATE, %rax
        cmpl    $0, (%rax)
        jne     2f
1:      .byte   0xe9 /* jmp */
        .long   RF_PUT_HOOK
2:      push    %rdi
        push    %rsi
        sub     $8, %rsp
        movabs  $RF_PUT_YIELD, %rax
        call    *%rax
        add     $8, %rsp
        pop     %rsi
        pop     %rdi
        jmp     1b
.endm

        .set    .Lcold, 0
        ALL     0
        ALL_COLD 0

/* The long way of a cold hook, by the function in %rax. The hook has pushed what the checks use: the caller's other registers are kept, too,
 * those of vectors among them. Their upper halves, where there are such, nothing in this library touches (guest/vectors.h). Here, and not in copies,
 * so that stacks can be walked through it. */
        .globl  rf_cold_access
        .hidden rf_cold_access
        .type   rf_cold_access, @function
rf_cold_access:
        .cfi_startproc
        .cfi_def_cfa_offset 56
        push    %rdi
        .cfi_adjust_cfa_offset 8
        push    %r10
        .cfi_adjust_cfa_offset 8
        mov     64(%rsp), %rsi
        sub     $264, %rsp
        .cfi_adjust_cfa_offset 264
.irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movaps  %xmm\n, 16 * \n(%rsp)
.endr
        call    *%rax
.irp    n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        movaps  16 * \n(%rsp), %xmm\n
.endr
        add     $264, %rsp
        .cfi_adjust_cfa_offset -264
        pop     %r10
        .cfi_adjust_cfa_offset -8
        pop     %rdi
        .cfi_adjust_cfa_offset -8
        pop     %r9
        .cfi_adjust_cfa_offset -8
        pop     %r8
        .cfi_adjust_cfa_offset -8
        pop     %rsi
        .cfi_adjust_cfa_offset -8
        pop     %rdx
        .cfi_adjust_cfa_offset -8
        pop     %rcx
        .cfi_adjust_cfa_offset -8
        pop     %rax
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_endproc
        .size   rf_cold_access, . - rf_cold_access

/* Not run where they stand. */
        .section .rodata
        .globl  rf_near_begin, rf_near_end
        .hidden rf_near_begin, rf_near_end
        .p2align 4
rf_near_begin:
        ALL     1
        RANGE   __tsan_read_range RF_PUT_READ_RANGE 0
        RANGE   __tsan_write_range RF_PUT_WRITE_RANGE 1
        ALL_COLD 1

/* For each M of a mixed word: the bytes that were read or written in Y, those that were written in it (rf_mixed_masks in guest/granule.c).
 * Other values of M name none. */
near_mixed:
        .set    .Lcode, 0
        .rept   RF_LOOSE_FIRST
        .set    .Lread, 0
        .set    .Lwritten, 0
        .set    .Lrest, .Lcode
        .set    .Lpair, 3
        .rept   4
        .if     .Lrest % 3
        .set    .Lread, .Lread | .Lpair
        .if     .Lrest % 3 == 2
        .set    .Lwritten, .Lwritten | .Lpair
        .endif
        .endif
        .set    .Lrest, .Lrest / 3
        .set    .Lpair, .Lpair << 2
        .endr
        .byte   .Lread, .Lwritten
        .set    .Lcode, .Lcode + 1
        .endr
#define LOOSE(mask) .byte 0xff, mask;
        RF_LOOSE_MASKS(LOOSE)
        .zero   2 * 256 - (. - near_mixed)
rf_near_end:
        .byte   0xcc /* a disassembler has one name for one address */

        .globl  rf_near_gates, rf_near_gates_end
        .hidden rf_near_gates, rf_near_gates_end
        .p2align RF_GATE_ROOM_BITS, 0xcc
rf_near_gates: /* pacer's for accesses inside one line; of 2, 4, 8 and 16 bytes that may lie in two; ranges; FIB's for all. guest/near.c */
.irp    size, 0, 2, 4, 8, 16, 1
        .p2align RF_GATE_ROOM_BITS, 0xcc
        GATE    \size
.endr
        .p2align RF_GATE_ROOM_BITS, 0xcc
        YIELD_GATE
        .p2align RF_GATE_ROOM_BITS, 0xcc
rf_near_gates_end:

/* Which hook lies where: offset from rf_near_begin, name. */
.macro NAME name
        .long   near_\name - rf_near_begin
        .asciz  "\name"
.endm
        .globl  rf_near_names
        .hidden rf_near_names
rf_near_names:
        .irp    size, 1, 2, 4, 8
        NAME    __tsan_read\size
        NAME    __tsan_write\size
        NAME    __tsan_volatile_read\size
        NAME    __tsan_volatile_write\size
        NAME    __tsan_read_write\size
        .endr
        .irp    size, 2, 4, 8
        NAME    __tsan_unaligned_read\size
        NAME    __tsan_unaligned_write\size
        .endr
        NAME    __tsan_read16
        NAME    __tsan_write16
        NAME    __tsan_vptr_read
        NAME    __tsan_func_entry
        NAME    __tsan_func_exit
        NAME    __tsan_read_range
        NAME    __tsan_write_range
        .irp    size, 1, 2, 4, 8, 16
        NAME    __tsan_cold_read\size
        NAME    __tsan_cold_write\size
        .endr
        .irp    size, 2, 4, 8
        NAME    __tsan_cold_unaligned_read\size
        NAME    __tsan_cold_unaligned_write\size
        .endr
        NAME    __tsan_cold_vptr_read
        .long   -1

        .section .note.GNU-stack, "", @progbits
