/* Memory for detectors that a test drives by hand. */
#ifndef RF_TESTS_MEMORY_H
#define RF_TESTS_MEMORY_H

#include <stdlib.h>

#include "core/memory.h"

static void *test_pieces(size_t bytes)
{
    void *piece = calloc(1, bytes);
    if (!piece)
        abort();
    return piece;
}

static void test_give_back(void *piece, size_t bytes)
{
    (void)bytes;
    free(piece);
}

static struct rf_memory test_memory = { .pieces = test_pieces, .give_back = test_give_back };

#endif
