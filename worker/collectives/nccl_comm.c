/* nccl_comm.c - the watch, which looks for errors and exceeded limits, describes them, and aborts
 * all communicators; opening and closing, joining communicators, issuing exchanges. */
#include "worker/collectives/nccl_comm.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "worker/collectives/library.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What NCCL does in a thread of its own can only be polled. Issuing a call takes microseconds, so
 * for the first EAGER_S it is polled continuously; joining takes until all members have come. */
#define EAGER_S 0.001
#define POLL_NS 500000
/* The first exchange after greetings may wait for members that still load and choose kernels. */
#define FIRST_FACTOR 10
#define WORD_BYTES 4
#define WATCH_NS 50000000 /* between two polls of all communicators */
/* Less free device memory than this is too little: NCCL reserves tens of MiB at a time. */
#define SCARCE_BYTES (UINT64_C(128) << 20)

/* NCCL reports a failed allocation in the same way as a device that failed, so the free memory has
 * to tell them apart. */
static bool is_scarce(const struct comms *comms)
{
    struct error err;
    uint64_t room;
    return comms->accelerator->free_bytes(&room, &err) == 0 && room < SCARCE_BYTES;
}

/* Describe a result that is a failure; returns its -errno. -ENOMEM: the device has no memory left
 * for what NCCL needs in addition to the rank's own. */
static int comm_explain(const struct comms *comms, ncclResult_t result, const char *call,
                        const struct comm *comm, struct error *err)
{
    const struct {
        ncclResult_t result;
        int rc;
        const char *advice;
    } rows[] = {
        {ncclRemoteError, -ECONNRESET, "a peer is gone, or the network to it"},
        {ncclSystemError, comm->calls > 0 ? -ECONNRESET : -EIO,
         "a peer is gone, or this system refuses sockets, /dev/shm or locked memory"},
        {ncclUnhandledCudaError, -EIO, "the device failed"},
        {ncclInvalidUsage, -EINVAL,
         "the ranks do not fit each other; are two of them on one device, or are their versions of "
         "NCCL different?"},
    };
    const char *details = ncclGetLastError(comm->handle);
    if (result == ncclUnhandledCudaError && is_scarce(comms))
        return error_set(err, -ENOMEM,
                         "%s in group %s: the device has no memory left for NCCL (NCCL: %s)", call,
                         comm->name, details);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == result)
            return error_set(err, rows[i].rc, "%s in group %s: %s (NCCL: %s; %s)", call, comm->name,
                             rows[i].advice, ncclGetErrorString(result), details);
    return error_set(err, -EIO, "%s in group %s: NCCL: %s; %s; NCCL_DEBUG=WARN makes it say more",
                     call, comm->name, ncclGetErrorString(result), details);
}

/* ---- failing: the lock is held ---- */

/* Fail with this cause, as comms_fail(). */
static void comms_end(struct comms *comms, int rc, const struct error *cause)
{
    if (comms->failed)
        return;
    comms->failed = rc;
    comms->failure = *cause;
    pthread_cond_broadcast(&comms->changed); /* the watch aborts them */
}

/* 0, or the first cause, with words in err unless it is NULL. */
static int comms_failed(const struct comms *comms, struct error *err)
{
    if (comms->failed && err)
        *err = comms->failure;
    return comms->failed;
}

/* Fail because of this result of NCCL; returns the first cause, with words in err unless it is
 * NULL. */
static int comms_fail_by(struct comms *comms, ncclResult_t result, const char *call,
                         const struct comm *comm, struct error *err)
{
    struct error cause;
    comms_end(comms, comm_explain(comms, result, call, comm, &cause), &cause);
    return comms_failed(comms, err);
}

void comms_fail(struct comms *comms, int rc, const struct error *cause)
{
    pthread_mutex_lock(&comms->lock);
    comms_end(comms, rc, cause);
    pthread_mutex_unlock(&comms->lock);
}

/* ---- the watch ---- */

/* Calls on a nonblocking communicator are launched by a thread of NCCL. If that fails, the first
 * query gets the error as its own return value, and not as the state. A failure to ask is returned
 * as the state. */
static ncclResult_t comm_state(const struct comm *comm)
{
    ncclResult_t state = ncclSuccess;
    ncclResult_t told = ncclCommGetAsyncError(comm->handle, &state);
    return told == ncclSuccess ? state : told;
}

static void watch_comms(struct comms *comms)
{
    for (struct comm *comm = comms->list; comm && !comms->failed; comm = comm->next) {
        ncclResult_t state = comm->handle ? comm_state(comm) : ncclSuccess;
        if (!nccl_goes_on(state))
            comms_fail_by(comms, state, "an exchange", comm, NULL);
    }
}

/* Check an exchange against its limit, which counts from when its turn in the stream came. */
static void watch_flight(struct comms *comms, struct flight *flight, double time_s)
{
    struct error cause;
    const struct accelerator *accelerator = comms->accelerator;
    if (!flight->issued)
        return;
    if (accelerator->event_passed(flight->ended))
        flight->under_way = false;
    else if (flight->since_s == 0 && accelerator->event_passed(flight->begun))
        flight->since_s = time_s;
    else if (flight->since_s > 0 && time_s - flight->since_s > flight->limit_s)
        comms_end(comms,
                  error_set(&cause, -ETIMEDOUT, "%s in group %s: not done within %g s",
                            flight->call, flight->comm->name, flight->limit_s),
                  &cause);
}

static void watch_all(struct comms *comms)
{
    double time_s = clock_s();
    watch_comms(comms);
    for (size_t i = 0; i < comms->flight_count && !comms->failed; i++)
        if (comms->flights[i]->under_way)
            watch_flight(comms, comms->flights[i], time_s);
}

/* All are aborted in one group, because the abort of one waits for the device, where kernels of the
 * others may be waiting. It may also wait for members on this host to abort theirs, so it runs
 * without the lock, and nobody waits for it. Once comms->failed is set no other thread uses these
 * communicators. */
static void watch_abort(struct comm *list)
{
    ncclGroupStart();
    for (struct comm *comm = list; comm; comm = comm->next) {
        if (comm->handle)
            ncclCommAbort(comm->handle);
        comm->handle = NULL;
    }
    ncclGroupEnd();
}

/* Returns when comms->closing is set, or after it has aborted all communicators. */
static void *comms_watch(void *context)
{
    struct comms *comms = context;
    struct error err;
    int rc = comms->accelerator->bind(comms->device, &err);
    pthread_mutex_lock(&comms->lock);
    if (rc < 0)
        comms_end(comms, rc, &err);
    while (!comms->closing && !comms->failed) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_nsec += WATCH_NS;
        next.tv_sec += next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&comms->changed, &comms->lock, &next);
        if (!comms->closing && !comms->failed)
            watch_all(comms);
    }
    bool failed = comms->failed != 0;
    struct comm *list = comms->list;
    pthread_mutex_unlock(&comms->lock);
    if (failed)
        watch_abort(list);
    return NULL;
}

int comms_check(struct comms *comms, struct error *err)
{
    pthread_mutex_lock(&comms->lock);
    if (!comms->failed)
        watch_comms(comms);
    int rc = comms_failed(comms, err);
    pthread_mutex_unlock(&comms->lock);
    return rc;
}

/* ---- opening and closing ---- */

static void comms_finish(struct comms *comms)
{
    comms->accelerator->stream_close(comms->stream);
    comms->accelerator->release(comms->word);
    pthread_cond_destroy(&comms->changed);
    pthread_mutex_destroy(&comms->lock);
}

int comms_open(struct comms *comms, const struct fabric_config *config, struct error *err)
{
    pthread_condattr_t attributes;
    *comms = (struct comms){.accelerator = config->accelerator,
                            .rendezvous = config->rendezvous,
                            .rank = config->rank,
                            .count = config->count,
                            .device = config->accelerator->bound(),
                            .timeout_s = config->timeout_s};
    pthread_mutex_init(&comms->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&comms->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    int rc = comms->accelerator->reserve(WORD_BYTES, &comms->word, err);
    if (rc == 0)
        rc = comms->accelerator->stream_open(&comms->stream, false, err);
    if (rc == 0 && (rc = -pthread_create(&comms->watch, NULL, comms_watch, comms)) < 0)
        error_set(err, rc, "nccl: no thread to watch it: %s", strerror(-rc));
    if (rc < 0)
        comms_finish(comms);
    return rc;
}

/* No exchange is under way any more. */
static void comm_leave(struct comm *comm)
{
    if (comm->handle)
        ncclCommDestroy(comm->handle);
    free(comm->name);
}

void comms_close(struct comms *comms)
{
    pthread_mutex_lock(&comms->lock);
    comms->closing = true;
    pthread_cond_broadcast(&comms->changed);
    pthread_mutex_unlock(&comms->lock);
    pthread_join(comms->watch, NULL);
    for (struct comm *comm = comms->list; comm; comm = comm->next)
        comm_leave(comm);
    for (size_t i = 0; i < comms->flight_count; i++) {
        comms->accelerator->event_destroy(comms->flights[i]->begun);
        comms->accelerator->event_destroy(comms->flights[i]->ended);
        free(comms->flights[i]);
    }
    free(comms->flights);
    comms_finish(comms);
}

/* ---- joining ---- */

/* Exchange the id of a new communicator: its first member creates it, the others get it. */
static int comm_meet(struct comms *comms, const struct comm *comm, const char *key,
                     ncclUniqueId *id, struct error *err)
{
    const struct rendezvous *rendezvous = comms->rendezvous;
    size_t size = sizeof *id;
    if (comm->me != 0) {
        int rc = rendezvous->get(rendezvous->context, key, id, &size, err);
        bool whole = rc < 0 || size == sizeof *id;
        return whole ? rc
                     : error_set(err, -EPROTO,
                                 "group %s: its first member's id has %zu bytes, not %zu: are the "
                                 "versions of NCCL different?",
                                 comm->name, size, sizeof *id);
    }
    ncclResult_t result = ncclGetUniqueId(id);
    if (result != ncclSuccess)
        return comm_explain(comms, result, "meeting", comm, err);
    return rendezvous->put(rendezvous->context, key, id, sizeof *id, err);
}

static void pause_since(double begin)
{
    const struct timespec pause = {0, POLL_NS};
    if (clock_s() < begin + EAGER_S)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* Wait until the host's part of an operation that `result` says is in progress has ended; fails all
 * after limit_s. Called with the lock held, which is released while waiting. */
static int settle(struct comms *comms, struct comm *comm, const char *call, ncclResult_t result,
                  double limit_s, struct error *err)
{
    double begin = clock_s(), until = begin + limit_s;
    while (result == ncclInProgress && !comms->failed) {
        pthread_mutex_unlock(&comms->lock);
        pause_since(begin);
        pthread_mutex_lock(&comms->lock);
        if (!comms->failed)
            result = comm_state(comm);
        if (result == ncclInProgress && clock_s() > until) {
            struct error cause;
            comms_end(comms,
                      error_set(&cause, -ETIMEDOUT,
                                "%s in group %s: a member has not come within %g s", call,
                                comm->name, limit_s),
                      &cause);
        }
    }
    if (comms->failed)
        return comms_failed(comms, err);
    return result == ncclSuccess ? 0 : comms_fail_by(comms, result, call, comm, err);
}

int comm_join(struct comms *comms, struct comm *comm, const int *ranks, int count, const char *key,
              struct error *err)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    int rc = collective_members_check(ranks, count, comms->rank, comms->count, &comm->me, err);
    if (rc < 0)
        return rc;
    comm->count = count;
    comm->name = collective_members_print(ranks, count);
    rc = comm_meet(comms, comm, key, &id, err);
    pthread_mutex_lock(&comms->lock);
    comm->next = comms->list; /* from here on closed with the others */
    comms->list = comm;
    if (rc == 0)
        rc = comms_failed(comms, err);
    if (rc == 0)
        rc = settle(comms, comm, "joining",
                    ncclCommInitRankConfig(&comm->handle, count, id, comm->me, &config),
                    comms->timeout_s, err);
    pthread_mutex_unlock(&comms->lock);
    return rc;
}

/* ---- issuing ---- */

/* Take an entry that is not in use, or a new one. */
static int find_flight(struct comms *comms, struct flight **out, struct error *err)
{
    for (size_t i = 0; i < comms->flight_count; i++)
        if (!comms->flights[i]->under_way) {
            *out = comms->flights[i];
            (*out)->under_way = true;
            return 0;
        }
    struct flight *flight = xcalloc(1, sizeof *flight);
    comms->flights =
        grow(comms->flights, comms->flight_count, &comms->flight_capacity, sizeof(struct flight *));
    comms->flights[comms->flight_count++] = flight;
    int rc = comms->accelerator->event_create(&flight->begun, err);
    if (rc == 0)
        rc = comms->accelerator->event_create(&flight->ended, err);
    flight->under_way = true;
    *out = flight;
    return rc;
}

static int issue_now(struct comms *comms, struct comm *comm, const struct flight *flight,
                     comm_issue_fn *issue, const void *arguments, struct error *err)
{
    ncclResult_t result = ncclGroupStart();
    if (result == ncclSuccess)
        result = issue(comm, comms->accelerator->native(), arguments);
    ncclResult_t ended = ncclGroupEnd();
    if (nccl_goes_on(result))
        result = ended;
    return settle(comms, comm, flight->call, result, flight->limit_s, err);
}

/* In comm_greet(), greetings is already one ahead of calls. */
static double limit_of(const struct comms *comms, const struct comm *comm)
{
    return comms->timeout_s * (comm->calls == comm->greetings ? FIRST_FACTOR : 1);
}

/* Setting an event blocks while the queue of the stream is full, possibly of work that waits for a
 * peer that is gone. The lock is not held then, because the watch needs it to end that work. */
int comm_call(struct comms *comms, struct comm *comm, const char *call, comm_issue_fn *issue,
              const void *arguments, struct error *err)
{
    const struct accelerator *accelerator = comms->accelerator;
    struct flight *flight = NULL;
    pthread_mutex_lock(&comms->lock);
    int rc = find_flight(comms, &flight, err);
    if (rc == 0)
        *flight = (struct flight){.begun = flight->begun,
                                  .ended = flight->ended,
                                  .call = call,
                                  .comm = comm,
                                  .limit_s = limit_of(comms, comm),
                                  .under_way = true};
    comm->calls++;
    pthread_mutex_unlock(&comms->lock);
    if (rc < 0)
        return rc;
    accelerator->event_set(flight->begun);
    pthread_mutex_lock(&comms->lock);
    rc = comms_failed(comms, err);
    if (rc == 0)
        rc = issue_now(comms, comm, flight, issue, arguments, err);
    pthread_mutex_unlock(&comms->lock);
    if (rc == 0)
        accelerator->event_set(flight->ended);
    pthread_mutex_lock(&comms->lock);
    flight->issued = rc == 0;
    flight->under_way = rc == 0;
    pthread_mutex_unlock(&comms->lock);
    return rc;
}

int comm_greet(struct comms *comms, struct comm *comm, comm_issue_fn *issue, const void *arguments,
               struct error *err)
{
    const struct accelerator *accelerator = comms->accelerator;
    struct device_stream *here = accelerator->inside();
    accelerator->enter(comms->stream);
    comm->greetings++;
    int rc = comm_call(comms, comm, "greeting", issue, arguments, err);
    if (rc == 0)
        rc = accelerator->finish(err);
    if (rc == 0)
        rc = comms_check(comms, err);
    accelerator->enter(here);
    return rc;
}
