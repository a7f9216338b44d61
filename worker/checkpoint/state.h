/* state.h - a rank's state and the slices of a checkpoint.
 *
 * A rank writes those slices of which it is the first owner, so that all ranks together write
 * every element once, replicas or not. It loads its whole state, however the plan that wrote it
 * had divided it. */
#ifndef WORKER_CHECKPOINT_STATE_H
#define WORKER_CHECKPOINT_STATE_H

#include "common/program/program.h"
#include "worker/checkpoint/read.h"

/* The memory of a buffer of the program. */
typedef void *state_buffer_cb(void *context, int buffer);

/* The buffer of an enum checkpoint_part of a parameter. */
int state_buffer_of(const struct parameter *parameter, int part);

/* What a rank writes, in the order of its shard. */
struct state_slices {
    struct slice *slices;
    int *buffers; /* of each slice, which is all of it */
    size_t count;
    uint64_t bytes;
};
void state_slices_init(struct state_slices *slices, const struct program *program);
void state_slices_finish(struct state_slices *slices);
/* Side by side to `out`, which has room for all their bytes. */
void state_copy(const struct state_slices *slices, state_buffer_cb *buffer, void *context,
                void *out);

/* All parts of all parameters of the rank. Errors as checkpoint_load. */
int state_load(struct checkpoint *checkpoint, const struct program *program,
               state_buffer_cb *buffer, void *context, struct error *err);

#endif
