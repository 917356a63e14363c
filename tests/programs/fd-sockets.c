// expect: none
// runs: 10
// connect and accept, send and receive within one process.
#include "tests/programs/order.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static int listener, before_connect, before_send, answer;
static struct sockaddr_in name;

static NOINLINE void *client(void *unused)
{
    int s = socket(AF_INET, SOCK_STREAM, 0);
    char c;
    before_connect = 1;
    MUST(connect(s, (struct sockaddr *)&name, sizeof name) == 0);
    before_send = 2;
    MUST(send(s, "x", 1, 0) == 1);
    MUST(recv(s, &c, 1, 0) == 1);
    MUST(answer == 3);
    close(s);
    return unused;
}

static NOINLINE void *server(void *unused)
{
    char c;
    int s = accept(listener, NULL, NULL);
    MUST(s >= 0 && before_connect == 1);
    MUST(recv(s, &c, 1, 0) == 1 && c == 'x');
    MUST(before_send == 2);
    answer = 3;
    MUST(send(s, "y", 1, 0) == 1);
    close(s);
    return unused;
}

int main(void)
{
    socklen_t size = sizeof name;
    listener = socket(AF_INET, SOCK_STREAM, 0);
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(listener, (struct sockaddr *)&name, sizeof name) == 0 && listen(listener, 1) == 0);
    MUST(getsockname(listener, (struct sockaddr *)&name, &size) == 0);
    run_both(client, server);
    close(listener);
    return 0;
}
