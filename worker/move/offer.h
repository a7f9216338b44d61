/* offer.h - what a rank holds and wants, as it tells the others. */
#ifndef WORKER_MOVE_OFFER_H
#define WORKER_MOVE_OFFER_H

#include "worker/move/move.h"

/* Per tensor of the graph: whether it is there, and its box. */
struct slices {
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
    struct slices slices;
};

struct offer {
    struct offered_state *states;
    size_t state_count;
    struct slices wanted;
};

/* Serialize this rank's offer; the caller frees it. */
void *offer_pack(const struct move_config *config, size_t *size);
/* Parse an offer; *out must be finished in any case. -EPROTO: it does not describe boxes of this
 * graph. */
int offer_unpack(const void *bytes, size_t size, const struct graph *graph, struct offer *out,
                 struct error *err);
void offer_finish(struct offer *offer);

#endif
