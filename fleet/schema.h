/* The tables of the store. */
#ifndef RF_FLEET_SCHEMA_H
#define RF_FLEET_SCHEMA_H

#include <stdint.h>

extern const char *const rf_schema[]; /* rf_schema[n] makes version n + 1 from version n */
extern const uint32_t rf_schema_version;

#endif
