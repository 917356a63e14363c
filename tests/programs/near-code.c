// expect: none
// runs: 10
// stock: it leaves the program's code as it is
// The calls of hooks are changed to reach copies nearby, and the program does what it did. With --list: which bytes were changed.
#include "tests/programs/near-code.h"
#include "tests/programs/near-work.h"

static struct near_data data;
static struct near_packed packed;

int main(int argc, char **argv)
{
    int list = argc > 1 && strcmp(argv[1], "--list") == 0;
    if (near_work(&data, &packed, 100) != NEAR_SUM(100))
        return 1;
    return near_changed((const void *)&near_work, list) ? 0 : 2;
}
