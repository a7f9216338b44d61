/* simulate.c - see simulate.h.
 *
 * Programs are lowered once for ranks that do the same at the same time; they share the program.
 * Take a plan of one stage and, in all ranks, swap two coordinates of one mesh axis (neither of
 * them 0 where coordinate 0 has extra work). Groups are mapped to groups, and if every group is
 * confined to one host exactly when its image is, each instruction takes as long as its image. The
 * simulation is then unchanged by the swap, so two ranks that are swapped have the same timeline.
 * Plans of several stages are excluded: their stages exchange messages, whose routes such a swap
 * does not preserve.
 *
 * Stages are simulated by list scheduling: every stage goes on as far as its neighbours let it. */
#include "coordinator/planner/costs/simulate.h"

#include "common/base/memory.h"
#include "coordinator/simulation/simulate.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* With more ranks, or more blocks run by them in a step, simulating the programs of all ranks takes
 * too long. */
#define PROGRAMS_MAX 16
#define BLOCK_RUNS_MAX 16384

/* Whether each host holds exactly the full extent of the first axes, so that a group lies on one
 * host if and only if it runs along those axes alone. */
static bool hosts_are_extents(const struct planner_device *devices, const struct mesh *mesh)
{
    int share = hosts_share(devices, mesh_count(mesh)), extent = 1;
    for (int axis = 0; axis < mesh->axes && extent < share; axis++)
        extent *= mesh->size[axis];
    return extent == share;
}

bool like_ranks_keep_pace(const struct planner_request *request, const struct plan *plan)
{
    const struct planner_device *devices = request->devices;
    const struct mesh *mesh = &plan->stages[0].mesh;
    if (plan->stage_count > 1 || mesh->weights || !hosts_are_extents(devices, mesh))
        return false;
    for (int rank = 1; rank < mesh_count(mesh); rank++)
        if (devices[rank].profile != devices[0].profile)
            return false;
    return true;
}

int all_ranks_lower(const struct planner_request *request, const struct plan *plan,
                    struct program **programs, struct error *err)
{
    bool alike = like_ranks_keep_pace(request, plan);
    struct lower_cache *ways = lower_cache_create();
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++) {
        int like =
            alike && rank > 0 ? program_like(programs[0], &plan->stages[0].mesh, rank) : rank;
        programs[rank] = programs[like];
        if (like != rank)
            continue;
        rc = lower_with(ways, request->graph, plan, rank, &programs[rank], err);
        planner_tell_work(request);
    }
    lower_cache_destroy(ways);
    return rc;
}

void all_ranks_destroy(struct program **programs, int ranks)
{
    for (int rank = ranks - 1; rank >= 0; rank--)
        if (programs[rank] && programs[rank]->rank == rank)
            program_destroy(programs[rank]);
    free(programs);
}

static void fill_stages(const struct planner_request *request, struct program *const *programs,
                        struct candidate *candidate)
{
    struct plan *plan = candidate->plan;
    struct pricing pricing = pricing_plain(request);
    candidate->fits = true;
    for (int rank = 0; rank < plan_ranks(plan); rank++) {
        struct plan_stage *stage = &plan->stages[programs[rank]->stage];
        uint64_t bytes = program_bytes(programs[rank]) + request->devices[rank].library_bytes;
        stage->memory_bytes = bytes > stage->memory_bytes ? bytes : stage->memory_bytes;
        if (programs[rank]->rank == rank)
            stage->time_s = fmax(stage->time_s, pricing_micro_batch(&pricing, programs[rank]));
        if (bytes > plan->predicted.memory_bytes_max)
            plan->predicted.memory_bytes_max = bytes;
        if (!candidate->fits || bytes <= planner_memory_limit(request, rank))
            continue;
        candidate->fits = false;
        candidate->tight_rank = rank;
        candidate->tight_bytes = bytes;
    }
}

/* Set the predicted balance in time and in memory from the stages' time_s and memory_bytes. */
static void balance_stages(struct plan *plan)
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

static void name_plan(const struct planner_request *request, struct plan *plan)
{
    name_devices(request, plan);
    plan_name(plan);
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

int simulate_programs(const struct planner_request *request, struct plan *plan,
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
    struct timing timing = pricing_timing(&pricing);
    struct simulation simulation;
    forget_predictions(plan);
    name_plan(request, plan);
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
        double tokens = (double)(plan_global_batch(plan) * graph_positions(request->graph));
        plan->predicted.step_time_s = simulation.step_s;
        plan->predicted.tokens_per_s = tokens / simulation.step_s;
        plan->predicted.bubble = simulation.exposed_s / simulation.step_s;
        strcpy(plan->predicted.referee, "simulation");
        balance_stages(plan);
        candidates_add(out, &candidate);
        if (candidate.fits)
            planner_tell_best(request, simulation.step_s);
    } else {
        plan_destroy(plan);
    }
    all_ranks_destroy(programs, ranks);
    return rc;
}

/* When each micro-batch left the stage in each direction; below zero: not yet. */
struct line {
    struct event *events;
    double *done_s[DIRECTIONS];
    double now_s;
    int next;
};

/* Run the stage's next event if its input is there; returns whether it did. */
static bool stages_advance(struct line *lines, int index, int count, int micro_batches,
                           const struct stage_cost *stages)
{
    struct line *line = &lines[index];
    if (line->next == 2 * micro_batches)
        return false;
    const struct event *event = &line->events[line->next];
    bool forward = event->direction == FORWARD;
    int neighbour = forward ? index - 1 : index + 1;
    double ready_s = 0;
    if (neighbour >= 0 && neighbour < count)
        ready_s = lines[neighbour].done_s[event->direction][event->micro_batch];
    if (ready_s < 0)
        return false;
    line->now_s =
        fmax(line->now_s, ready_s) + (forward ? stages[index].forward_s : stages[index].backward_s);
    line->done_s[event->direction][event->micro_batch] = line->now_s;
    line->next++;
    return true;
}

double stages_seconds(const struct stage_cost *stages, int count, int micro_batches,
                      const struct schedule *schedule, double *busy_s)
{
    struct line *lines = xcalloc((size_t)count, sizeof *lines);
    for (int i = 0; i < count; i++) {
        lines[i].events = xcalloc(2 * (size_t)micro_batches, sizeof *lines[i].events);
        schedule->order(i, count, micro_batches, lines[i].events);
        for (int d = 0; d < DIRECTIONS; d++) {
            lines[i].done_s[d] = xcalloc((size_t)micro_batches, sizeof(double));
            for (int m = 0; m < micro_batches; m++)
                lines[i].done_s[d][m] = -1;
        }
    }
    for (bool progress = true; progress;) {
        progress = false;
        for (int i = 0; i < count; i++)
            while (stages_advance(lines, i, count, micro_batches, stages))
                progress = true;
    }
    double step_s = 0, busy = 0;
    for (int i = 0; i < count; i++) {
        assert(lines[i].next == 2 * micro_batches && "schedules do not deadlock");
        step_s = fmax(step_s, lines[i].now_s + stages[i].once_s);
        busy += (micro_batches * (stages[i].forward_s + stages[i].backward_s) + stages[i].once_s) /
                count;
        free(lines[i].events);
        free(lines[i].done_s[FORWARD]);
        free(lines[i].done_s[BACKWARD]);
    }
    free(lines);
    if (busy_s)
        *busy_s = busy;
    return step_s;
}

static int64_t count_block_runs(int ranks, int blocks, int stages, int micro_batches)
{
    return (int64_t)ranks * blocks * micro_batches / stages;
}

bool stages_judge(int ranks, int blocks, int stages, int micro_batches)
{
    return ranks > PROGRAMS_MAX ||
           count_block_runs(ranks, blocks, stages, micro_batches) > BLOCK_RUNS_MAX;
}

int64_t simulate_block_runs(const struct plan *plan)
{
    return count_block_runs(plan_ranks(plan), plan->block_count, plan->stage_count,
                            plan->micro_batches);
}

bool simulate_is_large(const struct plan *plan)
{
    return stages_judge(plan_ranks(plan), plan->block_count, plan->stage_count,
                        plan->micro_batches);
}

double stages_share(const struct schedule *schedule, int stages, int micro_batches)
{
    if (stages == 1)
        return 1;
    int ahead = schedule->in_flight(0, stages, micro_batches) - 1;
    return (double)micro_batches / (micro_batches + ahead);
}

int stages_ahead(const struct schedule *schedule, int stages, int micro_batches)
{
    int most = 0;
    if (schedule->in_flight(stages - 1, stages, micro_batches) == micro_batches)
        return 0;
    for (int stage = 0; stage < stages; stage++) {
        int here = schedule->in_flight(stage, stages, micro_batches);
        most = here > most ? here : most;
    }
    return most - 1;
}

struct candidate *simulate_known(const struct planner_request *request, struct plan *plan,
                                 const struct planner_result *out)
{
    name_plan(request, plan); /* a plan is compared with its devices */
    for (size_t i = 0; i < out->count; i++)
        if (plan_same(out->candidates[i].plan, plan))
            return &out->candidates[i];
    return NULL;
}

static struct stage_cost *price_stages(struct costs *costs, const struct plan *plan, bool *fits)
{
    size_t count = (size_t)plan->stage_count;
    const struct site **sites = xcalloc(count, sizeof *sites);
    struct stage_cost *stages = xcalloc(count, sizeof *stages);
    evaluate_sites(costs, plan, sites);
    *fits = true;
    for (int i = 0; i < plan->stage_count; i++) {
        evaluate_stage(costs, plan, sites, i, &stages[i], NULL);
        *fits = *fits && stages[i].lacking == 0;
    }
    free(sites);
    return stages;
}

static void simulate_stages(struct costs *costs, struct plan *plan, struct planner_result *out)
{
    struct candidate candidate = {.plan = plan, .tight_rank = -1};
    double busy_s, formula_s = plan->predicted.formula_s;
    struct stage_cost *stages = price_stages(costs, plan, &candidate.fits);
    memset(&plan->predicted, 0, sizeof plan->predicted);
    for (int i = 0; i < plan->stage_count; i++) {
        plan->stages[i].time_s = stages[i].forward_s + stages[i].backward_s;
        plan->stages[i].memory_bytes = stages[i].bytes;
        if (stages[i].bytes > plan->predicted.memory_bytes_max)
            plan->predicted.memory_bytes_max = stages[i].bytes;
    }
    plan->predicted.formula_s = formula_s;
    plan->predicted.step_time_s =
        stages_seconds(stages, plan->stage_count, plan->micro_batches, plan->schedule, &busy_s);
    plan->predicted.bubble = 1 - busy_s / plan->predicted.step_time_s;
    plan->predicted.tokens_per_s =
        (double)(plan_global_batch(plan) * graph_positions(costs->request->graph)) /
        plan->predicted.step_time_s;
    strcpy(plan->predicted.referee, "events");
    balance_stages(plan);
    name_plan(costs->request, plan);
    candidates_add(out, &candidate);
    free(stages);
}

int simulate_plan(struct costs *costs, struct plan *plan, struct planner_result *out,
                  struct error *err)
{
    double formula_s = plan->predicted.formula_s;
    if (simulate_known(costs->request, plan, out)) {
        plan_destroy(plan);
        return 0;
    }
    if (simulate_is_large(plan)) {
        simulate_stages(costs, plan, out);
        return 0;
    }
    int rc = simulate_programs(costs->request, plan, out, err);
    if (rc == 0)
        out->candidates[out->count - 1].plan->predicted.formula_s = formula_s;
    return rc;
}
