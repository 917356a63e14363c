/* load memcached|redis REQUESTS SOCKET COMMAND...: starts a server that listens at the socket, gives it work from four connections,
 * ends it, and prints its wall time, its processor time and its largest resident set, as bench/measure.c does.
 *
 * The requests are the same in every run: writes and reads of keys, in batches that are sent before their answers are read. An answer
 * that is wrong ends the measurement.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 4, BATCH = 32, KEYS = 20000, VALUE = 100 };

static pid_t server;

static void fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    if (server > 0)
        kill(server, SIGKILL);
    exit(1);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    for (int tries = 0; tries < 1000; tries++) {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
            return fd;
        close(fd);
        usleep(10000);
        if (waitpid(server, NULL, WNOHANG) == server) {
            server = 0;
            fail("the server ended at once");
        }
    }
    fail(path);
    return -1;
}

static void write_all(int fd, const char *text, size_t length)
{
    while (length) {
        ssize_t done = write(fd, text, length);
        if (done <= 0)
            fail("write");
        text += done;
        length -= (size_t)done;
    }
}

/* Reads until `answers` lines that begin with one of the letters have come: what ends an answer of either server. */
static void read_answers(int fd, const char *endings, int answers)
{
    static char buffer[65536];
    int at_line = 1;
    while (answers > 0) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got <= 0)
            fail("read");
        for (ssize_t i = 0; i < got; i++) {
            if (at_line && strchr(endings, buffer[i]))
                answers--;
            if (at_line && memchr("-C", buffer[i], 2))
                fail("an error from the server");
            at_line = buffer[i] == '\n';
        }
    }
    if (answers < 0 || !at_line) { /* the rest of the last line */
        char byte = 0;
        while (!at_line && byte != '\n')
            if (read(fd, &byte, 1) != 1)
                fail("read");
    }
}

static size_t request(char *to, int redis, unsigned long number)
{
    uint64_t hash = (number + 1) * 0x9e3779b97f4a7c15u;
    unsigned key = (unsigned)(hash >> 40) % KEYS;
    static char value[VALUE + 1];
    memset(value, 'a' + (int)(hash >> 60), VALUE);
    int set = number % 4 == 0 || number < KEYS / 4;
    if (!redis)
        return (size_t)(set ? sprintf(to, "set key%07u 0 0 %d\r\n%s\r\n", key, VALUE, value) : sprintf(to, "get key%07u\r\n", key));
    switch (number % 8) {
    case 1:
        return (size_t)sprintf(to, "*2\r\n$4\r\nINCR\r\n$12\r\ncount%07u\r\n", key % 1000);
    case 2:
        return (size_t)sprintf(to, "*4\r\n$4\r\nHSET\r\n$11\r\nhash%07u\r\n$10\r\nfield%05u\r\n$5\r\nvalue\r\n", key % 100, key % 50);
    }
    return (size_t)(set ? sprintf(to, "*3\r\n$3\r\nSET\r\n$10\r\nkey%07u\r\n$%d\r\n%s\r\n", key, VALUE, value)
                        : sprintf(to, "*2\r\n$3\r\nGET\r\n$10\r\nkey%07u\r\n", key));
}

int main(int argc, char **argv)
{
    int redis = argc > 4 && strcmp(argv[1], "redis") == 0;
    unsigned long requests = argc > 4 ? strtoul(argv[2], NULL, 10) : 0;
    if (!requests)
        return fputs("usage: load memcached|redis REQUESTS SOCKET COMMAND...\n", stderr), 2;
    struct timespec start, end;
    unlink(argv[3]);
    clock_gettime(CLOCK_MONOTONIC, &start);
    server = fork();
    if (server == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDOUT_FILENO);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    int fds[CONNECTIONS];
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_to(argv[3]);
    static char text[BATCH * 256];
    /* memcached: STORED, END; redis: a simple string, a number, a text whose length comes first (and is followed by one more line),
     * which may be none */
    for (unsigned long number = 0; number < requests;) {
        for (int i = 0; i < CONNECTIONS; i++) {
            size_t length = 0;
            for (int j = 0; j < BATCH; j++)
                length += request(text + length, redis, number++);
            write_all(fds[i], text, length);
        }
        for (int i = 0; i < CONNECTIONS; i++)
            read_answers(fds[i], redis ? "+:$" : "SE", BATCH);
    }
    kill(server, SIGTERM);
    int status;
    struct rusage usage;
    if (wait4(server, &status, 0, &usage) < 0)
        fail("wait4");
    clock_gettime(CLOCK_MONOTONIC, &end);
    int code = WEXITSTATUS(status); /* a recorder's is 128 and the signal's number, if the signal ended the server */
    if (!(WIFEXITED(status) && (code == 0 || code == 66 || code == 128 + SIGTERM)) &&
        !(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM)) {
        fprintf(stderr, "load: the server ended with status 0x%x\n", status);
        return 1;
    }
    printf("%.3f %.3f %ld\n", (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9,
           (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec * 1e-6 + (double)usage.ru_stime.tv_sec +
               (double)usage.ru_stime.tv_usec * 1e-6,
           usage.ru_maxrss);
    return 0;
}
