/* A module's file as the loader would put it into memory, but nowhere executable. */
#ifndef RF_SITES_IMAGE_H
#define RF_SITES_IMAGE_H

#include "sites/scan.h"

struct rf_image_file {
    struct rf_image image;
    void *memory;
    size_t size;
    char build_id[65];
};

/* False with a reason if it is none for x86-64 Linux. */
bool rf_image_read(struct rf_image_file *file, const char *path, char error[256]);
void rf_image_free(struct rf_image_file *file);

#endif
