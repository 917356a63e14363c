// Accesses of all the kinds that hot hooks are for; the sum shows that they do what they say.
#include <stdint.h>

struct near_data {
    uint8_t byte;
    uint16_t half;
    uint32_t word;
    uint64_t wide;
    volatile uint32_t loud;
    __int128 pair;
};

struct __attribute__((packed)) near_packed {
    char first;
    uint16_t half;
    uint32_t word;
    uint64_t wide;
};

static __attribute__((noinline)) void near_store(uint64_t *to, uint64_t value)
{
    *to = value; // the hook may be reached by a jump, where func_exit is last
}

static __attribute__((noinline)) uint64_t near_work(struct near_data *data, struct near_packed *packed, int rounds)
{
    uint64_t sum = 0;
    for (int i = 0; i < rounds; i++) {
        data->byte = (uint8_t)(data->byte + 1);
        data->half = (uint16_t)(data->half + 2);
        data->word += 3;
        near_store(&data->wide, data->wide + 4);
        data->loud = data->loud + 5;
        data->pair += 6;
        packed->half = (uint16_t)(packed->half + 7);
        packed->word += 8;
        packed->wide += 9;
        sum += data->byte + data->half + data->word + data->wide + data->loud + (uint64_t)data->pair + packed->half + packed->word +
               packed->wide;
    }
    return sum;
}

#define NEAR_SUM(rounds) (45u * (uint64_t)(rounds) * ((rounds) + 1) / 2) // as long as no byte overflows
