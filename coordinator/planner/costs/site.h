/* site.h - the devices of one stage: a consecutive range of the request's devices, as a mesh.
 *
 * Sites of the same kind are alike in everything that costs depend on: mesh, weights, profiles, and
 * which of their devices share a host. */
#ifndef COORDINATOR_PLANNER_COSTS_SITE_H
#define COORDINATOR_PLANNER_COSTS_SITE_H

#include "coordinator/planner/costs/request.h"

#define SITE_RANKS_MAX 8 /* representatives of a site, and ranks that are told apart */

struct site {
    int first; /* index of a device of the request */
    struct mesh mesh;
    int *weights;           /* of the mesh, owned; NULL: all equal */
    int kind;               /* assigned by sites_add() */
    bool even;              /* all devices have the same speed and equal shares */
    bool alike;             /* even, and the same number of devices on each of its hosts */
    uint64_t library_bytes; /* the most that libraries occupy on any rank's device */
    /* limit on the smallest device, as if libraries occupied as much on all */
    uint64_t memory_bytes;
    /* `ranks` ranks have their bytes told apart: all of them if there are few, otherwise 1, which
     * means one number for all of which none has more, and none less memory. limits: what each may
     * use. tight: the rank that may use least, namely memory_bytes. */
    int ranks, tight;
    uint64_t limits[SITE_RANKS_MAX];
    /* Ranks whose programs represent all others: the first, the last, and one of every profile.
     * They are followed by the other ranks that are told apart. */
    int representatives[SITE_RANKS_MAX], representative_count;
};

/* All sites of one search; equal ones are kept once. */
struct sites {
    const struct planner_request *request;
    struct site **items;
    size_t count, capacity;
    int kinds;
    double memory_scale; /* factor on every site's memory; 0: none */
    struct site_pair *pairs;
    size_t pair_count, pair_capacity;
};

/* Pretend that every device has this many times its memory, to find out how much would do; 0: as it
 * is. */
void sites_scale(struct sites *sites, double scale);
void sites_finish(struct sites *sites);
/* The site that begins at this device; lent. Weights are copied. */
const struct site *sites_add(struct sites *sites, int first, const struct mesh *mesh);
/* A number for the relation of two adjacent sites, b behind a: their kinds, and what host they
 * share. */
int sites_pair(struct sites *sites, const struct site *a, const struct site *b);

#endif
