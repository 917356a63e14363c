// part-of: near-dlopen.c
// The library of near-dlopen.c.
#include "tests/programs/near-work.h"

int near_library_work(void);

int near_library_work(void)
{
    static struct near_data data;
    static struct near_packed packed;
    data = (struct near_data){ 0 };
    packed = (struct near_packed){ 0 };
    return near_work(&data, &packed, 100) == NEAR_SUM(100);
}
