// expect: none
// runs: 10
// stock: ends a program that wants too much, by default
// Every operator new has its delete; blocks pass between threads through a future.
#include <future>
#include <memory>
#include <new>

#include "tests/programs/order.h"

struct alignas(128) wide {
    char room[128];
};

int main()
{
    for (int i = 0; i < 50; i++) {
        std::unique_ptr<int[]> numbers = std::async(std::launch::async, [] {
            std::unique_ptr<int[]> made(new int[100]);
            for (int j = 0; j < 100; j++)
                made[j] = j;
            return made;
        }).get();
        MUST(numbers[99] == 99);
    }
    wide *one = new wide, *many = new wide[3];
    MUST(reinterpret_cast<unsigned long>(one) % 128 == 0 && reinterpret_cast<unsigned long>(many) % 128 == 0);
    delete one;
    delete[] many;
    int *quiet = new (std::nothrow) int(3);
    operator delete(quiet, std::nothrow);
    volatile unsigned long huge = ~0ul / 4;
    bool thrown = false;
    try {
        char *volatile none = new char[huge];
        delete[] none;
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    MUST(thrown);
    char *volatile nothing = new (std::nothrow) char[huge];
    MUST(nothing == nullptr);
    return 0;
}
