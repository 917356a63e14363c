/* measure REPEAT COMMAND...: runs the command REPEAT times, its output thrown away, and prints the least wall time and processor
 * time in seconds and the largest resident set in KiB. Statuses 0 and 66 (races found) are success. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

int main(int argc, char **argv)
{
    int repeat = argc > 2 ? atoi(argv[1]) : 0;
    if (repeat < 1) {
        fputs("usage: measure REPEAT COMMAND...\n", stderr);
        return 2;
    }
    double wall = 1e30, processor = 1e30;
    long resident = 0;
    for (int i = 0; i < repeat; i++) {
        struct timespec start, end;
        clock_gettime(CLOCK_MONOTONIC, &start);
        pid_t child = fork();
        if (child == 0) {
            int null = open("/dev/null", O_WRONLY);
            if (null >= 0)
                dup2(null, STDOUT_FILENO);
            execvp(argv[2], argv + 2);
            perror(argv[2]);
            _exit(127);
        }
        int status;
        struct rusage usage;
        if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
            perror("measure");
            return 2;
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != 66)) {
            fprintf(stderr, "measure: %s failed\n", argv[2]);
            return 1;
        }
        double this = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
        double cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
        wall = this < wall ? this : wall;
        processor = cpu < processor ? cpu : processor;
        resident = usage.ru_maxrss > resident ? usage.ru_maxrss : resident;
    }
    printf("%.3f %.3f %ld\n", wall, processor, resident);
    return 0;
}
