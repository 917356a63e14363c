/* The progress line (see progress.h). */
#include "report/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST 1000u /* milliseconds before the line appears */
#define AGAIN 100u  /* and between its changes */
#define BAR 30

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

void rf_progress_begin(struct rf_progress *progress, const char *what)
{
    *progress = (struct rf_progress){ .what = what, .terminal = isatty(STDERR_FILENO) == 1 };
    if (!progress->terminal)
        return;
    progress->started = now();
    progress->next = progress->started + FIRST;
}

void rf_progress_update(struct rf_progress *progress, uint64_t done, uint64_t total, uint64_t events)
{
    if (!progress->terminal)
        return;
    uint64_t time = now();
    if (time < progress->next)
        return;
    progress->next = time + AGAIN;
    progress->shown = true;
    double seconds = (double)(time - progress->started) / 1000;
    fprintf(stderr, "\r%s", progress->what);
    if (total) {
        double share = done < total ? (double)done / (double)total : 1;
        char bar[BAR + 1];
        for (int i = 0; i < BAR; i++)
            bar[i] = i < (int)(share * BAR) ? '#' : '.';
        bar[BAR] = 0;
        fprintf(stderr, " [%s] %3d%%", bar, (int)(share * 100));
        if (share > 0)
            fprintf(stderr, " %.0f s left", seconds / share - seconds);
    } else {
        fprintf(stderr, " %" PRIu64 " MiB", done >> 20);
    }
    if (events)
        fprintf(stderr, " %" PRIu64 " events, %.1f M/s", events, (double)events / seconds / 1e6);
    fputs("\033[K", stderr);
    fflush(stderr);
}

void rf_progress_end(struct rf_progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
