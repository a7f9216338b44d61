/* collective.h - how the ranks of a job exchange data: a family with one row per library.
 *
 * A fabric joins the ranks of one epoch. A group is some of these ranks in a fixed order; every
 * member creates its groups in the same order. All members of a group make its calls in the same
 * order, and a call blocks until this rank's part is done. Data is contiguous and of the element
 * that the call names; counts are in elements, may be 0, and may differ between ranks. Calls on
 * different groups, and messages, may run concurrently in different threads; calls on one group may
 * not.
 *
 * Sums are made in the order of the group's members, chunk by chunk, so that all members get the
 * same bits. Sums of bf16 are made in f32 and rounded once.
 *
 * Errors: -ECONNRESET a peer is gone, -ETIMEDOUT no answer within the limit, -ECANCELED the fabric
 * was aborted; the words in err name operation, group and peer. Members that disagree about a call
 * (operation, element, counts) get -EINVAL from local, and time out over gloo; data of different
 * calls is never mixed. After an error the fabric can only be closed.
 *
 * gloo ignores SIGPIPE in this process, unless somebody has set a handler for it. */
#ifndef WORKER_COLLECTIVES_COLLECTIVE_H
#define WORKER_COLLECTIVES_COLLECTIVE_H

#include "common/base/element.h"
#include "common/base/error.h"
#include "common/graph/operation.h"
#include "worker/kernels/accelerator.h"

struct fabric;
struct fabric_group;
struct fabric_request;

/* Where ranks find each other before they are connected: the key-value store of an epoch. get
 * blocks until the key exists (-ETIMEDOUT at its deadline). *size is the room in value, and then
 * the size of the value; -EMSGSIZE if it does not fit. */
struct rendezvous {
    void *context;
    int (*put)(void *context, const char *key, const void *value, size_t size, struct error *err);
    int (*get)(void *context, const char *key, void *value, size_t *size, struct error *err);
};

/* What open needs; everything it points to is lent until close. */
struct fabric_config {
    int rank, count;                     /* this rank, and the number of ranks */
    double timeout_s;                    /* for how long a call waits for a peer */
    const struct rendezvous *rendezvous; /* NULL for a fabric within one process */
    void *shared;                        /* local: the hub that the threads share */
    /* gloo: called on the thread of a call when it starts to wait for this rank; -1: it waits for
     * nobody. (optional) */
    void (*awaits_cb)(int peer);
    /* What a thread that has entered one of its streams exchanges is memory of this device. NULL:
     * all data is host memory, which gloo always requires. */
    const struct accelerator *accelerator;
    /* For hosted: a fabric of the same ranks for host memory, and its library. */
    const struct collectives *host;
    struct fabric *host_fabric;
    /* An address at which other hosts reach this one. gloo binds to it; NULL: 127.0.0.1. nccl uses
     * its network interface; NULL: any. */
    const char *interface;
};

/* One of several tensors in a call: a chunk per member of the group, of counts[i] elements. */
struct collective_part {
    const void *source;
    void *destination;
    const size_t *counts;
};

/* All functions return 0 or a negative errno with words in err. */
struct collectives {
    const char *name;
    bool in_streams; /* data may be device memory */
    /* Join. Every rank calls it, and it may block until all have. */
    int (*open)(const struct fabric_config *config, struct fabric **out, struct error *err);
    /* Leave. No call may be in progress. Accepts NULL. */
    void (*close)(struct fabric *fabric);
    /* Make every blocked call of this process's fabric fail with -ECANCELED. From any thread. */
    void (*abort)(struct fabric *fabric);

    /* Create a group, of which this rank is a member. It lives as long as the fabric. */
    int (*group)(struct fabric *fabric, const int *ranks, int count, struct fabric_group **out,
                 struct error *err);

    /* Connect the members of a group, all of which call this before its first all_to_all, in the
     * order in which they created their groups. (optional) */
    int (*acquaint)(struct fabric_group *group, struct error *err);

    /* Before the first message of this tag from one rank to the other: both name it, each all that
     * it has part in, after its groups and in the order of (from, to, tag). (optional) */
    int (*channel)(struct fabric *fabric, int from, int to, uint32_t tag, struct error *err);

    /* Reduce in place: data becomes the reduction over all members. */
    int (*all_reduce)(struct fabric_group *group, enum element element, void *data, size_t count,
                      enum reduction reduction, struct error *err);
    /* For each part: source has one chunk per member, one after another; destination gets the sum
     * of the members' chunks for this member, and may be the place of this member's own chunk. */
    int (*reduce_scatter)(struct fabric_group *group, enum element element,
                          const struct collective_part *parts, int count, struct error *err);
    /* For each part: source is this member's chunk; destination gets all chunks in order. source
     * may already be in its place there. */
    int (*all_gather)(struct fabric_group *group, enum element element,
                      const struct collective_part *parts, int count, struct error *err);
    /* source has a chunk for every member, of sends[i] elements; destination gets a chunk from
     * every member, of receives[i]. */
    int (*all_to_all)(struct fabric_group *group, enum element element, const void *source,
                      const size_t *sends, void *destination, const size_t *receives,
                      struct error *err);

    /* Start to send. source must stay unchanged until wait returns for this request, and wait ends
     * the request whatever it returns. Messages with the same sender, receiver and tag arrive in
     * order. */
    int (*send)(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                const void *source, size_t count, struct fabric_request **out, struct error *err);
    int (*wait)(struct fabric *fabric, struct fabric_request *request, struct error *err);
    int (*receive)(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                   void *destination, size_t count, struct error *err);

    /* After a thread has waited for its stream: whether everything that involved other ranks has
     * succeeded. If not, the contents of device memory are invalid. NULL: a call that has returned
     * is complete. (optional) */
    int (*check)(struct fabric *fabric, struct error *err);

    /* Elements that this rank has sent to others so far, counted where data is copied; only for
     * ranks within one process. (optional) */
    uint64_t (*sent)(const struct fabric *fabric);
};

extern const struct collectives collectives_local, collectives_gloo;
/* For memory of NVIDIA devices; in a module, see worker/kernels/devices.h. */
extern const struct collectives collectives_nccl;
/* For device memory over libraries that know host memory only, at the price of two copies and of
 * waiting for them. Not in the table, because it needs another library. */
extern const struct collectives collectives_hosted;

/* For local: what the threads of one process share. Each of its `count` ranks can join it once. */
struct local_hub *local_hub_create(int count);
/* Only after all fabrics that joined it are closed. Accepts NULL. */
void local_hub_destroy(struct local_hub *hub);

extern const struct collectives *const collective_libraries[]; /* ends with NULL */
/* NULL: there is no such library in the table. */
const struct collectives *collectives_find(const char *name);

#endif
