// expect: none
// runs: 10
// flags: -std=c++20
// The latches, barriers, semaphores and jthreads of C++20.
#include <barrier>
#include <latch>
#include <semaphore>
#include <stop_token>
#include <thread>

#include "tests/programs/order.h"

static int cells[3];

int main()
{
    std::latch all_there(3);
    std::barrier rounds(3);
    std::counting_semaphore<10> tokens(0);
    int sum = 0;
    {
        std::jthread helper([&](std::stop_token token) {
            while (!token.stop_requested())
                std::this_thread::yield();
        });
        std::jthread threads[3];
        for (int i = 0; i < 3; i++) {
            threads[i] = std::jthread([&, i] {
                cells[i] = 1;
                all_there.arrive_and_wait();
                MUST(cells[0] + cells[1] + cells[2] == 3);
                rounds.arrive_and_wait();
                cells[i] = 2;
                rounds.arrive_and_wait();
                MUST(cells[0] + cells[1] + cells[2] == 6);
                tokens.release();
            });
        }
        for (int i = 0; i < 3; i++)
            tokens.acquire();
        sum = cells[0];
    }
    MUST(sum == 2);
    return 0;
}
