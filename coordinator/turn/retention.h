/* retention.h - how long jobs that have ended are known, in memory and in the store, and what is
 * said of those that are not any more.
 *
 * A job that is removed leaves its number, how it ended and when: a name that was given stays
 * answerable, and is never given again. Checkpoints stay where they are. */
#ifndef COORDINATOR_TURN_RETENTION_H
#define COORDINATOR_TURN_RETENTION_H

#include "coordinator/turn/state.h"

/* Initialize to zero. */
struct retention {
    uint64_t next_ms; /* when there is, or may be, something to remove; 0: now */
};

/* A job has ended. */
void retention_note_end(struct state *state);
/* Remove the jobs that are due, some at a time so that no turn is large. */
void retention_enforce(struct state *state);
uint64_t retention_next_ms(const struct state *state);

/* Why there is no job of this name: it was removed, or never there. Returns -ENOENT. */
int retention_explain(const struct state *state, const char *id, struct error *err);

#endif
