/* kept.h - the states that an executor keeps from one epoch of its job to the next.
 *
 * Until an epoch has applied its first step its ranks do not know of each other whether all have
 * their new state; so until then the states that it was moved from are kept as well. */
#ifndef WORKER_EXECUTOR_KEPT_H
#define WORKER_EXECUTOR_KEPT_H

#include "worker/executor/interpreter.h"
#include "worker/move/copies.h"

/* More come together only where one epoch after the other breaks in its first step. */
#define KEPT_MAX 3

struct kept_state {
    struct program *program; /* its own, and so is the interpreter; the graph is lent */
    struct interpreter *in;
    struct move_age age;
    uint64_t ran_in; /* epoch */
};

/* Zeroed to begin with. */
struct kept {
    struct kept_state states[KEPT_MAX]; /* the oldest first */
    size_t count;
    struct copies *copies; /* NULL: none */
};

/* Takes the state, which runs no more; where there is no room the oldest one goes. */
void kept_add(struct kept *kept, const struct kept_state *state);
/* Of a rank that goes into another epoch: what it holds, for move_meet, the states first. */
struct kept_held {
    struct move_held *items;
    size_t count;
    struct move_slice *slices[KEPT_MAX];
};
struct kept_held kept_describe(const struct kept *kept);
void kept_held_finish(struct kept_held *held);
/* Once it was decided what to go on from: apply the step that another rank has. */
void kept_apply(struct kept *kept, const struct move *move);
void kept_finish(struct kept *kept);

#endif
