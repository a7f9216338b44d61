/* fabrics.h - the ways in which a rank exchanges data in an epoch. */
#ifndef WORKER_EXECUTOR_FABRICS_H
#define WORKER_EXECUTOR_FABRICS_H

#include "worker/executor/crew.h"

/* Zeroed: it is not there. */
struct joined {
    const struct collectives *library;
    struct fabric *fabric;
    struct apart *apart; /* keys of its own in the epoch's rendezvous; NULL: it has those */
};

struct fabrics {
    struct work *work;
    struct joined meeting; /* of all ranks that take part, those that only give too */
    struct joined host;    /* of the plan's ranks: what lies in the host's memory; */
    struct joined program; /* and where programs run. It may be the same */
};

/* Joins the others. For a rank behind those of the plan there is the meeting only, which there is
 * only with givers. *out is the caller's to close, whatever came out. */
int fabrics_open(struct fabrics *out, const struct rank *rank, int givers, struct error *err);
/* Where programs run, once more, for ranks of the plan that agree on it; not where that is the
 * host's memory. *out is the caller's to part with, whatever came out. */
int fabrics_join_again(const struct fabrics *fabrics, const struct rank *rank, struct joined *out,
                       struct error *err);
void fabrics_part(struct work *work, struct joined *joined);

/* Of a rank that has failed: ranks that wait for it where programs run do so no more, as far as
 * the library can tell them, and closing waits for none of them. Returns at once. */
void fabrics_abort(const struct fabrics *fabrics);
/* Zeroed ones are closed, too. */
void fabrics_close(struct fabrics *fabrics);

/* The library of this name, from its module. -ENODEV. */
int fabrics_load(const char *name, const struct collectives **out, struct error *err);

#endif
