/* turn.h - draws the consequences of what has happened, makes them durable, and wakes who waits. */
#ifndef COORDINATOR_TURN_TURN_H
#define COORDINATOR_TURN_TURN_H

#include "coordinator/turn/state.h"

/* Initialize to zero. */
struct turn {
    char **released; /* names under which questions of ended epochs are parked */
    size_t released_count, released_capacity;
    uint64_t events_woken; /* revision up to which waiting callers were notified */
};

/* Make a state that knows of nothing, without jobs (turn/state.h). The caller owns *out, also on
 * failure; errors for lack of threads or descriptors. */
int turn_open(const struct state_options *options, struct rpc_server *server, struct state **out,
              struct error *err);
/* Waits until no search runs any more. */
void turn_close(struct state *state);

/* Act upon what has happened until nothing follows from it, and wake who waits. Answers are sent
 * when all of it is durable, whenever they are given. */
void turn_run(struct state *state);
/* Make everything durable. */
int turn_commit(struct state *state, struct error *err);

/* Names under which polls for a worker's assignments, and questions of an epoch, are parked. */
#define PARKED_SIZE 96
const char *parked_assignments(char *out, uint64_t instance);
const char *parked_rendezvous(char *out, const char *job, uint64_t epoch);

#endif
