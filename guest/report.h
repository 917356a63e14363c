/* From what the guest knows to a report. Everything here is cold.
 *
 * 1. A report is one record of plain numbers, written whole to the reporter: another process, `redflag reporter`, which finds
 *    symbols, matches suppressions, prints, and answers whether it was shown. If there is none, the guest prints the record itself
 *    with module and offset for each frame.
 * 2. One report for each pair of stacks: repetitions are counted, not sent.
 * 3. Reports are made one at a time, by the thread that found the race, at the access, before it happens.
 */
#ifndef RF_GUEST_REPORT_H
#define RF_GUEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rf_report_side {
    uintptr_t addr;
    size_t size;
    uint32_t note;   /* its stack, flags (guest/access.h) and locks */
    uint32_t thread; /* its number */
    bool previous;
    bool predicted; /* of the later side: the two did not race in this execution as far as the detector knows; in another they may */
    bool past;      /* of the later side: told long after. What is at the address now is not what was there */
};

/* Whether a race would be reported at all: some are not by options or annotations. */
bool rf_report_wanted(const struct rf_report_side *now, const struct rf_report_side *before);
/* before->note 0: the detector does not know the other side. */
void rf_report_race(const struct rf_report_side *now, const struct rf_report_side *before);

enum rf_mutex_bug {
    RF_MUTEX_DESTROY_LOCKED,
    RF_MUTEX_DOUBLE_LOCK,
    RF_MUTEX_BAD_UNLOCK,
    RF_MUTEX_BAD_READ_LOCK,
    RF_MUTEX_BAD_READ_UNLOCK,
    RF_MUTEX_INVALID
};
void rf_report_mutex(enum rf_mutex_bug bug, uintptr_t mutex, uint32_t created, uint32_t note, uint32_t taken);
void rf_report_thread_leak(uint32_t thread, uint32_t count);
/* locks[i] was held at held[i] when locks[i+1] was wanted at wanted[i] by threads[i]; the last closes the circle. */
void rf_report_lock_order(unsigned count, const uintptr_t *locks, const uint32_t *created, const uint32_t *held,
                          const uint32_t *wanted, const uint32_t *threads);
void rf_report_signal_unsafe(const char *function, int signal, uint32_t note);
void rf_report_errno_spoiled(int signal, uint32_t note);

/* The end of the program because of a report, by abort() or with the exit status. */
_Noreturn void rf_report_halt(bool aborts);

/* At the end of the process: what was counted is printed, the reporter let go. Returns the status to exit with. */
int rf_report_finish(int status);
void rf_report_fork_child(void); /* the child has its own reporter, started when it is needed */

#endif
