/* Any bytes as STD text: never a crash, and a second look finds what the first one saw. */

#include "tests/fuzz/trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rf_fuzz_trace(data, size, RF_FORMAT_STD);
    return 0;
}
