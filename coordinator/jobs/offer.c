/* offer.c - which of the free devices of a kind a job takes.
 *
 * First those that it had, because its state may still be there. The others come from the fastest
 * workers that have enough devices together, packed on as few workers as possible, because links
 * inside one are faster. */
#include "coordinator/jobs/offer.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/jobs/speeds.h"

void offer_init(struct offer *offer, const struct device_view *devices, size_t count)
{
    *offer = (struct offer){.devices = devices,
                            .count = count,
                            .taken = xcalloc(count, sizeof(bool)),
                            .classes = speeds_classify(devices, count)};
}

void offer_finish(struct offer *offer)
{
    free(offer->taken);
    free(offer->classes);
}

bool offer_is_free(const struct offer *offer, size_t device)
{
    const struct device_view *view = &offer->devices[device];
    return view->grantable && !view->holder[0] && !offer->taken[device];
}

static bool is_free(const struct offer *offer, size_t device, enum hardware_kind kind)
{
    return offer->devices[device].device->kind == kind && offer_is_free(offer, device);
}

size_t offer_worker_end(const struct offer *offer, size_t first)
{
    size_t end = first + 1;
    while (end < offer->count &&
           strcmp(offer->devices[end].ref.worker, offer->devices[first].ref.worker) == 0)
        end++;
    return end;
}

size_t offer_named(const struct offer *offer, const char *name, size_t length)
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
static size_t find(const struct offer *offer, const struct device_ref *ref)
{
    size_t i = 0;
    while (i < offer->count && !device_ref_equal(&offer->devices[i].ref, ref))
        i++;
    return i;
}

static bool had(const struct job *job, const struct device_ref *ref)
{
    for (size_t i = 0; i < job->rank_count; i++)
        if (device_ref_equal(&job->ranks[i].device, ref))
            return true;
    return false;
}

struct job_rank offer_take(struct offer *offer, const struct job *job, size_t device)
{
    const struct device_ref *ref = &offer->devices[device].ref;
    offer->taken[device] = true;
    return (struct job_rank){.device = *ref,
                             .role = had(job, ref) ? JOB_RANK_STAYED : JOB_RANK_TRAINS};
}

/* Take devices that the job had. Returns their number. */
static size_t take_back(struct offer *offer, const struct job *job, enum hardware_kind kind,
                        size_t wanted, struct job_rank *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->rank_count && count < wanted; i++) {
        size_t device = find(offer, &job->ranks[i].device);
        if (device < offer->count && is_free(offer, device, kind))
            out[count++] = offer_take(offer, job, device);
    }
    return count;
}

/* The fastest speed class up to which there are `wanted` free devices of the kind. */
static int find_class(const struct offer *offer, size_t wanted, enum hardware_kind kind)
{
    for (int class = 0, slower = 0;; class = slower) {
        size_t count = 0;
        slower = INT_MAX;
        for (size_t i = 0; i < offer->count; i++) {
            if (!is_free(offer, i, kind))
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
static size_t count_fast(const struct offer *offer, size_t first, enum hardware_kind kind,
                         int slowest, int *own)
{
    size_t count = 0;
    for (size_t i = first; i < offer_worker_end(offer, first); i++)
        if (is_free(offer, i, kind) && offer->classes[i] <= slowest) {
            *own = offer->classes[i];
            count++;
        }
    return count;
}

/* Choose the worker from which to take `wanted` devices no slower than the class, given by its
 * first device: of those with enough devices the fastest, and of these the fullest; otherwise the
 * one with most. There is at least one free device. */
static size_t choose_worker(const struct offer *offer, size_t wanted, enum hardware_kind kind,
                            int slowest)
{
    size_t best = 0, best_free = 0;
    int best_class = 0;
    for (size_t first = 0; first < offer->count; first = offer_worker_end(offer, first)) {
        int class = 0;
        size_t count = count_fast(offer, first, kind, slowest, &class);
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

void offer_take_best(struct offer *offer, const struct job *job, enum hardware_kind kind,
                     unsigned wanted, struct job_rank *out)
{
    size_t count = take_back(offer, job, kind, wanted, out);
    int slowest = find_class(offer, wanted - count, kind);
    while (count < wanted) {
        size_t first = choose_worker(offer, wanted - count, kind, slowest);
        size_t end = offer_worker_end(offer, first);
        for (size_t i = first; i < end && count < wanted; i++)
            if (is_free(offer, i, kind))
                out[count++] = offer_take(offer, job, i);
    }
}

size_t offer_take_draining(struct offer *offer, const struct job *job, struct job_rank *out)
{
    size_t count = 0;
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct device_ref *had = &job->ranks[i].device;
        size_t device = find(offer, had);
        if (device == offer->count || offer->taken[device])
            continue;
        const struct device_view *view = &offer->devices[device];
        if (!view->draining || view->holder[0])
            continue;
        offer->taken[device] = true;
        out[count++] = (struct job_rank){.device = *had, .role = JOB_RANK_GIVES};
    }
    return count;
}
