// C++ that the plugin compiles, and that computes the same: prefetches where exceptions may pass, loops in try blocks, objects with destructors.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

struct counter {
    static int live;
    counter() { live++; }
    ~counter() { live--; }
};
int counter::live;

__attribute__((noinline)) static int ahead(int *numbers, int count)
{
    counter here;
    int sum = 0;
    for (int i = 0; i < count; i++) {
        __builtin_prefetch(numbers + i + 16);
        sum += numbers[i];
    }
    return sum;
}

__attribute__((noinline)) static int until(const std::vector<int> &numbers)
{
    int sum = 0;
    try {
        for (size_t i = 0;; i++) {
            counter here;
            sum += numbers.at(i);
        }
    } catch (const std::out_of_range &) {
        sum++;
    }
    return sum;
}

__attribute__((noinline)) static size_t joined(const std::string &text)
{
    try {
        std::string twice = text + text;
        if (twice.size() > 4)
            throw twice;
        return 0;
    } catch (const std::string &what) {
        return what.size();
    }
}

// Counted to the end of all addresses, on a path that is never gone.
static inline void clear(char *text, size_t size)
{
    for (size_t i = 0; i < size - 1; i++)
        text[i] = 0;
}

__attribute__((noinline)) static void perhaps(char *text, bool really)
{
    if (really)
        clear(text, 0);
}

int main()
{
    std::vector<int> numbers(100, 3);
    char text[4] = "abc";
    perhaps(text, false);
    return ahead(numbers.data(), 100) != 300 || until(numbers) != 301 || joined("red") != 6 || counter::live || text[0] != 'a';
}
