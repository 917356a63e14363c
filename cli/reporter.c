/* `redflag reporter`: the other half of the runtime, which starts it with a socket as its standard input. Not for people, except to look
 * at records that were kept: it reads messages (report/record.h) from a file as well, and prints to standard output then. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "report/session.h"

#define LARGEST (64u << 20) /* of a message: a stack has some thousand frames, a report some dozen stacks */

struct input {
    char *text;
    size_t length, cap;
    int stream; /* the descriptor that came with what was read, -1: none */
    bool is_socket;
};

/* More of the input; false at its end. */
static bool fill(struct input *input)
{
    if (input->cap - input->length < 65536) {
        size_t larger = 2 * input->cap + 131072;
        char *moved = larger <= 2 * LARGEST ? realloc(input->text, larger) : NULL;
        if (!moved)
            return false;
        input->text = moved;
        input->cap = larger;
    }
    char *to = input->text + input->length;
    size_t room = input->cap - input->length;
    ssize_t got;
    if (!input->is_socket) {
        do
            got = read(0, to, room);
        while (got < 0 && errno == EINTR);
    } else {
        union {
            struct cmsghdr header;
            char bytes[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec vector = { to, room };
        struct msghdr message = {
            .msg_iov = &vector, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control
        };
        do
            got = recvmsg(0, &message, MSG_CMSG_CLOEXEC);
        while (got < 0 && errno == EINTR);
        struct cmsghdr *header = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
        if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            if (input->stream >= 0)
                close(input->stream);
            memcpy(&input->stream, CMSG_DATA(header), sizeof(int));
        }
    }
    if (got <= 0)
        return false;
    input->length += (size_t)got;
    return true;
}

/* The length of the first whole message, 0: there is none yet. `looked` bytes are known not to hold its end. */
static size_t message_length(const struct input *input, size_t looked)
{
    static const char end[] = "\nend\n";
    size_t from = looked > sizeof end ? looked - sizeof end : 0;
    const char *found = input->length > from ? memmem(input->text + from, input->length - from, end, sizeof end - 1) : NULL;
    return found ? (size_t)(found - input->text) + sizeof end - 1 : 0;
}

static bool answer_message(struct input *input, struct rf_session *session, size_t length)
{
    char answer[RF_ANSWER + 1];
    int stream = input->is_socket ? input->stream : STDOUT_FILENO;
    if (!input->is_socket)
        fflush(stdout);
    rf_session_message(session, input->text, length, stream, answer);
    for (char *p = answer; *p; p++)
        if (*p == '\n')
            *p = ' ';
    strcat(answer, "\n");
    memmove(input->text, input->text + length, input->length - length);
    input->length -= length;
    if (!input->is_socket) {
        if (strncmp(answer, "failed ", 7) == 0 || strncmp(answer, "bad ", 4) == 0) {
            fprintf(stderr, "redflag reporter: %s", strchr(answer, ' ') + 1);
            return false;
        }
        return true;
    }
    if (input->stream >= 0)
        close(input->stream);
    input->stream = -1;
    /* The program may be gone; its report was still written. */
    return send(0, answer, strlen(answer), MSG_NOSIGNAL) > 0;
}

int rf_cli_reporter(int argc, char **argv)
{
    struct stat facts;
    if (argc > 1) {
        fprintf(stderr,
                "redflag reporter: '%s': there are no arguments; the runtime starts this command and sends it records\n",
                argv[1]);
        return RF_EXIT_USAGE;
    }
    if (fstat(0, &facts) != 0) {
        fprintf(stderr, "redflag reporter: standard input: %s\n", strerror(errno));
        return RF_EXIT_USAGE;
    }
    struct input input = { .stream = -1, .is_socket = S_ISSOCK(facts.st_mode) };
    struct rf_session *session = rf_session_new();
    bool good = true;
    size_t looked = 0;
    for (;;) {
        size_t length = message_length(&input, looked);
        if (length) {
            looked = 0;
            if (!(good = answer_message(&input, session, length)))
                break;
        } else {
            looked = input.length;
            if (!fill(&input))
                break;
        }
    }
    if (good && input.length && !input.is_socket) {
        fputs("redflag reporter: the last message has no end\n", stderr);
        good = false;
    }
    rf_session_free(session);
    free(input.text);
    return good ? RF_EXIT_OK : RF_EXIT_USAGE;
}
