/* state.h - a rank's state as slices, in memory and of a checkpoint.
 *
 * A rank writes those slices of which it is the first owner, so that all ranks together write every
 * element exactly once, with or without replicas. It loads its whole state, however the plan that
 * wrote it divided it. */
#ifndef WORKER_CHECKPOINT_STATE_H
#define WORKER_CHECKPOINT_STATE_H

#include "common/program/program.h"
#include "worker/checkpoint/checkpoint.h"

/* Returns the memory of a buffer of the program. */
typedef void *state_buffer_cb(void *context, int buffer);

/* The buffer of an enum state_part of a parameter. */
int state_buffer_of(const struct parameter *parameter, int part);

/* A slice of a weight, with its moments, in memory. */
struct state_slice {
    int tensor;
    struct box box;
    float *parts[STATE_PARTS]; /* row-major */
};
/* The slices of a program's state, in its memory: parameter_count of them, which the caller
 * frees. */
struct state_slice *state_slices(const struct program *program, state_buffer_cb *buffer,
                                 void *context);
/* That of a tensor that is among them. */
const struct state_slice *state_slices_find(const struct state_slice *slices, int tensor);

/* The slices that a rank writes, in the order of its shard. */
struct state_list {
    struct shard_slice *slices;
    int *buffers; /* of each slice, which is the whole buffer */
    size_t count;
    uint64_t bytes;
};
/* List them for a program, whose graph's names are lent; to be finished. */
void state_list_init(struct state_list *slices, const struct program *program);
void state_list_finish(struct state_list *slices);
/* Copy all slices to `out`, one after another; it has room for slices->bytes. */
void state_copy(const struct state_list *slices, state_buffer_cb *buffer, void *context, void *out);

/* Load the first `parts` of enum state_part of all parameters of the rank: all of them, or only the
 * weight. Errors as checkpoint_load. */
int state_load(struct checkpoint *checkpoint, const struct program *program, int parts,
               state_buffer_cb *buffer, void *context, struct error *err);

#endif
