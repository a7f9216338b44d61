/* tally.h - what has happened since the coordinator was started, counted for metrics.c. */
#ifndef COORDINATOR_SERVICE_TALLY_H
#define COORDINATOR_SERVICE_TALLY_H

#include "common/base/histogram.h"
#include "coordinator/jobs/job.h"

#include <stddef.h>
#include <stdint.h>

#define TALLY_KIND_SIZE 32

/* Zeroed to begin with. */
struct service_tally {
    struct tally_events {
        char kind[TALLY_KIND_SIZE];
        uint64_t count;
    } * events; /* of each kind that there was */
    size_t event_count, event_capacity;
    struct tally_replans {
        uint64_t count, steps_lost;
        double seconds; /* from what broke to the next finished step */
    } replans[JOB_REASONS];
    struct histogram search_us; /* that a job's plan took */
};

void tally_event(struct service_tally *tally, const char *kind);
void tally_finish(struct service_tally *tally);

#endif
