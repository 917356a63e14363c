// expect: none
// runs: 10
// eventfd: the counter that is read was written before; epoll: what was added comes before what is waited for.
#include "tests/programs/order.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int event, other, waits, data, more;

static NOINLINE void *first(void *unused)
{
    data = 1;
    MUST(eventfd_write(event, 1) == 0);
    more = 2;
    struct epoll_event e = { .events = EPOLLIN, .data.ptr = &more };
    MUST(epoll_ctl(waits, EPOLL_CTL_ADD, other, &e) == 0);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    eventfd_t value;
    struct epoll_event e;
    MUST(eventfd_read(event, &value) == 0 && value == 1);
    MUST(data == 1);
    MUST(epoll_wait(waits, &e, 1, -1) == 1);
    MUST(*(int *)e.data.ptr == 2);
    return unused;
}

int main(void)
{
    event = eventfd(0, 0);
    other = eventfd(5, 0);
    waits = epoll_create1(0);
    MUST(event >= 0 && other >= 0 && waits >= 0);
    run_both(first, second);
    return 0;
}
