/* offer.h - what a rank holds and wants, as the others hear of it. */
#ifndef WORKER_MOVE_OFFER_H
#define WORKER_MOVE_OFFER_H

#include "worker/move/move.h"

/* A box per tensor of the graph, of those that are in it. */
struct slices {
    struct box *boxes;
    bool *there;
};

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

/* Packed, yours. */
void *offer_pack(const struct move_config *config, size_t *size);
/* *out is for offer_finish in any case. -EPROTO: it does not describe boxes of this graph. */
int offer_unpack(const void *bytes, size_t size, const struct graph *graph, struct offer *out,
                 struct error *err);
void offer_finish(struct offer *offer);

#endif
