/* move.h - moves the state of a training from the plan of one epoch to that of the next, from
 * memory to memory.
 *
 * Every rank of the new epoch tells all others which states it holds and which slices its new
 * program wants. All of them then come to the same decision: to continue from the newest state that
 * is complete in what they hold together; without one, from the newest checkpoint, or from the
 * beginning. Then each rank fills its boxes from the others' boxes.
 *
 * A state is named by its age. Within an epoch all ranks apply a step or none does, because the
 * optimizer runs after the all-reduce of the metrics, in which all take part. But an epoch may
 * break when only some ranks know that sum. A rank that has contributed its share, and so has its
 * whole gradient, is *armed*: if another rank has applied the step, it applies the step too, with
 * the metrics of that rank. So no step is applied twice, or by only some of the ranks. */
#ifndef WORKER_MOVE_MOVE_H
#define WORKER_MOVE_MOVE_H

#include "worker/checkpoint/state.h"
#include "worker/collectives/collective.h"

/* Number of finished steps, and the epoch that finished the last of them; both 0 for the initial
 * state. Moving or loading a state does not change its age. */
struct move_age {
    uint64_t epoch, step;
};

/* A state in this rank's memory, or a piece of one. All lent. */
struct move_held {
    const struct state_slice *slices;
    size_t slice_count;
    struct move_age age;
    bool armed;           /* ready for the next step, in epoch ran_in */
    uint64_t ran_in;      /* the epoch whose program used the state */
    const float *metrics; /* of its last step; NULL: unknown */
};

struct move_config {
    const struct graph *graph;
    const struct program *program; /* the new program; NULL: this rank only gives */
    const struct collectives *collectives;
    struct fabric *fabric; /* of all ranks that meet; NULL: the rank is alone */
    int rank, ranks;       /* in that fabric, ranks of the plan first */
    const struct move_held *held;
    size_t held_count;
    struct move_age disk; /* age of the newest checkpoint */
    bool has_disk;        /* there is a checkpoint */
};

enum move_source { MOVE_FRESH, MOVE_DISK, MOVE_MEMORY };

struct move_decision {
    enum move_source source;
    struct move_age age;
    /* With MOVE_MEMORY: the metrics of the last step, with which states that are armed and one step
     * behind catch up. */
    bool has_metrics;
    float metrics[METRICS];
};

struct move;
struct inventory;

/* Tags of messages; they lie above those of programs, which are numbers of tensors. */
#define MOVE_TAG_FILL UINT32_C(0xffffff00) /* plus the part */
#define MOVE_TAG_COPY UINT32_C(0xffffff10)

/* Meet and decide; collective over all ranks. What config points to is lent until move_destroy.
 * Errors of the fabric; -EPROTO: another rank's inventory makes no sense. */
int move_meet(const struct move_config *config, struct move **out, struct error *err);
/* What was given to move_meet, and what rank `rank` holds and wants; lent until move_destroy. */
const struct move_config *move_config_of(const struct move *move);
const struct inventory *move_inventory(const struct move *move, int rank);
/* The decision; lent until move_destroy. */
const struct move_decision *move_decided(const struct move *move);
/* Whether this rank's held state `index` still has to apply the step of the decision, which must be
 * done before move_fill. */
bool move_must_apply(const struct move *move, size_t index);
/* After MOVE_MEMORY: fill the state of the new program; collective. A rank that only gives passes
 * no buffers. *bytes is how much came from other ranks. Errors of the fabric; -ENOBUFS. */
int move_fill(struct move *move, state_buffer_cb *buffer, void *context, uint64_t *bytes,
              struct error *err);
/* Accepts NULL. */
void move_destroy(struct move *move);

#endif
