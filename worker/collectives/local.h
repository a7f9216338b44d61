/* local.h - what the files of the local library share: the hub of one job's threads.
 *
 * One lock guards all states; data is copied outside of it. A call waits only for something to
 * *arrive*: the other members of its group, a message, the taking of a message. This wait ends
 * with an error after the limit, by abort, or when the peer has closed. Once all have arrived, what
 * remains is copying memory: it always ends, so it is waited for without a limit, and nobody
 * returns (and frees his memory) while another still reads it. */
#ifndef WORKER_COLLECTIVES_LOCAL_H
#define WORKER_COLLECTIVES_LOCAL_H

#include "worker/collectives/collective.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

enum call { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL };

/* What a member brings to a meeting; lent to the others until the meeting is over. */
struct arrival {
    enum call call;
    enum element element;
    enum reduction reduction;
    const void *source;
    size_t count;                        /* all_reduce: elements; otherwise parts */
    const struct collective_part *parts; /* reduce_scatter, all_gather */
    const size_t *sends;                 /* all_to_all: to each member */
    const size_t *receives;              /* all_to_all */
    bool here;
};

/* A group as all its members see it. */
struct meeting {
    struct meeting *next;
    int *ranks, count;
    bool *joined; /* by member: has created its side of this group */
    char *name;   /* "{0,2,5}" */
    pthread_cond_t changed;
    struct arrival *arrivals;
    int waiting;      /* members at the present barrier */
    uint64_t barrier; /* barriers that are done */
    int failed;       /* 0 or the errno that ended the group, with its words */
    struct error failure;
};

enum request_state { REQUEST_FREE, REQUEST_QUEUED, REQUEST_TAKING, REQUEST_TAKEN };

struct fabric_request {
    struct fabric_request *next; /* in the inbox of the receiver, or among the free */
    enum request_state state;
    int sender, receiver;
    uint32_t tag;
    const void *source;
    enum element element, expected_element;
    size_t count, expected; /* what the receiver asked for; differs: an error */
};

enum rank_state { RANK_ABSENT, RANK_OPEN, RANK_CLOSED };

struct local_rank {
    enum rank_state state;
    pthread_cond_t changed; /* a message came, was taken, or a peer closed */
    struct fabric_request *inbox, **inbox_end;
    _Atomic uint64_t sent;
};

struct local_hub {
    pthread_mutex_t lock;
    int count;
    bool aborted;
    struct local_rank *ranks;
    struct meeting *meetings;
};

struct fabric_group {
    struct fabric_group *next;
    struct fabric *fabric;
    struct meeting *meeting;
    int me;
    const void **parts; /* by member: where its part of a sum begins */
};

#define REQUESTS 64 /* allocated at open; doubles when more are under way at once */

struct fabric {
    struct local_hub *hub;
    const struct accelerator *accelerator; /* or NULL */
    int rank;
    double timeout_s;
    struct fabric_group *groups;
    struct fabric_request **blocks, *free_requests;
    size_t block_count, block_capacity; /* block i holds REQUESTS << i */
};

/* Now + timeout_s on the clock by which all here is waited for. */
struct timespec local_deadline(double timeout_s);

/* Elements of owner's data that another rank has copied. */
void local_count_sent(struct local_hub *hub, int owner, int reader, size_t count);

/* Data of the calling thread lies in the device's memory. */
bool local_on_device(const struct fabric *fabric);
/* What this thread has issued to its lane is done: others may read it, or write over what it read.
 */
int local_settle(const struct fabric *fabric, struct error *err);
void local_copy(const struct fabric *fabric, enum element element, void *destination,
                const void *source, size_t count);

/* Bring the arrival, and return when all members have brought theirs and agree; all hear the same
 * words when they do not. */
int local_meet(struct fabric_group *group, const struct arrival *arrival, struct error *err);
/* Return when all members have come this far; all are on the way, so there is no limit. */
int local_part(struct fabric_group *group, struct error *err);

int local_all_reduce(struct fabric_group *group, enum element element, void *data, size_t count,
                     enum reduction reduction, struct error *err);
int local_reduce_scatter(struct fabric_group *group, enum element element,
                         const struct collective_part *parts, int count, struct error *err);
int local_all_gather(struct fabric_group *group, enum element element,
                     const struct collective_part *parts, int count, struct error *err);
int local_all_to_all(struct fabric_group *group, enum element element, const void *source,
                     const size_t *sends, void *destination, const size_t *receives,
                     struct error *err);

int local_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
               const void *source, size_t count, struct fabric_request **out, struct error *err);
int local_wait(struct fabric *fabric, struct fabric_request *request, struct error *err);
int local_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                  void *destination, size_t count, struct error *err);
/* Take back what was not received, wait for what is being received; the lock is held. */
void local_messages_withdraw(struct fabric *fabric);
/* A further block of free requests. */
void local_requests_grow(struct fabric *fabric);

#endif
