/* One detector over one share of the variables: its beginning, its end, and the races it finds. */
#include "replay/replay.h"

#include <stdlib.h>

#include "replay/pieces.h"
#include "trace/grow.h"

void rf_replay_begin(struct rf_replay *replay, const struct rf_detector *detector, const struct rf_options *options,
                     bool all_races, uint32_t shard, uint32_t shards)
{
    *replay = (struct rf_replay){
        .detector = detector, .options = *options, .all_races = all_races, .shard = shard, .shards = shards
    };
    replay->memory = (struct rf_memory){ .pieces = rf_pieces_take, .give_back = rf_pieces_give_back };
    detector->begin(replay);
    rf_map_init(&replay->reported, &replay->memory);
}

void rf_replay_end(struct rf_replay *replay)
{
    rf_races_free(&replay->races);
    rf_memory_end(&replay->memory);
}

struct rf_replay_size rf_replay_size(const struct rf_replay *replay)
{
    const struct rf_shadow *shadow = &replay->shadow;
    uint64_t count = 0;
    for (uint32_t i = 0; i < shadow->pages.cap; i++) {
        if (shadow->pages.entries[i].key == RF_NO_KEY)
            continue;
        const struct rf_page *page = (const struct rf_page *)(uintptr_t)shadow->pages.entries[i].value;
        for (unsigned at = 0; at < RF_PAGE_CELLS; at++) {
            bool used = page->split && page->split[at];
            for (size_t word = 0; !used && word < shadow->cell / 4; word++) { /* cells are whole words */
                uint32_t value;
                memcpy(&value, page->cells + at * shadow->cell + 4 * word, 4);
                used = value != 0;
            }
            count += used;
        }
    }
    uint64_t bytes =
        replay->memory.bytes - replay->memory.spare - (shadow->page_count * RF_PAGE_CELLS - count) * shadow->cell;
    size_t apart = replay->apart + rf_shadow_directory(shadow) + rf_map_bytes(&replay->reported);
    return (struct rf_replay_size){ count, bytes, bytes - apart };
}

void rf_races_free(struct rf_races *races)
{
    for (size_t i = 0; i < races->count; i++) {
        free(races->list[i].first.locks);
        free(races->list[i].second.locks);
    }
    free(races->list);
    *races = (struct rf_races){ 0 };
}

static void keep_locks(struct rf_race_access *access, const struct rf_locksets *table, rf_lockset set)
{
    if (!table || set == RF_ALL_LOCKS)
        return;
    const struct rf_lockset_entry *entry = &table->sets[set];
    access->locks = rf_resize(NULL, (entry->count + 1) * sizeof *access->locks);
    for (uint32_t i = 0; i < entry->count; i++)
        if (entry->locks[i] >= RF_FIRST_LOCK)
            access->locks[access->lock_count++] = table->keys[entry->locks[i]];
}

void rf_replay_race(struct rf_replay *replay, const struct rf_batch *batch, const struct rf_event *event, uint64_t addr,
                    uint32_t size, const struct rf_side *first, const struct rf_locksets *locksets, rf_lockset held)
{
    if (!replay->all_races && !replay->detector->every_race) {
        /* By bytes: a granule that was accessed in parts may be whole again after alloc or free. */
        uint64_t *reported = rf_map_at(&replay->reported, addr / RF_GRANULE);
        uint64_t bytes = ((UINT64_C(1) << size) - 1) << addr % RF_GRANULE;
        if (!(bytes & ~*reported))
            return;
        *reported |= bytes;
    }
    struct rf_races *races = &replay->races;
    if (races->count == races->cap) {
        races->cap = races->cap ? 2 * races->cap : 16;
        races->list = rf_resize(races->list, races->cap * sizeof *races->list);
    }
    struct rf_race *race = &races->list[races->count++];
    uint64_t number = rf_event_number(batch, event);
    *race = (struct rf_race){ .addr = addr, .size = size, .predictive = first->predictive };
    race->second = (struct rf_race_access){
        .number = number, .thread = event->thread, .site = event->site, .op = (enum rf_op)event->op
    };
    race->first = (struct rf_race_access){ .thread = first->thread, .op = first->writes ? RF_WRITE : RF_READ };
    if (first->known) {
        /* The note is the lower bits of a number not above this one; rf_provenance() checks it against the trace. One event
         * has one thread: so if that of the first is another, its number is less. */
        race->number_bits = first->note_bits ? first->note_bits : 32;
        uint64_t known = (UINT64_C(1) << race->number_bits) - 1, back = (number - first->note) & known;
        if (!back && first->thread != event->thread && number > known)
            back = known + 1;
        race->first.number = number - back;
    }
    keep_locks(&race->first, locksets, first->locks);
    keep_locks(&race->second, locksets, held);
}

void rf_replay_start_over(struct rf_replay *replay, struct rf_engine *engine)
{
    rf_races_free(&replay->races);
    rf_map_end(&replay->reported);
    engine->start_over = false;
}
