/* nccl_comm.h - one communicator of NCCL at a time, and what can go wrong with it; nccl.c makes a
 * fabric of them.
 *
 * All is issued: a call returns before anything was exchanged. So what goes wrong is found by a
 * thread that looks at all communicators now and then. Once something has, or somebody aborts, it
 * ends all of them: then what waits in the lanes returns at once, with nothing of worth, and every
 * call and check fails with the first cause.
 *
 * Ends may take their time. NCCL says of both, to destroy a communicator and to abort it, that all
 * members on a host have to: whoever does may wait for them. To abort is the watching thread's, and
 * closing alone waits for that; to destroy is for members that come to their end together. */
#ifndef WORKER_COLLECTIVES_NCCL_COMM_H
#define WORKER_COLLECTIVES_NCCL_COMM_H

#include "worker/collectives/collective.h"

#include <nccl.h>
#include <pthread.h>

/* Of a call to communicators that do not block: no failure so far. Inside a group one may say that
 * others are in progress; what is behind it in the group has to be called all the same. */
static inline bool nccl_goes_on(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* Some of the ranks, in an order. */
struct comm {
    struct comm *next;
    ncclComm_t handle; /* NULL: ended */
    char *name;        /* "{0,2,5}" */
    int count, me;
    int calls;     /* that were issued, */
    int greetings; /* and of those, before the first step */
};

/* An exchange: its place in the lane. */
struct flight {
    struct mark *begun, *ended;
    const char *call;
    const struct comm *comm;
    double limit_s; /* for it to be done, */
    double since_s; /* from when it was seen under way; 0: not yet */
    bool under_way; /* nobody else's, from before it is issued */
    bool issued;    /* both marks are set */
};

struct comms {
    const struct accelerator *accelerator;
    const struct rendezvous *rendezvous;
    int rank, count;
    int device; /* of those of this process: the rank's, and so the watch's */
    double timeout_s;
    struct lane *lane;    /* for greetings, */
    void *word;           /* of which each has one element here */
    pthread_mutex_t lock; /* of all below, and of calls to NCCL */
    pthread_cond_t changed;
    struct comm *list;
    struct flight **flights;
    size_t flight_count, flight_capacity;
    int failed; /* the first cause, */
    struct error failure;
    bool closing;
    pthread_t watch;
};

/* -errno. */
int comms_open(struct comms *comms, const struct fabric_config *config, struct error *err);
/* Waits for the members on this host, which have to come to it, or to fail, as well. */
void comms_close(struct comms *comms);
/* The first cause stays; from any thread, and waits for nothing. */
void comms_fail(struct comms *comms, int rc, const struct error *cause);
/* 0, or the first cause. */
int comms_check(struct comms *comms, struct error *err);

/* All members join, under the same name of the rendezvous. Takes the list of ranks over as words.
 */
int comm_join(struct comms *comms, struct comm *comm, const int *ranks, int count, const char *key,
              struct error *err);

/* What one call issues, in the calling thread's lane, to a communicator that is well. */
typedef ncclResult_t comm_issue_fn(const struct comm *comm, cudaStream_t stream,
                                   const void *arguments);
int comm_call(struct comms *comms, struct comm *comm, const char *call, comm_issue_fn *issue,
              const void *arguments, struct error *err);
/* The same in a lane of its own, waited for; all members call it as soon as they have joined. NCCL
 * connects members when they first exchange something: here nobody is in a step yet, where the host
 * would wait for the others in the midst of issuing, and where connections take memory that nobody
 * has counted. */
int comm_greet(struct comms *comms, struct comm *comm, comm_issue_fn *issue, const void *arguments,
               struct error *err);

/* ---- nccl_watch.c ---- */

/* The thread that looks, and aborts; ends by comms->closing, or once it has aborted all. */
void *comms_watch(void *comms);
/* How it stands; that it cannot be told counts as such. */
ncclResult_t comm_state(const struct comm *comm);
/* -errno and words for a result that is none to go on with. -ENOMEM: the device has no memory left
 * for what NCCL needs beside the rank's own. */
int comm_explain(const struct comms *comms, ncclResult_t result, const char *call,
                 const struct comm *comm, struct error *err);
double comms_now(void);
/* With the lock held. All communicators are to end for this cause, unless there was one before; */
void comms_end(struct comms *comms, int rc, const struct error *cause);
/* or for this result: returns what the cause is; */
int comms_fail_by(struct comms *comms, ncclResult_t result, const char *call,
                  const struct comm *comm, struct error *err);
/* 0, or what the cause was. */
int comms_failed(const struct comms *comms, struct error *err);

#endif
