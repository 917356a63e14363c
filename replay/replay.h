/* The offline analyser: detectors run over a trace, one instance of struct rf_replay for each detector and worker.
 *
 * 1. A replay belongs to one thread: it has its own memory, shadow and detector state.
 * 2. With several workers each sees all synchronisation and its own share of the variables (rf_shard_of()); so each finds
 *    exactly the races of its variables that one worker alone would find.
 */
#ifndef RF_REPLAY_REPLAY_H
#define RF_REPLAY_REPLAY_H

#include "core/detector.h"
#include "core/event.h"
#include "core/race.h"
#include "shadow/shadow.h"
#include "trace/trace.h"

struct rf_replay;

/* One line of detect/list.def, as the commands see it. */
struct rf_detector {
    const char *name, *summary;
    bool sharded;
    bool every_race; /* its races are not one a variable: all are kept */
    void (*begin)(struct rf_replay *replay);
    void (*run)(struct rf_replay *replay, const struct rf_batch *batch);
    void (*statistics)(const struct rf_replay *replay, rf_statistic_fn *emit, void *context);
};

extern const struct rf_detector *const rf_detectors[];
extern const size_t rf_detector_count;
const struct rf_detector *rf_detector_find(const char *name, size_t length);

struct rf_replay {
    const struct rf_detector *detector;
    struct rf_options options;
    struct rf_memory memory;
    struct rf_shadow shadow;
    void *state;       /* of the detector */
    bool wide;         /* its cells have their wide form */
    bool commit_begun; /* the next event is a COMMIT whose beginning was seen before cells were widened */
    bool all_races;
    uint32_t shard, shards;
    size_t apart; /* bytes of memory that are threads', synchronisation objects' and the detector's own, not variables' */
    struct rf_map reported; /* granule -> its bytes that had a race, a bit each */
    struct rf_races races;
    double seconds; /* of processor time in run() */
};

void rf_replay_begin(struct rf_replay *replay, const struct rf_detector *detector, const struct rf_options *options,
                     bool all_races, uint32_t shard, uint32_t shards);
void rf_replay_end(struct rf_replay *replay);
/* What a detector's metadata takes at the end. Cells, and places of pools, that were never used do not count. */
struct rf_replay_size {
    uint64_t variables;      /* granules with a history */
    uint64_t bytes;          /* everything */
    uint64_t variable_bytes; /* their cells and all that hangs on them: read maps, parts of granules, sets of epochs */
};

struct rf_replay_size rf_replay_size(const struct rf_replay *replay);
void rf_races_free(struct rf_races *races);

/* Records a race at `event`, unless this variable had one. For run.inc. */
void rf_replay_race(struct rf_replay *replay, const struct rf_batch *batch, const struct rf_event *event, uint64_t addr,
                    uint32_t size, const struct rf_side *first, const struct rf_locksets *locksets, rf_lockset held);

/* Drops the races so far. For run.inc. */
void rf_replay_start_over(struct rf_replay *replay, struct rf_engine *engine);

#endif
