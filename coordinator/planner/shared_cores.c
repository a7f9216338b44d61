/* shared_cores.c - see shared_cores.h.
 *
 * A search takes a device to be equally fast in all plans. That holds for plans on 1 to n of the
 * first devices as long as none of these shares cores with another, and for plans on exactly n
 * otherwise. So numbers of devices are divided into such ranges, and most requests have one. */
#include "coordinator/planner/shared_cores.h"

#include "common/base/memory.h"
#include "common/hardware/hardware.h"
#include "coordinator/planner/confirm.h"
#include "coordinator/planner/costs/hosts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The part of a device's cores that another one uses as well. */
static double overlap(const struct planner_device *device, const struct planner_device *other)
{
    bool both = device->cores && other->cores && hosts_same(device, other);
    return both ? hardware_overlap(device->cores, other->cores) : 0;
}

/* How many ranks compute on a device's cores while the first `count` devices are used: at least the
 * one on the device itself. */
static double count_sharers(const struct planner_device *devices, int count, int device)
{
    double sharers = 1 + devices[device].others;
    for (int i = 0; i < count && devices[device].cores; i++)
        sharers += i == device ? 0 : overlap(&devices[device], &devices[i]);
    return sharers;
}

/* The profile of a device that is so many times slower. Equally fast devices share one: the planner
 * recognizes them by its address. */
static const struct profile *slow_down(struct shared_cores *used, const struct profile *profile,
                                       double factor)
{
    if (!(factor > 1))
        return profile;
    struct profile slower = *profile;
    profile_slow_down(&slower, factor);
    for (int i = 0; i < used->profile_count; i++)
        if (profile_equal(&used->profiles[i], &slower))
            return &used->profiles[i];
    used->profiles[used->profile_count] = slower;
    return &used->profiles[used->profile_count++];
}

void shared_cores_init(struct shared_cores *used, const struct planner_device *devices, int count)
{
    *used = (struct shared_cores){
        .devices = xcalloc((size_t)count, sizeof *used->devices),
        .count = count,
        .profiles = xcalloc((size_t)count, sizeof *used->profiles),
    };
    for (int i = 0; i < count; i++) {
        used->devices[i] = devices[i];
        used->devices[i].profile =
            slow_down(used, devices[i].profile, count_sharers(devices, count, i));
        used->devices[i].cores = NULL; /* has been counted */
        used->devices[i].others = 0;
    }
}

void shared_cores_finish(struct shared_cores *used)
{
    free(used->devices);
    free(used->profiles);
    *used = (struct shared_cores){0};
}

/* The largest number of devices up to `most` for which these are as fast as with `least`. */
static int end_range(const struct planner_request *request, int least, int most)
{
    int end = least;
    for (; end < most; end++)
        for (int i = 0; i < end; i++)
            if (overlap(&request->devices[i], &request->devices[end]) > 0)
                return end;
    return end;
}

static int search_range(const struct search *search, const struct planner_request *request,
                        int least, int most, struct planner_result *out, struct error *err)
{
    struct shared_cores used;
    struct job_config job = *request->job;
    struct planner_request ask = *request;
    shared_cores_init(&used, request->devices, most);
    job.devices.min = least;
    job.devices.max = most;
    ask.job = &job;
    ask.devices = used.devices;
    ask.device_count = most;
    int rc = search->run(&ask, out, err);
    shared_cores_finish(&used);
    return rc;
}

/* What was proved so far, of all ranges together. */
struct proof {
    double least_s, formula_best_s, formula_least_s;
    char roles[sizeof((struct plan *)0)->predicted.roles];
    bool none; /* of a range in which a plan fits, nothing is proved */
};

/* The least step by the formula, of the candidates that fit. The search's own best by the formula
 * is among them; the fastest by simulation may be another. */
static double least_formula(const struct planner_result *range)
{
    double least_s = INFINITY;
    for (size_t i = 0; i < range->count; i++) {
        double formula_s = range->candidates[i].plan->predicted.formula_s;
        if (range->candidates[i].fits && formula_s > 0)
            least_s = fmin(least_s, formula_s);
    }
    return least_s;
}

/* Take over what the search proved of a range, which it noted in its best plan. */
static void take_proof(struct proof *proof, const struct planner_result *range, struct plan *best)
{
    if (!best)
        return;
    double formula_s = least_formula(range);
    proof->none = proof->none || !(best->predicted.lower_bound_s > 0);
    proof->least_s = fmin(proof->least_s, best->predicted.lower_bound_s);
    proof->formula_best_s = fmin(proof->formula_best_s, formula_s);
    proof->formula_least_s =
        fmin(proof->formula_least_s, formula_s / (1 + best->predicted.formula_gap));
    if (best->predicted.roles[0])
        memcpy(proof->roles, best->predicted.roles, sizeof proof->roles);
    best->predicted.lower_bound_s = best->predicted.gap = best->predicted.formula_gap = 0;
    best->predicted.roles[0] = '\0';
}

static void give_proof(const struct proof *proof, struct plan *best)
{
    if (!best || proof->none)
        return;
    best->predicted.lower_bound_s = fmin(proof->least_s, best->predicted.step_time_s);
    best->predicted.gap = best->predicted.step_time_s / best->predicted.lower_bound_s - 1;
    best->predicted.formula_gap = proof->formula_best_s / proof->formula_least_s - 1;
    memcpy(best->predicted.roles, proof->roles, sizeof best->predicted.roles);
}

static void append(struct planner_result *out, struct planner_result *more)
{
    for (size_t i = 0; i < more->count; i++)
        planner_add(out, &more->candidates[i]);
    out->looked_at += more->looked_at ? more->looked_at : more->count;
    more->count = 0; /* the plans belong to the other result now */
    planner_result_finish(more);
}

/* Search each range, without looking for what would fit where nothing does. Returns the end of the
 * last range of which more memory might make something fit; 0: there is none. */
static int search_ranges(const struct search *search, const struct planner_request *request,
                         int least, int most, struct planner_result *out)
{
    enum job_objective objective = request->job->plan.objective;
    struct proof proof = {INFINITY, INFINITY, INFINITY, "", false};
    int scarce = 0;
    bool enough = false;
    for (int end; least <= most && !enough && !planner_stopped(request); least = end + 1) {
        struct planner_result range = {0};
        end = end_range(request, least, most);
        int rc = search_range(search, request, least, end, &range, NULL);
        struct plan *best = rc == 0 ? confirm_best(&range, 0) : NULL;
        scarce = !best && rc != -EINVAL ? end : scarce;
        enough = best && (request->any || objective == JOB_DEVICES);
        take_proof(&proof, &range, best);
        append(out, &range);
    }
    struct plan *best = confirm_best(out, 0);
    give_proof(&proof, best);
    if (best && objective == JOB_FRONTIER)
        confirm_alternatives(out, best);
    return scarce;
}

int shared_cores_search(const struct search *search, const struct planner_request *request,
                        struct planner_result *out, struct error *err)
{
    int least, most;
    planner_limits(request, &least, &most);
    if (end_range(request, least, most) == most)
        return search_range(search, request, least, most, out, err);
    int scarce = search_ranges(search, request, least, most, out);
    if (confirm_fits(out))
        return 0;
    planner_result_finish(out);
    most = scarce ? scarce : most;
    while (end_range(request, least, most) < most)
        least = end_range(request, least, most) + 1;
    return search_range(search, request, least, most, out, err);
}
