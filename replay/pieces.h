/* The memory of metadata, as core/memory.h asks for it. */
#ifndef RF_REPLAY_PIECES_H
#define RF_REPLAY_PIECES_H

#include <stddef.h>

/* For struct rf_memory; any thread may call them. Memory that cannot be had ends the program with one line. */
void *rf_pieces_take(size_t bytes);
void rf_pieces_give_back(void *piece, size_t bytes);

#endif
