/* consider.c - judges one candidate: lowers it for every rank and simulates a step. */
#include "common/base/memory.h"
#include "common/program/simulate.h"
#include "coordinator/planner/all_ranks.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/costs/site.h"
#include "coordinator/planner/planner.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Seconds of one micro-batch's forward and backward on a rank, without any waiting. */
static double micro_batch_seconds(const struct planner_request *request,
                                  const struct program *program)
{
    struct pricing pricing = pricing_plain(request);
    double seconds = 0;
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            seconds += pricing_seconds(&pricing, program, &program->instructions[i]);
    }
    return seconds;
}

static void fill_stages(const struct planner_request *request, struct program *const *programs,
                        struct candidate *candidate)
{
    struct plan *plan = candidate->plan;
    candidate->fits = true;
    for (int rank = 0; rank < plan_ranks(plan); rank++) {
        struct plan_stage *stage = &plan->stages[programs[rank]->stage];
        uint64_t bytes = program_bytes(programs[rank]) + request->devices[rank].library_bytes;
        stage->memory_bytes = bytes > stage->memory_bytes ? bytes : stage->memory_bytes;
        if (programs[rank]->rank == rank)
            stage->time_s = fmax(stage->time_s, micro_batch_seconds(request, programs[rank]));
        if (bytes > plan->predicted.memory_bytes_max)
            plan->predicted.memory_bytes_max = bytes;
        if (!candidate->fits || bytes <= site_memory_limit(request, rank))
            continue;
        candidate->fits = false;
        candidate->tight_rank = rank;
        candidate->tight_bytes = bytes;
    }
}

void planner_balance(struct plan *plan)
{
    double seconds = 0, longest = 0, bytes = 0, largest = 0;
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        double memory = (double)stage->memory_bytes;
        seconds += stage->time_s;
        bytes += memory;
        longest = stage->time_s > longest ? stage->time_s : longest;
        largest = memory > largest ? memory : largest;
    }
    plan->predicted.balance_time = seconds > 0 ? 1 - longest / seconds : 0;
    plan->predicted.balance_memory = bytes > 0 ? 1 - largest / bytes : 0;
}

/* Rank r of the plan runs on device r of the request. */
static void name_devices(const struct planner_request *request, struct plan *plan)
{
    plan_forget_devices(plan); /* a plan read from a file names its former devices */
    for (int i = 0, next = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        int count = mesh_count(&stage->mesh);
        stage->devices = xcalloc((size_t)count, sizeof *stage->devices);
        for (int rank = 0; rank < count; rank++)
            stage->devices[rank] = xstrdup(request->devices[next++].name);
    }
}

void planner_name(const struct planner_request *request, struct plan *plan)
{
    name_devices(request, plan);
    plan_name(plan);
}

void planner_add(struct planner_result *out, const struct candidate *candidate)
{
    out->candidates = grow(out->candidates, out->count, &out->capacity, sizeof *out->candidates);
    out->candidates[out->count++] = *candidate;
}

/* A plan read from a file carries predictions made elsewhere. */
static void forget_predictions(struct plan *plan)
{
    memset(&plan->predicted, 0, sizeof plan->predicted);
    for (int i = 0; i < plan->stage_count; i++) {
        plan->stages[i].time_s = 0;
        plan->stages[i].memory_bytes = 0;
    }
}

/* Checks that the plan suits the request's devices and the job's global batch. */
static int check_purpose(const struct planner_request *request, const struct plan *plan,
                         struct error *err)
{
    int64_t batch = request->job->train.global_batch;
    if (plan_ranks(plan) > request->device_count)
        return error_set(err, -EINVAL, "the plan is for %d devices, there are %d", plan_ranks(plan),
                         request->device_count);
    if (plan_global_batch(plan) != batch)
        return error_set(err, -EINVAL, "the plan is for a global batch of %lld, the job's is %lld",
                         (long long)plan_global_batch(plan), (long long)batch);
    return 0;
}

int planner_consider(const struct planner_request *request, struct plan *plan,
                     struct planner_result *out, struct error *err)
{
    int ranks = plan_ranks(plan), rc = check_purpose(request, plan, err);
    if (rc < 0) {
        plan_destroy(plan);
        return rc;
    }
    struct candidate candidate = {.plan = plan};
    struct program **programs = xcalloc((size_t)ranks, sizeof *programs);
    struct pricing pricing = pricing_plain(request);
    struct timing timing = {&pricing, pricing_seconds, pricing_slowdown};
    struct simulation simulation;
    forget_predictions(plan);
    planner_name(request, plan);
    rc = all_ranks_lower(request, plan, programs, err);
    if (rc == 0)
        rc = simulate((const struct program *const *)programs, ranks, PROGRAM_TRAIN, &timing, NULL,
                      &simulation, err);
    if (rc == 0 && !(simulation.step_s > 0 && isfinite(simulation.step_s)))
        rc = error_set(err, -EINVAL,
                       "by the devices' profiles a step takes %g seconds: they are to be measured "
                       "again",
                       simulation.step_s);
    if (rc == 0) {
        fill_stages(request, programs, &candidate);
        double tokens = (double)(plan_global_batch(plan) * sizes_get(&request->graph->sizes, 's'));
        plan->predicted.step_time_s = simulation.step_s;
        plan->predicted.tokens_per_s = tokens / simulation.step_s;
        plan->predicted.bubble = simulation.exposed_s / simulation.step_s;
        strcpy(plan->predicted.referee, "simulation");
        planner_balance(plan);
        planner_add(out, &candidate);
        if (candidate.fits)
            planner_tell_best(request, simulation.step_s);
    } else {
        plan_destroy(plan);
    }
    all_ranks_destroy(programs, ranks);
    return rc;
}
