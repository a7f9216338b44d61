/* nccl_comm.c - opening and closing, joining communicators, issuing exchanges. */
#include "worker/collectives/nccl_comm.h"

#include "common/base/memory.h"
#include "worker/collectives/members.h"

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

/* ---- opening and closing ---- */

static void finish(struct comms *comms)
{
    comms->accelerator->lane_close(comms->lane);
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
        rc = comms->accelerator->lane_open(&comms->lane, false, err);
    if (rc == 0 && (rc = -pthread_create(&comms->watch, NULL, comms_watch, comms)) < 0)
        error_set(err, rc, "nccl: no thread to watch it: %s", strerror(-rc));
    if (rc < 0)
        finish(comms);
    return rc;
}

/* No exchange is under way any more. */
static void leave(struct comm *comm)
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
        leave(comm);
    for (size_t i = 0; i < comms->flight_count; i++) {
        comms->accelerator->mark_destroy(comms->flights[i]->begun);
        comms->accelerator->mark_destroy(comms->flights[i]->ended);
        free(comms->flights[i]);
    }
    free(comms->flights);
    finish(comms);
}

/* ---- joining ---- */

/* Exchange the id of a new communicator: its first member creates it, the others get it. */
static int meet(struct comms *comms, const struct comm *comm, const char *key, ncclUniqueId *id,
                struct error *err)
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
    if (comms_now() < begin + EAGER_S)
        sched_yield();
    else
        nanosleep(&pause, NULL);
}

/* Wait until the host's part of an operation that `result` says is in progress has ended; fails all
 * after limit_s. Called with the lock held, which is released while waiting. */
static int settle(struct comms *comms, struct comm *comm, const char *call, ncclResult_t result,
                  double limit_s, struct error *err)
{
    double begin = comms_now(), until = begin + limit_s;
    while (result == ncclInProgress && !comms->failed) {
        pthread_mutex_unlock(&comms->lock);
        pause_since(begin);
        pthread_mutex_lock(&comms->lock);
        if (!comms->failed)
            result = comm_state(comm);
        if (result == ncclInProgress && comms_now() > until) {
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
    rc = meet(comms, comm, key, &id, err);
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
    int rc = comms->accelerator->mark_create(&flight->begun, err);
    if (rc == 0)
        rc = comms->accelerator->mark_create(&flight->ended, err);
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

/* Setting a mark blocks while the queue of the lane is full, possibly of work that waits for a peer
 * that is gone. The lock is not held then, because the watch needs it to end that work. */
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
    accelerator->mark_set(flight->begun);
    pthread_mutex_lock(&comms->lock);
    rc = comms_failed(comms, err);
    if (rc == 0)
        rc = issue_now(comms, comm, flight, issue, arguments, err);
    pthread_mutex_unlock(&comms->lock);
    if (rc == 0)
        accelerator->mark_set(flight->ended);
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
    struct lane *here = accelerator->inside();
    accelerator->enter(comms->lane);
    comm->greetings++;
    int rc = comm_call(comms, comm, "greeting", issue, arguments, err);
    if (rc == 0)
        rc = accelerator->finish(err);
    if (rc == 0)
        rc = comms_check(comms, err);
    accelerator->enter(here);
    return rc;
}
