// expect: none
// runs: 10
// The time functions with a caller's own result.
#include "tests/programs/order.h"

#include <string.h>
#include <sys/time.h>
#include <time.h>

static NOINLINE void *work(void *unused)
{
    for (int i = 0; i < 100; i++) {
        struct tm tm;
        struct timeval now;
        struct timespec spec;
        char text[64];
        time_t t = 86400 * 365;
        MUST(gmtime_r(&t, &tm) == &tm && tm.tm_year == 71);
        MUST(timegm(&tm) == t);
        MUST(strftime(text, sizeof text, "%Y-%m-%d", &tm) == 10 && !strcmp(text, "1971-01-01"));
        /* time() goes by a clock that is behind by up to a tick */
        MUST(gettimeofday(&now, NULL) == 0 && clock_gettime(CLOCK_REALTIME, &spec) == 0 && time(&t) + 1 >= now.tv_sec);
        MUST(asctime_r(&tm, text) == text && !strncmp(text, "Fri Jan  1", 10));
    }
    return unused;
}

int main(void)
{
    run_both(work, work);
    return 0;
}
