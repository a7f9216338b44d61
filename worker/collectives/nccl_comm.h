/* nccl_comm.h - the NCCL communicators of a rank, and how their failures are detected and handled.
 * nccl.c makes a fabric of them.
 *
 * Calls are asynchronous: they return before anything was exchanged. Errors are therefore found by
 * a thread, the watch, that polls all communicators. After the first error, or an abort, it aborts
 * all of them: exchanges that wait in streams return at once with invalid data, and every further
 * call and check fails with the first cause.
 *
 * Ending a communicator may take a while: according to NCCL, all its members on a host have to
 * destroy or abort it, and each may wait for the others. Only the watch aborts, and only
 * comms_close() waits for it. Communicators without an error are destroyed in comms_close(), to
 * which all members come at the end. */
#ifndef WORKER_COLLECTIVES_NCCL_COMM_H
#define WORKER_COLLECTIVES_NCCL_COMM_H

#include "worker/collectives/collective.h"

#include <nccl.h>
#include <pthread.h>

/* Whether the result of a call to a nonblocking communicator is no failure so far. Inside a group a
 * call may report that earlier ones are in progress; the rest of the group must be called all the
 * same. */
static inline bool nccl_goes_on(ncclResult_t result)
{
    return result == ncclSuccess || result == ncclInProgress;
}

/* A communicator. Its memory belongs to the caller of comm_join(), and is freed after
 * comms_close(). */
struct comm {
    struct comm *next; /* in comms->list */
    ncclComm_t handle; /* NULL: not joined, or aborted */
    char *name;        /* its ranks: "{0,2,5}" */
    int count, me;     /* number of members, and the index of this rank among them */
    int calls;         /* issued so far */
    int greetings;     /* those of them that came from comm_greet() */
};

/* An exchange that was issued, between two events in its stream. Entries are reused. */
struct flight {
    struct device_event *begun, *ended;
    const char *call; /* its name, for errors */
    const struct comm *comm;
    double limit_s; /* the exchange may take, from since_s on */
    double since_s; /* clock_s() when it was first seen to have begun; 0: not yet */
    bool under_way; /* in use: from before the exchange is issued until it has ended */
    bool issued;    /* both events are set */
};

/* All communicators of a rank. */
struct comms {
    const struct accelerator *accelerator;
    const struct rendezvous *rendezvous;
    int rank, count;
    int device; /* index, among those of this process, of the device of rank and watch */
    double timeout_s;
    struct device_stream *stream; /* for greetings */
    void *word;                   /* one f32 on the device, which greetings exchange */
    pthread_mutex_t lock;         /* for the fields below, and for calls to NCCL */
    pthread_cond_t changed;       /* wakes the watch */
    struct comm *list;
    struct flight **flights;
    size_t flight_count, flight_capacity;
    int failed; /* 0, or the -errno of the first error, described in failure */
    struct error failure;
    bool closing;
    pthread_t watch;
};

/* Start with no communicator, and start the watch. The accelerator and the rendezvous of the
 * configuration are lent until comms_close(). -errno. */
int comms_open(struct comms *comms, const struct fabric_config *config, struct error *err);
/* Stop the watch and end all communicators. Waits for their members on this host, each of which has
 * to call this too, or to fail. */
void comms_close(struct comms *comms);
/* Fail with this cause, unless there was an earlier one; the watch then aborts all communicators.
 * From any thread; does not wait for that. */
void comms_fail(struct comms *comms, int rc, const struct error *cause);
/* 0, or the first error. Polls the communicators. */
int comms_check(struct comms *comms, struct error *err);

/* Join a communicator of these ranks, to which this one belongs. Collective over them; all pass the
 * same key, under which they meet in the rendezvous. The ranks are copied, as text. Waits up to
 * timeout_s for the others. -errno. */
int comm_join(struct comms *comms, struct comm *comm, const int *ranks, int count, const char *key,
              struct error *err);

/* Issue the NCCL calls of one exchange to the stream; called inside an NCCL group, with the lock
 * held, on a communicator without an error. */
typedef ncclResult_t comm_issue_fn(const struct comm *comm, cudaStream_t stream,
                                   const void *arguments);
/* Issue an exchange to the calling thread's stream, timed by the watch: it may take timeout_s from
 * when its turn in the stream comes, the first after the greetings ten times as long. Returns when
 * NCCL has issued it. `call` names it in errors, and must be a string literal. -errno: the first
 * cause. */
int comm_call(struct comms *comms, struct comm *comm, const char *call, comm_issue_fn *issue,
              const void *arguments, struct error *err);
/* Issue an exchange to a stream of its own, and wait for it. All members call this as soon as they
 * have joined. NCCL connects members at their first exchange. Within a step the host would then
 * wait for the others while it is issuing work, and the connections would take device memory that
 * was not planned for. */
int comm_greet(struct comms *comms, struct comm *comm, comm_issue_fn *issue, const void *arguments,
               struct error *err);

#endif
