/* The beginning and the end of the library that chases.
 *
 * 1. It begins in its first constructor: libc and the loader are there, and no instrumented code has run but resolvers and what the
 *    program's .preinit_array calls. There is one thread.
 * 2. The environment says what is to be done, in REDFLAG_CHASE; without it nothing is: all calls of hooks are taken out.
 *        rate_ppm=50000;delay_us=10000;least_ms=1000;seed=1;keep_going=0;first=...;second=...     (guest/pair.h)
 *    REDFLAG_CHASE_ACCOUNT is where `redflag watch` wants to know what was waited (core/account.h).
 * 3. The end: the first of exit(), _exit(), quick_exit() or the destructors sums up and decides the status.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/account.h"
#include "guest/chase/chase.h"
#include "guest/intercept.h"
#include "guest/options.h"
#include "guest/planes.h"
#include "guest/report_parts.h"
#include "guest/system.h"
#include "guest/text.h"

int rf_started;

void *rf_find_real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        rf_die("%s() was called, which no library after this one has", name);
    return found;
}

/* There are no histories here: any address will do for code. */
bool rf_planes_overlap(uintptr_t addr, size_t size)
{
    (void)addr, (void)size;
    return false;
}

/* -- what is asked for ----------------------------------------------------------------------------------------------------------- */

static uint64_t number(const char *text)
{
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value * 10 + (uint64_t)(*text - '0');
    return value;
}

static void take(void *context, const char *name, const char *value)
{
    struct rf_chase_wish *wish = context;
    if (rf_text_same(name, "first"))
        wish->first = value;
    else if (rf_text_same(name, "second"))
        wish->second = value;
    else if (rf_text_same(name, "rate_ppm"))
        wish->rate = (double)number(value) * 1e-6;
    else if (rf_text_same(name, "delay_us"))
        wish->delay_ns = number(value) * 1000;
    else if (rf_text_same(name, "least_ms"))
        wish->least_ns = number(value) * 1000000;
    else if (rf_text_same(name, "seed"))
        wish->seed = number(value);
    else if (rf_text_same(name, "keep_going"))
        wish->keep_going = number(value) != 0;
    else
        rf_die("REDFLAG_CHASE: unknown setting '%s'; it is written by `redflag chase`", name);
}

/* -- begin ----------------------------------------------------------------------------------------------------------------------- */

extern int __cxa_at_quick_exit(void (*function)(void *), void *library);
static void end_quickly(void *unused);

static __attribute__((constructor(101))) void begin(void)
{
    struct rf_chase_wish wish = { .first = "", .second = "", .rate = 0.05, .delay_ns = 10000000, .least_ns = 1000000000 };
    rf_options_read(environ);
    rf_report_begin();
    const char *text = rf_environment(environ, "REDFLAG_CHASE");
    if (text)
        rf_pair_settings(text, take, &wish);
    wish.account = rf_environment(environ, RF_ACCOUNT_VARIABLE);
    __cxa_at_quick_exit(end_quickly, NULL);
    rf_chase_begin(&wish);
    rf_started = 1;
}

RF_EXPORT void __tsan_init(void);
void __tsan_init(void)
{
    if (rf_started)
        rf_chase_modules();
}

/* -- end ------------------------------------------------------------------------------------------------------------------------- */

static int ended;

static int finish(int status)
{
    if (!rf_started || __atomic_exchange_n(&ended, 1, __ATOMIC_ACQ_REL))
        return status;
    rf_chase_end();
    return rf_chase_finish(status);
}

#include "guest/ends.inc"

/* libc has it only for static linking; programs that were linked with the runtime have it from there. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *library);
RF_EXPORT int atexit(void (*function)(void));
int atexit(void (*function)(void))
{
    return __cxa_atexit((void (*)(void *))(uintptr_t)function, NULL, NULL);
}
