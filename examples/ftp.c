/* A server whose connections are closed under it, and which survives.
 *
 * One thread serves each connection; another one closes connections that were idle for too long. It says so under the lock, but clears
 * the connection's fields without it, while the first thread may be about to use them: a race that ends in a null pointer, now and
 * then. (After the Apache FTP server, as in "Goldilocks: a race and transaction-aware Java runtime", PLDI 2007, Example 1.)
 *
 *   redflag cc -g -pthread examples/ftp.c -o ftp
 *   redflag run ./ftp                          the race is reported, and the server crashes
 *   redflag run --on-race=exception ./ftp      the access does not happen: the server says good-bye to that user, and goes on
 */
#include <pthread.h>
#include <redflag.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct stream {
    int socket;
};

struct request {
    char command[64];
    int count;
};

struct connection {
    pthread_mutex_t lock;
    int is_closed; /* under the lock */
    struct stream in; /* where run() waits for the next command */
    struct stream *writer;
    struct request *request;
    const char *user;
    int commands, user_socket; /* what the user does */
    int broken;                /* out: how it ended */
};

static int read_line(struct stream *from, char *line, size_t size)
{
    size_t length = 0;
    for (char c; length + 1 < size && read(from->socket, &c, 1) == 1 && c != '\n';)
        line[length++] = c;
    line[length] = 0;
    return length > 0;
}

static void reply(struct stream *to, int code, const char *text)
{
    char line[96];
    int length = snprintf(line, sizeof line, "%d %s\n", code, text);
    if (write(to->socket, line, (size_t)length) != length)
        perror("reply");
}

static void parse(struct request *request, const char *line)
{
    snprintf(request->command, sizeof request->command, "%s", line);
    request->count++;
}

/* Serves a connection to its end. */
static void *run(void *argument)
{
    struct connection *connection = argument;
    volatile int broken = 0;
    char line[64];
    while (read_line(&connection->in, line, sizeof line) && strcmp(line, "QUIT")) {
        redflag_try {
            parse(connection->request, line);
            reply(connection->writer, 200, connection->request->command);
        } redflag_catch (race) {
            printf("%s: connection closed! (T%u cleared a field that T%u was about to use)\n", connection->user,
                   race->before.thread, race->now.thread);
            broken = 1;
        }
        if (broken)
            break;
    }
    connection->broken = broken;
    close(connection->in.socket);
    return NULL;
}

/* By the thread that looks for idle connections. */
static void *close_idle(void *argument)
{
    struct connection *connection = argument;
    pthread_mutex_lock(&connection->lock);
    if (connection->is_closed) {
        pthread_mutex_unlock(&connection->lock);
        return NULL;
    }
    connection->is_closed = 1;
    pthread_mutex_unlock(&connection->lock);
    redflag_try {
        connection->request = NULL; /* these belong under the lock, and run() should look */
        connection->writer = NULL;
    } redflag_catch (race) {
        printf("%s: in use by T%u after all, and not closed\n", connection->user, race->before.thread);
    }
    return NULL;
}

/* For the sake of the example: the user wakes up just after the connection was closed, every time. */
static int is_gone(struct connection *connection)
{
    void *writer;
    __asm__ volatile("movq %1, %0" : "=r"(writer) : "m"(connection->writer)); /* no compiler looks into this */
    return !writer;
}

static void *use(void *argument)
{
    struct connection *connection = argument;
    struct stream own = { connection->user_socket };
    char answer[96];
    int served = 0;
    for (int i = 0; i < connection->commands; i++) {
        dprintf(own.socket, "NOOP %d\n", i);
        served += read_line(&own, answer, sizeof answer);
    }
    if (!strcmp(connection->user, "sleepy"))
        while (!is_gone(connection))
            usleep(1000);
    dprintf(own.socket, "%s\n", strcmp(connection->user, "sleepy") ? "QUIT" : "LIST");
    printf("%s: %d of %d commands answered\n", connection->user, served, connection->commands);
    read_line(&own, answer, sizeof answer); /* till the server hangs up */
    close(own.socket);
    return NULL;
}

static const char *const users[] = { "anna", "sleepy", "boris" };
#define USERS 3

int main(void)
{
    static struct connection connections[USERS];
    static struct stream streams[USERS];
    static struct request requests[USERS];
    pthread_t serving[USERS], using[USERS], closing;
    int broken = 0;
    for (int i = 0; i < USERS; i++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
            return 1;
        streams[i].socket = ends[0];
        connections[i] = (struct connection){ .in = streams[i],
                                              .writer = &streams[i],
                                              .request = &requests[i],
                                              .user = users[i],
                                              .commands = strcmp(users[i], "sleepy") ? 3 + i : 0,
                                              .user_socket = ends[1] };
        pthread_mutex_init(&connections[i].lock, NULL);
        pthread_create(&serving[i], NULL, run, &connections[i]);
        pthread_create(&using[i], NULL, use, &connections[i]);
    }
    usleep(100000); /* idle for too long */
    pthread_create(&closing, NULL, close_idle, &connections[1]);
    for (int i = 0; i < USERS; i++) {
        pthread_join(using[i], NULL);
        pthread_join(serving[i], NULL);
        broken += connections[i].broken;
    }
    pthread_join(closing, NULL);
    printf("the server ends, %d of %d connections were closed under it\n", broken, USERS);
    return 0;
}
