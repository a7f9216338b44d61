/* curves.h - what jobs have measured: in memory while they run, in the store for good.
 *
 * It is stored with whatever else a turn stores, and otherwise a few times a second: a step is not
 * worth a commit of its own. Who reports waits for that with the next report, so that what was
 * acknowledged is in the store, and a coordinator that dies leaves no hole in a curve. */
#ifndef COORDINATOR_TURN_CURVES_H
#define COORDINATOR_TURN_CURVES_H

#include "coordinator/turn/state.h"

#define CURVES_ENDED 8 /* jobs that have ended of which all is in memory, the last looked at */

/* Initialize to zero. */
struct curves {
    uint64_t since_ms;                     /* when the oldest change that is not stored came */
    char ended[CURVES_ENDED][JOB_ID_SIZE]; /* a ring */
    size_t next;
};

/* Read what the store has of a job when the coordinator starts: all of it if it goes on, else the
 * newest steps. Errors of the store. */
int curves_restore(struct state *state, const struct job *job, struct error *err);
/* All that was measured of the job, lent until the next report or question; NULL: nothing. What is
 * to be added to has to be whole as well. */
const struct job_telemetry *curves_whole(const struct state *state, const struct job *job);
/* The job has ended: its curve need not stay in memory. */
void curves_end(struct state *state, const struct job *job);

/* Put what has changed, if it is time to. Returns whether those who reported it may hear that it is
 * kept. */
bool curves_keep(struct state *state);
/* When that is next due; UINT64_MAX: there is nothing to keep. */
uint64_t curves_next_ms(const struct state *state);
/* Put all of it. */
void curves_keep_all(struct state *state);

#endif
