/* nccl_watch.c - the watch: the thread that looks for errors and exceeded limits, describes them,
 * and aborts all communicators. */
#include "worker/collectives/nccl_comm.h"

#include <errno.h>
#include <time.h>

#define WATCH_NS 50000000 /* between two polls of all communicators */
/* Less free device memory than this is too little: NCCL reserves tens of MiB at a time. */
#define SCARCE_BYTES (UINT64_C(128) << 20)

double comms_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* NCCL reports a failed allocation in the same way as a device that failed, so the free memory has
 * to tell them apart. */
static bool is_scarce(const struct comms *comms)
{
    struct error err;
    uint64_t room;
    return comms->accelerator->room(&room, &err) == 0 && room < SCARCE_BYTES;
}

int comm_explain(const struct comms *comms, ncclResult_t result, const char *call,
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

void comms_end(struct comms *comms, int rc, const struct error *cause)
{
    if (comms->failed)
        return;
    comms->failed = rc;
    comms->failure = *cause;
    pthread_cond_broadcast(&comms->changed); /* the watch aborts them */
}

int comms_failed(const struct comms *comms, struct error *err)
{
    if (comms->failed && err)
        *err = comms->failure;
    return comms->failed;
}

int comms_fail_by(struct comms *comms, ncclResult_t result, const char *call,
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
 * query gets the error as its own return value, and not as the state. */
ncclResult_t comm_state(const struct comm *comm)
{
    ncclResult_t state = ncclSuccess;
    ncclResult_t told = ncclCommGetAsyncError(comm->handle, &state);
    return told == ncclSuccess ? state : told;
}

static void look_at_comms(struct comms *comms)
{
    for (struct comm *comm = comms->list; comm && !comms->failed; comm = comm->next) {
        ncclResult_t state = comm->handle ? comm_state(comm) : ncclSuccess;
        if (!nccl_goes_on(state))
            comms_fail_by(comms, state, "an exchange", comm, NULL);
    }
}

/* Check an exchange against its limit, which counts from when its turn in the lane came. */
static void look_at(struct comms *comms, struct flight *flight, double time_s)
{
    struct error cause;
    const struct accelerator *accelerator = comms->accelerator;
    if (!flight->issued)
        return;
    if (accelerator->mark_passed(flight->ended))
        flight->under_way = false;
    else if (flight->since_s == 0 && accelerator->mark_passed(flight->begun))
        flight->since_s = time_s;
    else if (flight->since_s > 0 && time_s - flight->since_s > flight->limit_s)
        comms_end(comms,
                  error_set(&cause, -ETIMEDOUT, "%s in group %s: not done within %g s",
                            flight->call, flight->comm->name, flight->limit_s),
                  &cause);
}

static void look(struct comms *comms)
{
    double time_s = comms_now();
    look_at_comms(comms);
    for (size_t i = 0; i < comms->flight_count && !comms->failed; i++)
        if (comms->flights[i]->under_way)
            look_at(comms, comms->flights[i], time_s);
}

/* All are aborted in one group, because the abort of one waits for the device, where kernels of the
 * others may be waiting. It may also wait for members on this host to abort theirs, so it runs
 * without the lock, and nobody waits for it. Once comms->failed is set no other thread uses these
 * communicators. */
static void abort_all(struct comm *list)
{
    ncclGroupStart();
    for (struct comm *comm = list; comm; comm = comm->next) {
        if (comm->handle)
            ncclCommAbort(comm->handle);
        comm->handle = NULL;
    }
    ncclGroupEnd();
}

void *comms_watch(void *context)
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
            look(comms);
    }
    bool failed = comms->failed != 0;
    struct comm *list = comms->list;
    pthread_mutex_unlock(&comms->lock);
    if (failed)
        abort_all(list);
    return NULL;
}

int comms_check(struct comms *comms, struct error *err)
{
    pthread_mutex_lock(&comms->lock);
    if (!comms->failed)
        look_at_comms(comms);
    int rc = comms_failed(comms, err);
    pthread_mutex_unlock(&comms->lock);
    return rc;
}
