// expect: none
// Ten thousand fibers, one after the other.
#include "tests/programs/order.h"

#include <sanitizer/tsan_interface.h>

static int data;

int main(void)
{
    void *main_fiber = __tsan_get_current_fiber();
    for (int i = 0; i < 10000; i++) {
        void *fiber = __tsan_create_fiber(0);
        __tsan_switch_to_fiber(fiber, 0);
        data++;
        __tsan_switch_to_fiber(main_fiber, 0);
        data++;
        __tsan_destroy_fiber(fiber);
    }
    MUST(data == 20000);
    return 0;
}
