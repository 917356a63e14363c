/* What the kernel says of a mapping of this process. */
#ifndef RF_GUEST_MAPS_H
#define RF_GUEST_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct rf_mapping {
    uintptr_t begin, end;
    uint64_t offset, inode; /* in the file, which this is */
    uint64_t major, minor;  /* and its device */
    char access[4];         /* "r-xp" */
    const char *path;       /* the kernel's name of the file; "" if it is none. Inside `text` */
    char text[8192];        /* of lines; the longest one has a path of 4096 characters */
};

/* The one that has this address. */
bool rf_mapping_at(uintptr_t address, struct rf_mapping *mapping);

#endif
