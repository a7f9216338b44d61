/* inventory.h - what a rank holds and wants, as it tells the others; and who therefore gives what
 * to whom, by cutting wanted boxes along the boxes that are held. */
#ifndef WORKER_MOVE_INVENTORY_H
#define WORKER_MOVE_INVENTORY_H

#include "worker/move/move.h"

/* Per tensor of the graph: whether it is there, and its box. */
struct inventory_slices {
    struct box *boxes;
    bool *there;
};

/* A state that a rank offers; fields as in struct move_held. */
struct offered_state {
    struct move_age age;
    bool armed;
    uint64_t ran_in;
    bool has_metrics;
    float metrics[METRICS];
    struct inventory_slices slices;
};

struct inventory {
    struct offered_state *states;
    size_t state_count;
    struct inventory_slices wanted;
};

/* Serialize this rank's inventory; the caller frees it. */
void *inventory_pack(const struct move_config *config, size_t *size);
/* Parse an inventory; *out must be finished in any case. -EPROTO: it does not describe boxes of
 * this graph. */
int inventory_unpack(const void *bytes, size_t size, const struct graph *graph,
                     struct inventory *out, struct error *err);
void inventory_release(struct inventory *inventory);

/* A piece of one tensor, from a state of rank `from` to the new state of rank `to`. */
struct transfer {
    int to, from;
    size_t state;
    int tensor;
    struct box box;
};

struct transfers {
    struct transfer *items;
    size_t count, capacity;
};

/* The wanted state, and the metrics of its last step; NULL: nobody knows them. */
struct target {
    struct move_age age;
    const float *metrics;
};

/* Whether a state is of the target's age, or can get there: it is armed for that step, and the
 * metrics are known. */
bool offered_gives(const struct offered_state *state, const struct target *target);

/* Append what everybody is given, every element once. A rank's own elements come from itself,
 * others from the ranks after it in turn. Returns the number of elements that nobody has. */
int64_t transfers_cut(const struct inventory *inventories, int ranks, size_t tensor_count,
                      const struct target *target, struct transfers *out);
void transfers_finish(struct transfers *transfers);

#endif
