/* The table of all detectors. */
#include <string.h>

#include "replay/replay.h"

#define RF_DETECTOR(name) extern const struct rf_detector rf_detector_##name;
#include "detect/list.def"
#undef RF_DETECTOR

const struct rf_detector *const rf_detectors[] = {
#define RF_DETECTOR(name) &rf_detector_##name,
#include "detect/list.def"
#undef RF_DETECTOR
};

const size_t rf_detector_count = sizeof rf_detectors / sizeof rf_detectors[0];

const struct rf_detector *rf_detector_find(const char *name, size_t length)
{
    for (size_t i = 0; i < rf_detector_count; i++)
        if (strlen(rf_detectors[i]->name) == length && !memcmp(rf_detectors[i]->name, name, length))
            return rf_detectors[i];
    return NULL;
}
