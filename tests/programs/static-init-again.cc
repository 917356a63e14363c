// expect: none
// runs: 10
// A static variable whose constructor throws is made again by the next.
#include "tests/programs/order.h"

static int attempts;

struct thing {
    int value;
    thing()
    {
        if (attempts++ == 0)
            throw 1;
        value = 5;
    }
};

static int use()
{
    static thing it;
    return it.value;
}

int main()
{
    try {
        use();
        return 1;
    } catch (int) {
    }
    MUST(use() == 5);
    return 0;
}
