/* Calls of access hooks that are not in the code as long as nobody needs them: pacer's, until its first period begins.
 *
 * Before the first period nothing is known of any memory, so accesses are compared with nothing, and nothing is recorded. Then even a
 * call that returns at once is most of what hooks cost. Later there are histories, some of them for as long as the program runs, and
 * every access must be compared with what is known.
 *
 * 1. A call that is taken out is one instruction that does nothing, as long as the call; a jump is a return. Where instructions begin is
 *    the same in both forms of the code: a thread that stands anywhere in the one goes on in the other.
 * 2. No byte of code is changed while somebody may run it. The other form is made beside it, by one thread, in pages that are then
 *    executable and not writable any more, and takes its place in one system call, mremap(). While that works, there is nothing at
 *    these addresses: who comes there waits in the kernel for the call to end, and finds the new pages. The kernel interrupts every
 *    core that knows the old ones; after an interrupt instructions are fetched anew. So an instruction is wholly the old one or wholly
 *    the new one, also where it lies in two pages, and when the call has returned nobody runs the old code any more. An access before
 *    that was not called; it counts as one before the period.
 * 3. Entries and exits of functions stay calls, so that stacks are known when the period begins.
 * 4. Only code that is there when the program starts is made quiet: the loader never unloads it. What is loaded later has calls that
 *    look whether there was a period (guest/hooks.S).
 * 5. The other form is made of the bytes that are there when it is made, so breakpoints of a debugger stay, and of the same file, so that
 *    the process' list of mappings is what it was; if that file is not to be had any more, it is memory without a name.
 * 6. Lists are written while there is one thread, and given back by who holds the lock of guest/pacer.c.
 * 7. A program that gives up system calls for itself (prctl()) gets its calls back before: it may be ended for one that it makes.
 */
#ifndef RF_GUEST_QUIET_H
#define RF_GUEST_QUIET_H

#include "sites/scan.h"

/* While the code of a module is gathered: a part of it, from begin to end. */
void rf_quiet_code(uintptr_t begin, uintptr_t end);
/* Is the call, of what is at `target`, to be taken out? It was kept, in ascending order. */
bool rf_quiet_takes(const struct rf_hook_call *call, uintptr_t target);
/* All calls are there from now on. Any number of threads may run. */
void rf_quiet_end(void);

#endif
