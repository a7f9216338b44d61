/* site.h - the devices of one stage: a run of the request's, as a mesh.
 *
 * Sites of one kind are alike in all that costs depend on: mesh, weights, profiles, and which of
 * their devices share a host. */
#ifndef COORDINATOR_PLANNER_COSTS_SITE_H
#define COORDINATOR_PLANNER_COSTS_SITE_H

#include "coordinator/planner/planner.h"

#define SITE_RANKS_MAX 8 /* representatives; and ranks of a site that are told apart */

struct site {
    int first; /* device of the request */
    struct mesh mesh;
    int *weights;           /* of the mesh; NULL: all equal */
    int kind;               /* given by sites_add */
    bool even;              /* all devices of one speed, with equal shares */
    bool alike;             /* even, and each of its hosts has as many of them */
    uint64_t library_bytes; /* what libraries take, at most, of a rank's device */
    uint64_t memory_bytes;  /* of its smallest device, or as the job allows; as if libraries took as
                               much on all */
    /* Ranks whose bytes are told apart, which is all of them where devices are few; or 1: one
     * number for all, none of whom has more of anything nor less memory. What each may have, and
     * who may have least: memory_bytes. */
    int ranks, tight;
    uint64_t limits[SITE_RANKS_MAX];
    /* Ranks whose programs stand for all: the first and the last, and of every profile one. Behind
     * them the others that are told apart. */
    int representatives[SITE_RANKS_MAX], representative_count;
};

/* All sites of one search, equal ones kept once. */
struct sites {
    const struct planner_request *request;
    struct site **items;
    size_t count, capacity;
    int kinds;
    double memory_scale; /* of every site's memory; 0: as it is */
    struct site_pair *pairs;
    size_t pair_count, pair_capacity;
};

uint64_t site_memory_limit(const struct planner_request *request, int device);
/* As if every device had so many times its memory: to find out how much would do. */
void sites_scale(struct sites *sites, double scale);
void sites_finish(struct sites *sites);
/* The site that begins at this device; lent. Copies the weights. */
const struct site *sites_add(struct sites *sites, int first, const struct mesh *mesh);
/* A number for what two sites, the second behind the first, are to each other. */
int sites_pair(struct sites *sites, const struct site *a, const struct site *b);

#endif
