// expect: race
// runs: 10
// kind: data race on vptr (ctor/dtor vs virtual call)
// stock: looks at one side only, and gcc marks only writes
// A virtual call while another thread destroys the object.
#include <new>

#include "tests/programs/order.h"

struct base {
    virtual void call()
    {
    }
    virtual ~base()
    {
        reach(2);
        await(3);
    }
};

struct derived : base {
    void call() override
    {
    }
};

static base *object;

static void *calls(void *unused)
{
    await(2);
    object->call();
    reach(3);
    return unused;
}

static void *destroys(void *unused)
{
    object->~base();
    return unused;
}

alignas(derived) static char room[sizeof(derived)];

int main()
{
    object = new (room) derived;
    run_both(calls, destroys);
    return 0;
}
