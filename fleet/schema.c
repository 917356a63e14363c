/* The schema, one step for each version. A step that was released is never changed: another is added. */
#include "fleet/schema.h"

const char *const rf_schema[] = {
    /* 1 */
    "CREATE TABLE builds (id TEXT PRIMARY KEY, path TEXT NOT NULL);"
    "CREATE TABLE sites (name TEXT PRIMARY KEY, build TEXT NOT NULL, function TEXT, file TEXT, line BIGINT, col BIGINT);"
    "CREATE TABLE pairs (id @serial, build TEXT NOT NULL, first TEXT NOT NULL, second TEXT NOT NULL, origin TEXT NOT NULL,"
    "  stage TEXT NOT NULL, priority BIGINT NOT NULL, runs BIGINT NOT NULL, race TEXT, leased_by TEXT,"
    "  leased_until BIGINT NOT NULL, UNIQUE (first, second));"
    "CREATE INDEX pairs_next ON pairs (priority DESC, runs, id);"
    "CREATE INDEX pairs_leased ON pairs (leased_by);"
    "CREATE TABLE runs (id TEXT PRIMARY KEY, mode TEXT NOT NULL, first TEXT, second TEXT, host TEXT, build TEXT, started BIGINT,"
    "  seconds DOUBLE PRECISION, waited DOUBLE PRECISION, rate DOUBLE PRECISION, status BIGINT);"
    "CREATE INDEX runs_pair ON runs (first, second);"
    "CREATE TABLE races (fingerprint TEXT PRIMARY KEY, kind TEXT NOT NULL, summary TEXT NOT NULL, first TEXT, second TEXT,"
    "  first_seen BIGINT NOT NULL, last_seen BIGINT NOT NULL, report TEXT);"
    "CREATE TABLE sightings (fingerprint TEXT NOT NULL, run TEXT NOT NULL, times BIGINT NOT NULL, PRIMARY KEY (fingerprint, run));"
    "CREATE INDEX sightings_run ON sightings (run);",
    /* 2: of a run that is not over, when something was heard of it last; NULL once it is */
    "ALTER TABLE runs ADD COLUMN heard BIGINT;",
};

const uint32_t rf_schema_version = sizeof rf_schema / sizeof *rf_schema;
