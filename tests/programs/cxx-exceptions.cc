// expect: none
// runs: 10
// Exceptions leave functions without their exits; the stacks stay right, however often.
#include <mutex>
#include <stdexcept>
#include <string>

#include "tests/programs/order.h"

static std::mutex mutex;
static int counter;

NOINLINE void deep(int n)
{
    std::lock_guard<std::mutex> hold(mutex);
    counter++;
    if (n % 3 == 0)
        throw std::runtime_error("three");
    counter++;
}

NOINLINE void middle(int n)
{
    std::string text(50, 'x');
    deep(n);
    MUST(text.size() == 50);
}

static void *work(void *unused)
{
    for (int i = 0; i < 20000; i++) {
        try {
            middle(i);
        } catch (const std::exception &error) {
            MUST(error.what()[0] == 't');
        }
    }
    return unused;
}

int main()
{
    run_both(work, work);
    return 0;
}
