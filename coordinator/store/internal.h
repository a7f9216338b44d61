/* internal.h - shared by the files of store/; not for others. */
#ifndef COORDINATOR_STORE_INTERNAL_H
#define COORDINATOR_STORE_INTERNAL_H

#include "coordinator/store/sql.h"
#include "coordinator/store/store.h"

struct store {
    struct sql sql;
    uint64_t cluster;
    struct histogram commit_ns;
};

/* store.c: the path of the database in a folder, to be freed. */
char *store_path(const char *directory);

/* checkpoints.c: read the job's newest listed checkpoint into its record. */
void checkpoints_read_newest(struct sql *sql, struct job *job);

/* schema.c: bring the database to this release's schema; fails with -EPROTO if a newer release
 * wrote it. */
void schema_migrate(struct sql *sql);

#endif
