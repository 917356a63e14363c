// expect: race
// runs: 10
// race-at: first second
// kind: race on external object
// Two threads change an object of a library that is not instrumented, at once.
#include "tests/programs/order.h"
#include <sanitizer/tsan_interface.h>

static long object;
static void *tag;

static NOINLINE __attribute__((no_sanitize("thread"))) void change(void)
{
    __tsan_external_write(&object, __builtin_return_address(0), tag);
}

static NOINLINE void *first(void *unused)
{
    change();
    reach(1);
    return unused;
}

static NOINLINE void *second(void *unused)
{
    await(1);
    change();
    return unused;
}

int main(void)
{
    tag = __tsan_external_register_tag("Library.Object");
    __tsan_external_register_header(tag, "race on Library.Object");
    MUST(tag == __tsan_external_register_tag("Library.Object"));
    run_both(first, second);
    return 0;
}
