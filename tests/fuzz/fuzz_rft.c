/* Any bytes as .rft. A mutated chunk never has the right hash, so each one is repaired first: what is fuzzed is what comes
 * behind the hash, as someone who knows the format could write it. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/trace_input.h"
#include "trace/rft.h"

static void repair(unsigned char *bytes, size_t size)
{
    size_t at = RF_RFT_FILE_HEADER;
    if (size >= at) {
        memset(bytes, 0, at);
        memcpy(bytes, RF_RFT_MAGIC, 8);
        bytes[8] = RF_RFT_VERSION;
    }
    while (size - at >= RF_RFT_CHUNK_HEADER && at <= size) {
        struct rf_rft_header header;
        rf_rft_get_header(&header, bytes + at);
        header.type = header.type % 4;
        if (header.packed > size - at - RF_RFT_CHUNK_HEADER)
            header.packed = (uint32_t)(size - at - RF_RFT_CHUNK_HEADER);
        if (header.raw < header.packed || header.raw > 1u << 16)
            header.raw = header.packed;
        rf_rft_put_header(bytes + at, &header, bytes + at + RF_RFT_CHUNK_HEADER);
        at += RF_RFT_CHUNK_HEADER + header.packed;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char *bytes = malloc(size + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    /* One input in two is taken as it is. */
    if (size && (data[size - 1] & 1) && size >= RF_RFT_FILE_HEADER)
        repair(bytes, size);
    rf_fuzz_trace(bytes, size, RF_FORMAT_RFT);
    free(bytes);
    return 0;
}
