/* internal.h - what jobs.c and queue.c share; nobody else includes it. */
#ifndef COORDINATOR_JOBS_INTERNAL_H
#define COORDINATOR_JOBS_INTERNAL_H

#include "coordinator/jobs/jobs.h"

struct jobs {
    struct jobs_config config;
    struct job **items; /* by number */
    size_t count, capacity;
    uint64_t next_number;
};

#endif
