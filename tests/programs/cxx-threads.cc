// expect: none
// runs: 10
// flags: -std=c++17
// stock: does not know pthread_mutex_clocklock
// std::thread, mutexes, conditions, futures, call_once and shared pointers.
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/programs/order.h"

static std::mutex mutex;
static std::shared_mutex shared_mutex;
static std::recursive_timed_mutex timed;
static std::condition_variable changed;
static std::condition_variable_any any_changed;
static std::once_flag once;
static int counter, made;
static bool ready;

static void work(std::shared_ptr<std::vector<int>> numbers)
{
    std::call_once(once, [] { made++; });
    MUST(made == 1);
    for (int i = 0; i < 500; i++) {
        std::lock_guard<std::mutex> hold(mutex);
        counter++;
        numbers->push_back(i);
    }
    if (timed.try_lock_for(std::chrono::seconds(30)))
        timed.unlock();
    {
        std::shared_lock<std::shared_mutex> hold(shared_mutex);
        MUST(made == 1);
    }
    std::unique_lock<std::mutex> hold(mutex);
    ready = true;
    changed.notify_all();
    any_changed.notify_all();
}

int main()
{
    auto numbers = std::make_shared<std::vector<int>>();
    std::thread a(work, numbers), b(work, numbers);
    {
        std::unique_lock<std::mutex> hold(mutex);
        changed.wait(hold, [] { return ready; });
        any_changed.wait_for(hold, std::chrono::milliseconds(1), [] { return ready; });
    }
    a.join();
    b.join();
    MUST(counter == 1000 && numbers->size() == 1000);
    auto future = std::async(std::launch::async, [&] { return counter + 1; });
    MUST(future.get() == 1001);
    std::promise<std::string> promise;
    std::thread c([&] { promise.set_value("done"); });
    MUST(promise.get_future().get() == "done");
    c.join();
    return 0;
}
