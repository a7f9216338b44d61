/* queue.c - who gets free devices: first in, first out, whole devices, one kind per job.
 *
 * The queue is walked in the order of submission, but jobs whose executors have stayed come first.
 * If a job could run on a kind of device in an idle cluster but not now, it reserves that kind from
 * all jobs behind it, so that large jobs are not starved by small ones. A job that could not run
 * even then, or that is held, reserves nothing. The number of devices granted does not depend on
 * their speed, so nobody waits for faster ones.
 *
 * A job that came with a plan that names devices is granted exactly these.
 *
 * A held job is granted nothing unless executors of it have stayed: those keep what it has learned
 * for a few minutes only, and for no other job. It moves, and pauses again after its first step
 * there.
 *
 * Of the free devices of a kind a job takes first those that it had, because its state may still be
 * there. The others come from the fastest workers that have enough devices together, packed on as
 * few workers as possible, because links inside one are faster. Speeds are rounded to classes, so
 * that workers of about the same speed share one, whatever their probes measured exactly. */
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/jobs/internal.h"
#include "coordinator/jobs/job.h"

/* Seconds per flop, including the current slowdown; 0: unknown. */
static double device_pace(const struct device_view *view)
{
    return view->device->flops > 0 ? fmax(view->slowdown, 1) / view->device->flops : 0;
}

/* Devices [first, end) belong to one worker: each counts as fast as the slowest of its kind there,
 * for which all would wait. */
static void find_paces(const struct device_view *devices, size_t first, size_t end, double *paces)
{
    for (size_t i = first; i < end; i++)
        for (size_t j = first; j < end; j++)
            if (devices[j].device->kind == devices[i].device->kind)
                paces[i] = fmax(paces[i], device_pace(&devices[j]));
}

static double least_pace(const struct device_view *devices, const double *paces, size_t count,
                         enum hardware_kind kind)
{
    double least = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (devices[i].device->kind == kind && paces[i] > 0)
            least = fmin(least, paces[i]);
    return least;
}

static int *speeds_classify(const struct device_view *devices, size_t count)
{
    int *classes = xcalloc(count, sizeof *classes);
    double *paces = xcalloc(count, sizeof *paces);
    for (size_t first = 0, end = 0; first < count; first = end) {
        while (end < count && strcmp(devices[end].ref.worker, devices[first].ref.worker) == 0)
            end++;
        find_paces(devices, first, end, paces);
    }
    for (int kind = HARDWARE_CPU; kind <= HARDWARE_GPU; kind++) {
        double least = least_pace(devices, paces, count, (enum hardware_kind)kind);
        for (size_t i = 0; i < count; i++)
            if (devices[i].device->kind == (enum hardware_kind)kind && paces[i] > 0)
                classes[i] = speed_class(paces[i], least);
    }
    free(paces);
    return classes;
}

/* The devices that workers offer during one walk of the queue. */

struct offer {
    const struct device_view *devices; /* lent; those of a worker are adjacent */
    size_t count;
    bool *taken;  /* during this walk */
    int *classes; /* as of speeds_classify() */
};

static void offer_init(struct offer *offer, const struct device_view *devices, size_t count)
{
    *offer = (struct offer){.devices = devices,
                            .count = count,
                            .taken = xcalloc(count, sizeof(bool)),
                            .classes = speeds_classify(devices, count)};
}

static void offer_finish(struct offer *offer)
{
    free(offer->taken);
    free(offer->classes);
}

static bool offer_is_free(const struct offer *offer, size_t device)
{
    const struct device_view *view = &offer->devices[device];
    return view->grantable && !view->holder[0] && !offer->taken[device];
}

static bool offer_has_free(const struct offer *offer, size_t device, enum hardware_kind kind)
{
    return offer->devices[device].device->kind == kind && offer_is_free(offer, device);
}

static size_t offer_worker_end(const struct offer *offer, size_t first)
{
    size_t end = first + 1;
    while (end < offer->count &&
           strcmp(offer->devices[end].ref.worker, offer->devices[first].ref.worker) == 0)
        end++;
    return end;
}

static size_t offer_named(const struct offer *offer, const char *name, size_t length)
{
    const char *slash = memrchr(name, '/', length);
    size_t worker = slash ? (size_t)(slash - name) : length, i = 0;
    unsigned long index = slash ? strtoul(slash + 1, NULL, 10) : ULONG_MAX;
    for (; i < offer->count; i++) {
        const struct device_ref *ref = &offer->devices[i].ref;
        if (ref->index == index && strncmp(ref->worker, name, worker) == 0 &&
            ref->worker[worker] == '\0')
            break;
    }
    return i;
}

/* The index of the device; count: its worker is gone. */
static size_t offer_find(const struct offer *offer, const struct device_ref *ref)
{
    size_t i = 0;
    while (i < offer->count && !device_ref_equal(&offer->devices[i].ref, ref))
        i++;
    return i;
}

static bool job_had(const struct job *job, const struct device_ref *ref)
{
    for (size_t i = 0; i < job->rank_count; i++)
        if (device_ref_equal(&job->ranks[i].device, ref))
            return true;
    return false;
}

static struct job_rank offer_take(struct offer *offer, const struct job *job, size_t device)
{
    const struct device_ref *ref = &offer->devices[device].ref;
    offer->taken[device] = true;
    return (struct job_rank){.device = *ref,
                             .role = job_had(job, ref) ? JOB_RANK_STAYED : JOB_RANK_TRAINS};
}

/* Take devices that the job had. Returns their number. */
static size_t offer_take_back(struct offer *offer, const struct job *job, enum hardware_kind kind,
                              size_t wanted, struct job_rank *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->rank_count && count < wanted; i++) {
        size_t device = offer_find(offer, &job->ranks[i].device);
        if (device < offer->count && offer_has_free(offer, device, kind))
            out[count++] = offer_take(offer, job, device);
    }
    return count;
}

/* The fastest speed class up to which there are `wanted` free devices of the kind. */
static int offer_find_class(const struct offer *offer, size_t wanted, enum hardware_kind kind)
{
    for (int class = 0, slower = 0;; class = slower) {
        size_t count = 0;
        slower = INT_MAX;
        for (size_t i = 0; i < offer->count; i++) {
            if (!offer_has_free(offer, i, kind))
                continue;
            count += offer->classes[i] <= class ? 1 : 0;
            if (offer->classes[i] > class && offer->classes[i] < slower)
                slower = offer->classes[i];
        }
        if (count >= wanted || slower == INT_MAX)
            return class;
    }
}

/* Count a worker's free devices of the kind that are no slower than the class; *own: their
 * class. */
static size_t offer_count_fast(const struct offer *offer, size_t first, enum hardware_kind kind,
                               int slowest, int *own)
{
    size_t count = 0;
    for (size_t i = first; i < offer_worker_end(offer, first); i++)
        if (offer_has_free(offer, i, kind) && offer->classes[i] <= slowest) {
            *own = offer->classes[i];
            count++;
        }
    return count;
}

/* Choose the worker from which to take `wanted` devices no slower than the class, given by its
 * first device: of those with enough devices the fastest, and of these the fullest; otherwise the
 * one with most. There is at least one free device. */
static size_t offer_choose_worker(const struct offer *offer, size_t wanted, enum hardware_kind kind,
                                  int slowest)
{
    size_t best = 0, best_free = 0;
    int best_class = 0;
    for (size_t first = 0; first < offer->count; first = offer_worker_end(offer, first)) {
        int class = 0;
        size_t count = offer_count_fast(offer, first, kind, slowest, &class);
        bool faster = class < best_class, as_fast = class == best_class;
        bool better = best_free >= wanted
                          ? count >= wanted && (faster || (as_fast && count < best_free))
                          : count > best_free || (count > 0 && count == best_free && faster);
        if (better) {
            best = first;
            best_free = count;
            best_class = class;
        }
    }
    return best;
}

static void offer_take_best(struct offer *offer, const struct job *job, enum hardware_kind kind,
                            unsigned wanted, struct job_rank *out)
{
    size_t count = offer_take_back(offer, job, kind, wanted, out);
    int slowest = offer_find_class(offer, wanted - count, kind);
    while (count < wanted) {
        size_t first = offer_choose_worker(offer, wanted - count, kind, slowest);
        size_t end = offer_worker_end(offer, first);
        for (size_t i = first; i < end && count < wanted; i++)
            if (offer_has_free(offer, i, kind))
                out[count++] = offer_take(offer, job, i);
    }
}

static size_t offer_take_draining(struct offer *offer, const struct job *job, struct job_rank *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct device_ref *job_had = &job->ranks[i].device;
        size_t device = offer_find(offer, job_had);
        if (device == offer->count || offer->taken[device])
            continue;
        const struct device_view *view = &offer->devices[device];
        if (!view->draining || view->holder[0])
            continue;
        offer->taken[device] = true;
        out[count++] = (struct job_rank){.device = *job_had, .role = JOB_RANK_GIVES};
    }
    return count;
}

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

static void queue_fill_pools(struct queue *queue)
{
    const struct offer *offer = &queue->offer;
    for (size_t i = 0; i < offer->count; i++) {
        struct pool *pool = &queue->pools[offer->devices[i].device->kind];
        pool->total += offer->devices[i].draining ? 0 : 1;
        pool->free += offer_is_free(offer, i) ? 1 : 0;
    }
}

/* Takes ownership of ranks, which has room for those that give. */
static void queue_give(struct queue *queue, struct job *job, struct job_rank *ranks, size_t count)
{
    struct job_cause none = {JOB_REASON_NONE, ""};
    count += offer_take_draining(&queue->offer, job, ranks + count);
    free(job->ranks);
    job->ranks = ranks;
    job->rank_count = count;
    job_fire(job, TRIGGER_GRANTED, &none, queue->now_ms, queue->actions);
}

static void queue_grant(struct queue *queue, struct job *job, enum hardware_kind kind)
{
    struct pool *pool = &queue->pools[kind];
    unsigned wanted = pool->free < job->devices_max ? pool->free : job->devices_max;
    pool->free -= wanted;
    struct job_rank *ranks = xcalloc(wanted + job->rank_count, sizeof *ranks);
    offer_take_best(&queue->offer, job, kind, wanted, ranks);
    queue_give(queue, job, ranks, wanted);
}

/* A new reason is stored so that it is shown; new words for the same reason are only kept in
 * memory. */
static void queue_wait_because(struct queue *queue, struct job *job, const struct job_cause *cause)
{
    struct job_cause again;
    job_cause_set(&again, cause->reason, "%s; %s", cause->words, job->again);
    if (job_wait_because(job, job->again[0] ? &again : cause))
        job_act(job, JOB_ACTION_STORE, queue->actions);
}

static bool job_may_use(const struct job *job, enum hardware_kind kind)
{
    return job->kind == JOB_ANY || job->kind == (kind == HARDWARE_GPU ? JOB_GPU : JOB_CPU);
}

/* As in "2 GPUs"; a job that accepts any kind still gets only one. */
static const char *queue_count_words(const struct job *job, char *out, size_t size)
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
static const char *queue_drained_words(const struct offer *offer, const struct job *job, char *out,
                                       size_t size)
{
    unsigned nodes = 0, devices = 0;
    for (size_t first = 0; first < offer->count; first = offer_worker_end(offer, first)) {
        unsigned own = 0;
        for (size_t i = first; i < offer_worker_end(offer, first); i++)
            own += offer->devices[i].draining && job_may_use(job, offer->devices[i].device->kind);
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

static void queue_too_few(struct queue *queue, struct job *job, unsigned most)
{
    struct job_cause cause;
    char needed[64], drained[128];
    queue_count_words(job, needed, sizeof needed);
    queue_drained_words(&queue->offer, job, drained, sizeof drained);
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
    queue_wait_because(queue, job, &cause);
}

/* Nothing for this job now: reserve the kinds that it could use some day and that nobody has
 * reserved. */
static void queue_keep_waiting(struct queue *queue, struct job *job, const bool *possible)
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
                      queue_count_words(job, needed, sizeof needed), free_count, total);
    else
        job_cause_set(&cause, JOB_REASON_WAITING_FOR_OTHERS, "it is behind %s", keeper->id);
    queue_wait_because(queue, job, &cause);
}

static void queue_stay_held(struct queue *queue, struct job *job)
{
    struct job_cause held;
    job_cause_set(&held, JOB_REASON_HELD, "held by %s", job->held);
    queue_wait_because(queue, job, &held);
}

/* Explain why the job cannot have the device that its plan names. */
static void queue_refuse_named(const struct offer *offer, const char *name, size_t length,
                               size_t device, struct job_cause *cause)
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
static void queue_consider_named(struct queue *queue, struct job *job)
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
            queue_refuse_named(offer, name, length, i, &cause);
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
        queue_give(queue, job, ranks, count);
        return;
    }
    free(ranks);
    if (job->held[0])
        queue_stay_held(queue, job);
    else
        queue_wait_because(queue, job, &cause);
}

static void queue_consider(struct queue *queue, struct job *job)
{
    bool possible[KINDS];
    unsigned most = 0, possible_count = 0;
    if (job->held[0] && !job_left_executors(job)) {
        queue_stay_held(queue, job);
        return;
    }
    if (job->named[0]) {
        queue_consider_named(queue, job);
        return;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        const struct pool *pool = &queue->pools[kind];
        bool allowed = job_may_use(job, (enum hardware_kind)kind);
        most = allowed && pool->total > most ? pool->total : most;
        possible[kind] = allowed && pool->total >= job->devices_needed;
        possible_count += possible[kind] ? 1 : 0;
    }
    for (int kind = KINDS - 1; kind >= 0; kind--) { /* GPUs first */
        const struct pool *pool = &queue->pools[kind];
        if (possible[kind] && !pool->keeper && pool->free >= job->devices_needed) {
            queue_grant(queue, job, (enum hardware_kind)kind);
            return;
        }
    }
    if (job->held[0])
        queue_stay_held(queue, job);
    else if (possible_count == 0)
        queue_too_few(queue, job, most);
    else
        queue_keep_waiting(queue, job, possible);
}

void jobs_schedule(struct jobs *jobs, const struct device_view *devices, size_t device_count,
                   uint64_t now_ms, struct job_actions *actions)
{
    struct queue queue = {.now_ms = now_ms, .actions = actions};
    offer_init(&queue.offer, devices, device_count);
    queue_fill_pools(&queue);
    for (size_t i = 0; i < jobs->count; i++)
        if (job_left_executors(jobs->items[i]))
            queue_consider(&queue, jobs->items[i]);
    for (size_t i = 0; i < jobs->count; i++)
        if (jobs->items[i]->state == JOB_PENDING && !job_left_executors(jobs->items[i]))
            queue_consider(&queue, jobs->items[i]);
    offer_finish(&queue.offer);
}
