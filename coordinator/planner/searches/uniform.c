/* uniform.c - what experts do by hand: one strategy for the whole model. Tries the full grid of
 * pipeline x tensor x data parallelism x zero x micro-batches on every allowed number of devices.
 * Recomputation is tried only if nothing fits without it: selective first, then full. */
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/searches/searches.h"
#include "coordinator/planner/space/space.h"

#include <errno.h>
#include <string.h>

struct point {
    int pp, tp, dp, zero;
    enum recompute recompute;
    int64_t micro_batches;
    const struct schedule *schedule;
};

/* Divides the repeated layers as evenly as possible. The block before the layers goes to the first
 * stage and the one after them to the last, so leftover layers go to the middle stages first. */
static void divide_layers(struct plan *plan)
{
    int layers = plan->block_count - 2, stages = plan->stage_count, next = 0;
    for (int i = 0; i < stages; i++) {
        /* the first stage is the last to get an extra layer */
        int place = i == 0 ? stages - 1 : i - 1;
        int end = next + layers / stages + (place < layers % stages);
        end += (i == 0) + (i == stages - 1);
        plan->stages[i].block_first = next;
        plan->stages[i].block_count = end - next;
        for (int b = next; b < end; b++)
            plan->blocks[b].stage = i;
        next = end;
    }
}

static struct plan *make_plan(const struct planner_request *request, const struct point *point)
{
    struct plan *plan = plan_create(point->pp, (int)request->graph->block_count);
    divide_layers(plan);
    for (int i = 0; i < point->pp; i++) {
        struct mesh *mesh = &plan->stages[i].mesh;
        if (point->tp > 1)
            mesh->size[mesh->axes++] = point->tp; /* the first axis has the fastest links */
        if (point->dp > 1)
            mesh->size[mesh->axes++] = point->dp;
    }
    for (int b = 0; b < plan->block_count; b++) {
        int axis = 0;
        if (point->tp > 1)
            plan->blocks[b].roles[axis++] = role_find("tensor");
        if (point->dp > 1)
            plan->blocks[b].roles[axis++] = role_find("batch");
        plan->blocks[b].zero = point->zero;
        if (b > 0 && b < plan->block_count - 1)
            plan->blocks[b].recompute = point->recompute;
    }
    plan->micro_batches = (int)point->micro_batches;
    plan->micro_batch_samples = request->job->train.global_batch / point->micro_batches;
    plan->schedule = point->schedule;
    plan->overlap = request->job->plan.overlap;
    return plan;
}

static bool uniform_allows(const struct planner_request *request, const struct point *point)
{
    const struct job_plan *plan = &request->job->plan;
    int64_t samples = request->job->train.global_batch / point->micro_batches;
    if ((point->tp > 1 && space_role_forbidden(plan, "tensor")) ||
        (point->dp > 1 && space_role_forbidden(plan, "batch")))
        return false;
    return !space_pinned(plan->pin.pp, point->pp) && !space_pinned(plan->pin.tp, point->tp) &&
           !space_pinned(plan->pin.dp, point->dp) &&
           !space_pinned(plan->pin.micro_batches, point->micro_batches) &&
           !(plan->forbid.zero >> point->zero & 1) && point->dp <= samples &&
           point->pp <= (int)request->graph->block_count - 2 && (point->zero == 0 || point->dp > 1);
}

/* All micro-batch counts for one division; without a pipeline only one schedule is tried. */
static void try_division(const struct planner_request *request, struct point point,
                         struct planner_result *out, int *failure, struct error *err)
{
    int64_t batch = request->job->train.global_batch;
    const char *wanted = request->job->plan.schedule;
    int64_t most = batch < PLAN_MICRO_BATCHES_MAX ? batch : PLAN_MICRO_BATCHES_MAX;
    for (point.micro_batches = 1; point.micro_batches <= most; point.micro_batches++) {
        if (batch % point.micro_batches != 0)
            continue;
        for (int i = 0; schedules[i]; i++) {
            point.schedule = schedules[i];
            bool other = wanted ? strcmp(schedules[i]->name, wanted) != 0 : i > 0;
            for (point.zero = 0; point.zero <= 3 && !other; point.zero++) {
                if (planner_stopped(request) || !uniform_allows(request, &point))
                    continue;
                int rc = simulate_programs(request, make_plan(request, &point), out, err);
                if (rc < 0)
                    *failure = rc;
            }
        }
    }
}

static void try_devices(const struct planner_request *request, int devices,
                        enum recompute recompute, struct planner_result *out, int *failure,
                        struct error *err)
{
    if (request->job->plan.forbid.recompute >> recompute & 1)
        return;
    for (int pp = 1; pp <= devices; pp++) {
        for (int tp = 1; tp <= devices / pp; tp++) {
            struct point point = {
                .pp = pp, .tp = tp, .dp = devices / (pp * tp), .recompute = recompute};
            if (devices % (pp * tp) == 0)
                try_division(request, point, out, failure, err);
        }
    }
}

static int uniform_search(const struct planner_request *request, struct planner_result *out,
                          struct error *err)
{
    int failure = 0, least, most;
    planner_limits(request, &least, &most);
    for (int recompute = 0; recompute < RECOMPUTES && !candidates_fits(out); recompute++)
        for (int devices = least; devices <= most; devices++)
            try_devices(request, devices, (enum recompute)recompute, out, &failure, err);
    if (out->count > 0)
        return 0;
    if (failure)
        return error_prefix(err, failure, "no legal plan on %d to %d devices", least, most);
    return error_set(err, -EINVAL,
                     "no plan on %d to %d devices agrees with plan.pin and plan.forbid, a "
                     "global batch of %lld and %zu layers",
                     least, most, (long long)request->job->train.global_batch,
                     request->graph->block_count - 2);
}

const struct search search_uniform = {.name = "uniform", .run = uniform_search};
