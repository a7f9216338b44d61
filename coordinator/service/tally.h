/* tally.h - counts what has happened since the coordinator started, for metrics.c. */
#ifndef COORDINATOR_SERVICE_TALLY_H
#define COORDINATOR_SERVICE_TALLY_H

#include "common/base/histogram.h"
#include "coordinator/jobs/job.h"

#include <stddef.h>
#include <stdint.h>

#define TALLY_KIND_SIZE 32

/* Initialize to zero. */
struct service_tally {
    struct tally_events {
        char kind[TALLY_KIND_SIZE];
        uint64_t count;
    } * events; /* one entry per kind that occurred */
    size_t event_count, event_capacity;
    struct tally_replans {
        uint64_t count, steps_lost;
        double seconds; /* from the break to the next finished step */
    } replans[JOB_REASONS];
    struct histogram search_us; /* duration of searches for jobs' plans */
};

void tally_event(struct service_tally *tally, const char *kind);
void tally_finish(struct service_tally *tally);

#endif
