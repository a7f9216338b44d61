/* collective.h - how ranks of one job exchange data: a family with one row per library.
 *
 * A fabric joins the ranks of one epoch. A group is some of these ranks in a fixed order; every
 * member creates its groups in the same order. Calls on one group are made in the same order by
 * all its members and block until this rank's part is done. All data is contiguous, of the element
 * that the call names; counts are elements and may be 0, and differ from rank to rank. Calls on
 * different groups and messages may run side by side, in threads of their own; on one group there
 * is one at a time.
 *
 * Sums are taken in the order of the group's members, chunk by chunk, so that all members hold
 * the same bits. Those of bf16 are taken in f32, and rounded once.
 *
 * Errors: -ECONNRESET a peer is gone, -ETIMEDOUT no answer within the limit, -ECANCELED the
 * fabric was aborted; the sentence names operation, group and peer. Members that disagree about
 * a call (operation, element, counts) get -EINVAL from local and time out over gloo; no data is
 * mixed. After an error the fabric can only be closed.
 *
 * gloo ignores SIGPIPE in this process, if nobody else has decided about it. */
#ifndef WORKER_COLLECTIVES_COLLECTIVE_H
#define WORKER_COLLECTIVES_COLLECTIVE_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/graph/operation.h"
#include "worker/kernels/accelerator.h"

struct fabric;
struct fabric_group;
struct fabric_request;

/* Where ranks find each other before they are connected: a key-value store of the epoch. get
 * blocks until the key is there (or the deadline: -ETIMEDOUT). */
struct rendezvous {
    void *context;
    int (*put)(void *context, const char *key, const void *value, size_t size, struct error *err);
    int (*get)(void *context, const char *key, void *value, size_t *size, struct error *err);
};

struct fabric_config {
    int rank, count;
    double timeout_s;
    const struct rendezvous *rendezvous; /* NULL for a fabric inside one process */
    void *shared;                        /* local: the hub that the threads share */
    /* (optional) gloo: on the thread of a call, it waits for this rank now; -1: for nobody. */
    void (*awaits_cb)(int peer);
    /* What a thread in one of its lanes exchanges lies in its memory; NULL: all data lies in the
     * host's. gloo: always. */
    const struct accelerator *accelerator;
    /* staged: the same ranks, joined for what lies in the host's memory; lent. */
    const struct collectives *host;
    struct fabric *host_fabric;
    /* The address of this host that others reach it by. gloo: to bind to; NULL: 127.0.0.1. nccl:
     * its interface is used; NULL: any. */
    const char *interface;
};

/* A tensor of a call that moves several: a chunk per member, counts[i] long. */
struct collective_part {
    const void *source;
    void *destination;
    const size_t *counts;
};

struct collectives {
    const char *name;
    bool in_lanes; /* data may lie in the memory of a device */
    /* Joins; every rank calls it. */
    int (*open)(const struct fabric_config *config, struct fabric **out, struct error *err);
    /* Accepts NULL. No call may be in progress. */
    void (*close)(struct fabric *fabric);
    /* Wakes every blocked call of this process's fabric with -ECANCELED; from any thread. */
    void (*abort)(struct fabric *fabric);

    int (*group)(struct fabric *fabric, const int *ranks, int count, struct fabric_group **out,
                 struct error *err); /* lives as long as the fabric */

    /* Before the first all_to_all of a group, in the order of the groups: all its members.
     * (optional)
     */
    int (*acquaint)(struct fabric_group *group, struct error *err);

    /* Before the first message of this tag from one rank to the other: both name it, each all that
     * it has part in, after its groups and in the order of (from, to, tag). (optional) */
    int (*channel)(struct fabric *fabric, int from, int to, uint32_t tag, struct error *err);

    /* In place: data becomes the reduction over all members. */
    int (*all_reduce)(struct fabric_group *group, enum element element, void *data, size_t count,
                      enum reduction reduction, struct error *err);
    /* Of each part: source: one chunk per member, one after the other; destination: the sum of this
     * member's chunks, which may replace this member's own chunk. */
    int (*reduce_scatter)(struct fabric_group *group, enum element element,
                          const struct collective_part *parts, int count, struct error *err);
    /* Of each part: source: this member's chunk; destination: all chunks in order. source may lie
     * in its place already. */
    int (*all_gather)(struct fabric_group *group, enum element element,
                      const struct collective_part *parts, int count, struct error *err);
    /* source: a chunk for every member; destination: a chunk from every member. */
    int (*all_to_all)(struct fabric_group *group, enum element element, const void *source,
                      const size_t *sends, void *destination, const size_t *receives,
                      struct error *err);

    /* Begins to send; source must stay as it is until wait returns for this request, which ends
     * the request whatever it returns. Messages of one (sender, receiver, tag) arrive in order. */
    int (*send)(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                const void *source, size_t count, struct fabric_request **out, struct error *err);
    int (*wait)(struct fabric *fabric, struct fabric_request *request, struct error *err);
    int (*receive)(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                   void *destination, size_t count, struct error *err);

    /* Once a thread has waited for what it issued to its lane: did all that other ranks had a part
     * in come through? Else what lies in the device's memory is worth nothing. NULL: a call that
     * has returned is done. (optional) */
    int (*check)(struct fabric *fabric, struct error *err);

    /* Elements that this rank has sent to others so far, counted where data is copied;
     * ranks inside one process only. (optional) */
    uint64_t (*sent)(const struct fabric *fabric);
};

extern const struct collectives collectives_local, collectives_gloo;
/* For data in the memory of an NVIDIA device; a module, worker/kernels/modules.h. */
extern const struct collectives collectives_nccl;
/* For data in the memory of a device, over libraries that know none: through the host's memory, at
 * the price of two copies and of waiting for them. Not of the table, since it needs another one. */
extern const struct collectives collectives_staged;

/* local: what the threads of one process share. */
struct local_hub *local_hub_create(int count);
void local_hub_destroy(struct local_hub *hub);

/* The chunk of a ring all-reduce that a member reduces: [*low, *high) of count elements by the
 * cut formula count * index / members. */
void collective_chunk(size_t count, int members, int index, size_t *low, size_t *high);

extern const struct collectives *const collective_libraries[]; /* ends with NULL */
const struct collectives *collectives_find(const char *name);

#endif
