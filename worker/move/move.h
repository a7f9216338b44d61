/* move.h - the state of a training goes from the plan of one epoch to that of the next, from
 * memory to memory.
 *
 * Every rank of the new epoch tells all others which states it holds, and which slices the new
 * plan wants of it. Each then comes to the same decision by itself: the newest state that is whole
 * in what they hold together is the one to go on from; without one it is the newest checkpoint,
 * or the beginning. Then each fills its boxes from the boxes of others.
 *
 * A state is named by its age. Within an epoch all ranks apply a step or none does, for the
 * optimizer follows the one sum of metrics that all take part in; but an epoch may break when only
 * some know that sum. A rank that has put in its share, and so has its whole gradient, is *armed*:
 * if another one has applied the step, it does so as well, with the metrics of that one, and no
 * step is applied twice or by halves. */
#ifndef WORKER_MOVE_MOVE_H
#define WORKER_MOVE_MOVE_H

#include "worker/checkpoint/state.h"
#include "worker/collectives/collective.h"

/* Finished steps, and the epoch that finished the last of them; both 0: the initial state. A
 * state that was only moved or loaded is as old as it was. */
struct move_age {
    uint64_t epoch, step;
};

/* A slice of a weight and of its moments. */
struct move_slice {
    int tensor;
    struct box box;
    float *parts[CHECKPOINT_PARTS]; /* row-major */
};

/* A state in this rank's memory, or a piece of one. */
struct move_held {
    const struct move_slice *slices;
    size_t slice_count;
    struct move_age age;
    bool armed;           /* for the step that follows, in epoch ran_in */
    uint64_t ran_in;      /* the epoch whose program it is */
    const float *metrics; /* of its last step; NULL: not known */
};

struct move_config {
    const struct graph *graph;
    const struct program *program; /* the new one; NULL: this rank only gives */
    const struct collectives *collectives;
    struct fabric *fabric; /* of all that meet; NULL: the rank is alone */
    int rank, ranks;       /* in it: those of the plan first */
    const struct move_held *held;
    size_t held_count;
    struct move_age disk; /* of the newest checkpoint */
    bool has_disk;        /* there is one */
};

enum move_source { MOVE_FRESH, MOVE_DISK, MOVE_MEMORY };

struct move_decision {
    enum move_source source;
    struct move_age age;
    /* MOVE_MEMORY: of the last step; by them states that are armed, and a step behind, get there.
     */
    bool has_metrics;
    float metrics[METRICS];
};

struct move;

/* All ranks meet and decide. Lent until move_destroy: what config points to. Errors of the fabric;
 * -EPROTO: what another rank says makes no sense. */
int move_meet(const struct move_config *config, struct move **out, struct error *err);
const struct move_decision *move_decided(const struct move *move);
/* Whether the rank's state number `index` has yet to apply the step of the decision: to be done
 * before move_fill. */
bool move_must_apply(const struct move *move, size_t index);
/* After MOVE_MEMORY: fill the state of the new program, all ranks together; a rank that only gives
 * has no buffers. *bytes is what came from others. Errors of the fabric; -ENOBUFS. */
int move_fill(struct move *move, state_buffer_cb *buffer, void *context, uint64_t *bytes,
              struct error *err);
/* Accepts NULL. */
void move_destroy(struct move *move);

/* The slices of a program's state, in its memory: an array of its parameter_count, yours. */
struct move_slice *move_slices(const struct program *program, state_buffer_cb *buffer,
                               void *context);

#endif
