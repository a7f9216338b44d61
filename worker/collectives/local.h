/* local.h - shared by the files of the local library: the hub of one job's threads.
 *
 * One lock guards all states, but data is copied outside of it. A call waits only for something to
 * *arrive*: the other members of its group, a message, or the receipt of a message. Such a wait
 * ends with an error at the limit, on abort, or when the peer has closed. After everybody has
 * arrived, only copies remain, which always end. They are waited for without a limit, so that
 * nobody returns (and frees its memory) while another still reads it. */
#ifndef WORKER_COLLECTIVES_LOCAL_H
#define WORKER_COLLECTIVES_LOCAL_H

#include "worker/collectives/collective.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum call { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL };

/* What a member brings to a gathering; lent to the others until the gathering is over. */
struct arrival {
    enum call call;
    enum element element;
    enum reduction reduction;
    const void *source;
    size_t count;                        /* all_reduce: elements; otherwise: parts */
    const struct collective_part *parts; /* reduce_scatter, all_gather */
    const size_t *sends;                 /* all_to_all: to each member */
    const size_t *receives;              /* all_to_all */
    bool here;
};

/* A group, as shared by all its members. */
struct gathering {
    struct gathering *next;
    int *ranks, count;
    bool *joined; /* by member: it has created its side of this group */
    char *name;   /* "{0,2,5}" */
    pthread_cond_t changed;
    struct arrival *arrivals;
    int waiting;      /* members at the current barrier */
    uint64_t barrier; /* number of barriers passed */
    int failed;       /* 0, or the errno that ended the group, with words in failure */
    struct error failure;
};

enum request_state { REQUEST_FREE, REQUEST_QUEUED, REQUEST_TAKING, REQUEST_TAKEN };

struct fabric_request {
    struct fabric_request *next; /* in the receiver's inbox, or among the free ones */
    enum request_state state;
    int sender, receiver;
    uint32_t tag;
    const void *source;
    enum element element, expected_element;
    size_t count, expected; /* expected: what the receiver asked for */
};

enum local_state { LOCAL_ABSENT, LOCAL_OPEN, LOCAL_CLOSED };

struct local_rank {
    enum local_state state;
    pthread_cond_t changed; /* a message arrived or was taken, or a peer closed */
    struct fabric_request *inbox, **inbox_end;
    _Atomic uint64_t sent;
};

struct local_hub {
    pthread_mutex_t lock;
    int count;
    bool aborted;
    struct local_rank *ranks;
    struct gathering *gatherings;
};

struct fabric_group {
    struct fabric_group *next;
    struct fabric *fabric;
    struct gathering *gathering;
    int me;
    const void **parts; /* by member: where its part of a sum begins */
};

#define REQUESTS 64 /* allocated at open; doubled when more are in progress at once */

struct fabric {
    struct local_hub *hub;
    const struct accelerator *accelerator; /* or NULL */
    int rank;
    double timeout_s;
    struct fabric_group *groups;
    struct fabric_request **blocks, *free_requests;
    size_t block_count, block_capacity; /* block i has REQUESTS << i */
};

/* Now + timeout_s on CLOCK_MONOTONIC, by which everything here waits. */
struct timespec local_deadline(double timeout_s);

/* Count `count` elements of owner's data that `reader` has copied. */
void local_count_sent(struct local_hub *hub, int owner, int reader, size_t count);

/* Whether the calling thread's data is device memory. */
bool local_on_device(const struct fabric *fabric);
/* Wait for what this thread has issued to its stream: then others may read the results, and
 * overwrite what it has read. */
int local_settle(const struct fabric *fabric, struct error *err);
/* Copy in the kind of memory that the calling thread uses. */
void local_copy(const struct fabric *fabric, enum element element, void *destination,
                const void *source, size_t count);

/* The entries of collectives_local for messages; see struct collectives. */
int local_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
               const void *source, size_t count, struct fabric_request **out, struct error *err);
int local_wait(struct fabric *fabric, struct fabric_request *request, struct error *err);
int local_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                  void *destination, size_t count, struct error *err);
/* Take back messages that were not received, and wait for those being received. The lock is
 * held. */
void local_messages_withdraw(struct fabric *fabric);
/* Allocate another block of free requests. */
void local_requests_grow(struct fabric *fabric);

#endif
