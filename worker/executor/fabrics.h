/* fabrics.h - the fabrics over which a rank exchanges data in an epoch. */
#ifndef WORKER_EXECUTOR_FABRICS_H
#define WORKER_EXECUTOR_FABRICS_H

#include "worker/executor/crew.h"

/* A fabric that was joined. Zeroed: none. */
struct joined {
    const struct collectives *library;
    struct fabric *fabric;
    /* Owned wrapper for distinct keys in the epoch's rendezvous; NULL: plain keys. */
    struct prefixed *prefixed;
};

struct fabrics {
    struct work *work;
    struct joined everybody; /* all ranks that take part, including those that only give state */
    struct joined host;      /* ranks of the plan: data in host memory */
    struct joined program;   /* ranks of the plan: data of programs; may be the same as `host` */
};

/* Join the other ranks. A rank beyond those of the plan joins the meeting only, which exists only
 * with givers. Blocks until they have joined. The caller closes *out, even after an error. */
int fabrics_open(struct fabrics *out, const struct member *member, int givers, struct error *err);
/* For a rank that has failed: release ranks that wait for it in `program`, as far as the library
 * can tell them, so that closing waits for nobody. Returns at once. */
void fabrics_abort(const struct fabrics *fabrics);
/* Leave all of them. Accepts a zeroed struct. */
void fabrics_close(struct fabrics *fabrics);

/* Measure between the hosts of a job before its first step, if the coordinator does not know their
 * network yet: for data in host memory (states and their copies) and, if programs exchange data in
 * device memory, for that too. Every rank of the plan calls this once it has joined; one rank per
 * host takes part, and reports the results. Errors of links_measure. */
int hosts_measure(const struct member *member, const struct fabrics *fabrics, struct error *err);

/* Load the collectives library of this name from its module. -ENODEV: there is none. */
int fabrics_load(const char *name, const struct collectives **out, struct error *err);

#endif
