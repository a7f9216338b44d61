/* internal.h - shared by jobs.c and queue.c; not for others. */
#ifndef COORDINATOR_JOBS_INTERNAL_H
#define COORDINATOR_JOBS_INTERNAL_H

#include "coordinator/jobs/jobs.h"

struct jobs {
    struct jobs_config config;
    struct job **items; /* sorted by number */
    size_t count, capacity;
    uint64_t next_number;
};

#endif
