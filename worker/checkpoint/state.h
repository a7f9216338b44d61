/* state.h - a rank's state as slices of a checkpoint, and back.
 *
 * A rank writes those slices of which it is the first owner, so that all ranks together write every
 * element exactly once, with or without replicas. It loads its whole state, however the plan that
 * wrote it divided it. */
#ifndef WORKER_CHECKPOINT_STATE_H
#define WORKER_CHECKPOINT_STATE_H

#include "common/program/program.h"
#include "worker/checkpoint/read.h"

/* Returns the memory of a buffer of the program. */
typedef void *state_buffer_cb(void *context, int buffer);

/* The buffer of an enum checkpoint_part of a parameter. */
int state_buffer_of(const struct parameter *parameter, int part);

/* The slices that a rank writes, in the order of its shard. */
struct state_slices {
    struct slice *slices;
    int *buffers; /* of each slice, which is the whole buffer */
    size_t count;
    uint64_t bytes;
};
/* List them for a program, whose graph's names are lent; to be finished. */
void state_slices_init(struct state_slices *slices, const struct program *program);
void state_slices_finish(struct state_slices *slices);
/* Copy all slices to `out`, one after another; it has room for slices->bytes. */
void state_copy(const struct state_slices *slices, state_buffer_cb *buffer, void *context,
                void *out);

/* Load all parts of all parameters of the rank. Errors as checkpoint_load. */
int state_load(struct checkpoint *checkpoint, const struct program *program,
               state_buffer_cb *buffer, void *context, struct error *err);

#endif
