/* Read maps against a plain list, with few and many readers, one lockset and several, narrow epochs and wide ones. */
#include "core/readmap.h"
#include "tests/model.h"

#define SLOTS 40u

/* What the map should hold: for each slot the owner's entry and its former owner's. */
struct plain {
    struct rf_last_read reads[SLOTS][2];
    rf_epoch first[SLOTS]; /* of the present owner; the former one ends below */
};

static uint32_t plain_count(const struct plain *plain)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        count += (plain->reads[slot][0].epoch != 0) + (plain->reads[slot][1].epoch != 0);
    return count;
}

static void assert_same(const struct plain *plain, const union rf_readmap *m, const struct rf_reads *reads)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rf_readmap_places(m, reads); i++) {
        struct rf_last_read read = rf_readmap_read(m, reads, i);
        if (!read.epoch)
            continue;
        uint32_t slot = rf_epoch_slot(read.epoch) % SLOTS;
        assert_memory_equal(&read, &plain->reads[slot][read.epoch < plain->first[slot]], sizeof read);
        seen++;
    }
    assert_int_equal(seen, plain_count(plain));
}

/* One map's life. Slots from `base` on, locksets below `locksets`. */
static void live(struct rf_readmaps *all, uint64_t seed, uint32_t slots, uint32_t base, uint32_t locksets)
{
    struct plain plain = { 0 };
    struct rf_reads reads = { 0 };
    uint32_t map = rf_readmap_new(all), times[SLOTS];
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        times[slot] = 1;
        plain.first[slot] = rf_epoch_make(base + slot, 1);
    }
    for (uint32_t step = 0, steps = 1 + random_below(&seed, 60); step < steps; step++) {
        uint32_t slot = random_below(&seed, slots), choice = random_below(&seed, 16);
        if (choice == 0 && !plain.reads[slot][1].epoch) { /* a new owner */
            plain.reads[slot][1] = plain.reads[slot][0];
            plain.reads[slot][0].epoch = 0;
            plain.first[slot] = rf_epoch_make(base + slot, ++times[slot]);
        } else if (choice == 1) { /* the owner has left the slot, and reads elsewhere */
            rf_readmap_remove(all, map, &reads, plain.first[slot], rf_epoch_make(base + slot, times[slot]));
            plain.reads[slot][0].epoch = 0;
        } else {
            times[slot] += random_below(&seed, 2);
            struct rf_last_read read = { rf_epoch_make(base + slot, times[slot]), step, random_below(&seed, locksets) };
            struct rf_last_read *mine = &plain.reads[slot][0];
            enum rf_readmap_change wanted = !mine->epoch                ? RF_READ_FIRST
                                            : mine->epoch == read.epoch ? RF_READ_SAME
                                                                        : RF_READ_AGAIN;
            assert_int_equal(rf_readmap_put(all, map, &reads, plain.first[slot], read.epoch, read.note, read.locks), wanted);
            if (wanted != RF_READ_SAME)
                *mine = read;
        }
        assert_same(&plain, rf_readmap_at(all, map), &reads);
    }
    uint32_t copy = rf_readmap_copy(all, map, &reads);
    rf_readmap_end(all, map, &reads);
    assert_same(&plain, rf_readmap_at(all, copy), &reads);
    rf_readmap_end(all, copy, &reads);
}

static void test_maps(void **state)
{
    (void)state;
    struct rf_memory memory = { .pieces = test_pieces, .give_back = test_give_back };
    struct rf_readmaps all;
    rf_readmaps_init(&all, &memory);
    for (uint64_t seed = 0; seed < 5000; seed++) {
        live(&all, seed, 3, 0, 1);
        live(&all, seed, SLOTS, 0, 1);    /* slots that share a bit of the filter, and tables */
        live(&all, seed, SLOTS, 4080, 1); /* the first that do not fit into 32 bits, multiples of SLOTS */
        live(&all, seed, 5, 0, 2);
    }
    assert_true(all.count < 10); /* numbers are used again */
    rf_memory_end(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_maps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
