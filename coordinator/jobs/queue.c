/* queue.c - who gets free devices: first in, first out, whole devices, one kind per job.
 *
 * The queue is walked in the order of submission, but jobs whose executors have stayed come first.
 * If a job could run on a kind of device in an idle cluster but not now, it reserves that kind from
 * all jobs behind it, so that large jobs are not starved by small ones. A job that could not run
 * even then, or that is held, reserves nothing. The number of devices granted does not depend on
 * their speed, so nobody waits for faster ones; offer.c chooses which.
 *
 * A job that came with a plan that names devices is granted exactly these.
 *
 * A held job is granted nothing unless executors of it have stayed: those keep what it has learned
 * for a few minutes only, and for no other job. It moves, and pauses again after its first step
 * there. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/jobs/internal.h"
#include "coordinator/jobs/machine.h"
#include "coordinator/jobs/offer.h"

#define KINDS 2 /* values of enum hardware_kind */

struct pool {
    unsigned total; /* devices that may become free some day: of workers that do not drain */
    unsigned free;
    const struct job *keeper; /* the first job that waits for this kind */
};

struct queue {
    struct offer offer;
    struct pool pools[KINDS];
    uint64_t now_ms;
    struct job_actions *actions;
};

static void fill_pools(struct queue *queue)
{
    const struct offer *offer = &queue->offer;
    for (size_t i = 0; i < offer->count; i++) {
        struct pool *pool = &queue->pools[offer->devices[i].device->kind];
        pool->total += offer->devices[i].draining ? 0 : 1;
        pool->free += offer_is_free(offer, i) ? 1 : 0;
    }
}

/* Takes ownership of ranks, which has room for those that give. */
static void give(struct queue *queue, struct job *job, struct job_rank *ranks, size_t count)
{
    struct job_cause none = {JOB_REASON_NONE, ""};
    count += offer_take_draining(&queue->offer, job, ranks + count);
    free(job->ranks);
    job->ranks = ranks;
    job->rank_count = count;
    job_fire(job, TRIGGER_GRANTED, &none, queue->now_ms, queue->actions);
}

static void grant(struct queue *queue, struct job *job, enum hardware_kind kind)
{
    struct pool *pool = &queue->pools[kind];
    unsigned wanted = pool->free < job->devices_max ? pool->free : job->devices_max;
    pool->free -= wanted;
    struct job_rank *ranks = xcalloc(wanted + job->rank_count, sizeof *ranks);
    offer_take_best(&queue->offer, job, kind, wanted, ranks);
    give(queue, job, ranks, wanted);
}

/* A new reason is stored so that it is shown; new words for the same reason are only kept in
 * memory. */
static void wait_because(struct queue *queue, struct job *job, const struct job_cause *cause)
{
    struct job_cause again;
    job_cause_set(&again, cause->reason, "%s; %s", cause->words, job->again);
    if (job_wait_because(job, job->again[0] ? &again : cause))
        job_act(job, JOB_ACTION_STORE, queue->actions);
}

static bool may_use(const struct job *job, enum hardware_kind kind)
{
    return job->kind == JOB_ANY || job->kind == (kind == HARDWARE_GPU ? JOB_GPU : JOB_CPU);
}

/* As in "2 GPUs"; a job that accepts any kind still gets only one. */
static const char *count_words(const struct job *job, char *out, size_t size)
{
    static const char *const one[] = {
        [JOB_ANY] = "device", [JOB_CPU] = "CPU device", [JOB_GPU] = "GPU"};
    static const char *const more[] = {
        [JOB_ANY] = "devices of one kind", [JOB_CPU] = "CPU devices", [JOB_GPU] = "GPUs"};
    unsigned count = job->devices_needed;
    snprintf(out, size, "%u %s", count, count == 1 ? one[job->kind] : more[job->kind]);
    return out;
}

/* "2 nodes with 4 devices are drained: ...", of the kinds that the job may use; "": none are. */
static const char *drained_words(const struct offer *offer, const struct job *job, char *out,
                                 size_t size)
{
    unsigned nodes = 0, devices = 0;
    for (size_t first = 0; first < offer->count; first = offer_worker_end(offer, first)) {
        unsigned own = 0;
        for (size_t i = first; i < offer_worker_end(offer, first); i++)
            own += offer->devices[i].draining && may_use(job, offer->devices[i].device->kind);
        nodes += own > 0;
        devices += own;
    }
    out[0] = '\0';
    if (nodes > 0)
        snprintf(out, size,
                 "%u node%s with %u device%s %s drained: 'gimbal undrain NODE' gives one back",
                 nodes, nodes == 1 ? "" : "s", devices, devices == 1 ? "" : "s",
                 nodes == 1 ? "is" : "are");
    return out;
}

static void too_few(struct queue *queue, struct job *job, unsigned most)
{
    struct job_cause cause;
    char needed[64], drained[128];
    count_words(job, needed, sizeof needed);
    drained_words(&queue->offer, job, drained, sizeof drained);
    const char *also = drained[0] ? "; " : "";
    if (most == 0 && drained[0])
        job_cause_set(&cause, JOB_REASON_NO_DEVICES, "it needs %s, and %s", needed, drained);
    else if (most == 0)
        job_cause_set(&cause, JOB_REASON_NO_DEVICES, "it needs %s, but no worker offers any",
                      needed);
    else if (job->devices_needed > job->devices_min)
        job_cause_set(&cause, JOB_REASON_INFEASIBLE_MEMORY,
                      "its memory needs %s, but the cluster has only %u%s%s", needed, most, also,
                      drained);
    else
        job_cause_set(&cause, JOB_REASON_TOO_FEW_DEVICES,
                      "it needs %s, but the cluster has only %u%s%s", needed, most, also, drained);
    wait_because(queue, job, &cause);
}

/* Nothing for this job now: reserve the kinds that it could use some day and that nobody has
 * reserved. */
static void keep_waiting(struct queue *queue, struct job *job, const bool *possible)
{
    struct job_cause cause;
    char needed[64];
    unsigned free_count = 0, total = 0;
    const struct job *keeper = NULL;
    bool next = false;
    for (int kind = 0; kind < KINDS; kind++) {
        struct pool *pool = &queue->pools[kind];
        if (!possible[kind])
            continue;
        if (pool->keeper) {
            keeper = pool->keeper;
            continue;
        }
        pool->keeper = job;
        next = true;
        free_count = pool->free > free_count ? pool->free : free_count;
        total = pool->total > total ? pool->total : total;
    }
    if (next)
        job_cause_set(&cause, JOB_REASON_DEVICES_BUSY, "it needs %s; %u of %u are free",
                      count_words(job, needed, sizeof needed), free_count, total);
    else
        job_cause_set(&cause, JOB_REASON_WAITING_FOR_OTHERS, "it is behind %s", keeper->id);
    wait_because(queue, job, &cause);
}

static void stay_held(struct queue *queue, struct job *job)
{
    struct job_cause held;
    job_cause_set(&held, JOB_REASON_HELD, "held by %s", job->held);
    wait_because(queue, job, &held);
}

/* Explain why the job cannot have the device that its plan names. */
static void refuse_named(const struct offer *offer, const char *name, size_t length, size_t device,
                         struct job_cause *cause)
{
    bool there = device < offer->count;
    const struct device_view *view = &offer->devices[there ? device : 0];
    const char *why = !there            ? "no worker offers"
                      : view->holder[0] ? view->holder
                      : view->draining  ? "is on a drained node"
                      : view->grantable ? "an earlier job waits for"
                                        : "is on a node that does not respond";
    job_cause_set(cause, there ? JOB_REASON_DEVICES_BUSY : JOB_REASON_NO_DEVICES,
                  "its plan is for %.*s, which %s%s", (int)length, name, why,
                  there && view->holder[0] ? " has" : "");
}

/* A job whose plan names devices gets exactly these or none. Those that are free are reserved for
 * it, and nothing else is. */
static void consider_named(struct queue *queue, struct job *job)
{
    struct offer *offer = &queue->offer;
    struct job_cause cause = {JOB_REASON_NONE, ""};
    struct job_rank *ranks = xcalloc(job->devices_min + job->rank_count, sizeof *ranks);
    size_t count = 0;
    for (const char *name = job->named, *next; *name; name = next) {
        size_t length = strcspn(name, "\n"), i = offer_named(offer, name, length);
        next = name + length + (name[length] == '\n');
        bool there = i < offer->count;
        enum hardware_kind kind = there ? offer->devices[i].device->kind : HARDWARE_CPU;
        if (!there || !offer_is_free(offer, i)) {
            refuse_named(offer, name, length, i, &cause);
            continue;
        }
        if (queue->pools[kind].keeper && cause.reason == JOB_REASON_NONE)
            job_cause_set(&cause, JOB_REASON_WAITING_FOR_OTHERS, "it is behind %s",
                          queue->pools[kind].keeper->id);
        queue->pools[kind].free--;
        assert(count < job->devices_min);
        ranks[count++] = offer_take(offer, job, i);
    }
    if (cause.reason == JOB_REASON_NONE) {
        give(queue, job, ranks, count);
        return;
    }
    free(ranks);
    if (job->held[0])
        stay_held(queue, job);
    else
        wait_because(queue, job, &cause);
}

static void consider(struct queue *queue, struct job *job)
{
    bool possible[KINDS];
    unsigned most = 0, possible_count = 0;
    if (job->held[0] && !job_left_executors(job)) {
        stay_held(queue, job);
        return;
    }
    if (job->named[0]) {
        consider_named(queue, job);
        return;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        const struct pool *pool = &queue->pools[kind];
        bool allowed = may_use(job, (enum hardware_kind)kind);
        most = allowed && pool->total > most ? pool->total : most;
        possible[kind] = allowed && pool->total >= job->devices_needed;
        possible_count += possible[kind] ? 1 : 0;
    }
    for (int kind = KINDS - 1; kind >= 0; kind--) { /* GPUs first */
        const struct pool *pool = &queue->pools[kind];
        if (possible[kind] && !pool->keeper && pool->free >= job->devices_needed) {
            grant(queue, job, (enum hardware_kind)kind);
            return;
        }
    }
    if (job->held[0])
        stay_held(queue, job);
    else if (possible_count == 0)
        too_few(queue, job, most);
    else
        keep_waiting(queue, job, possible);
}

void jobs_schedule(struct jobs *jobs, const struct device_view *devices, size_t device_count,
                   uint64_t now_ms, struct job_actions *actions)
{
    struct queue queue = {.now_ms = now_ms, .actions = actions};
    offer_init(&queue.offer, devices, device_count);
    fill_pools(&queue);
    for (size_t i = 0; i < jobs->count; i++)
        if (job_left_executors(jobs->items[i]))
            consider(&queue, jobs->items[i]);
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i]->state == JOB_PENDING && !job_left_executors(jobs->items[i]))
            consider(&queue, jobs->items[i]);
    offer_finish(&queue.offer);
}
