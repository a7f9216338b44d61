/* planner.c - pricing of candidates, and the answer. */
#include "coordinator/planner/planner.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "common/program/simulate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int planner_graph(const struct job_config *job, struct graph **out, struct error *err)
{
    if (job->train.dtype != JOB_F32)
        return error_set(err, -EINVAL, "train.dtype bf16 has no kernels yet; f32 has");
    if (job->checkpoint.dir)
        return error_set(err, -EINVAL, "checkpoint.dir '%s': checkpoints are not written yet",
                         job->checkpoint.dir);
    struct model_config config = model_config_of(&job->model);
    return model_build(&config, out, err);
}

int planner_search(const struct job_config *job, const struct search **out, struct error *err)
{
    char known[256] = "";
    int used = 0;
    *out = job->plan.search ? search_find(job->plan.search) : searches[0];
    for (int i = 0; !*out && searches[i]; i++)
        used += snprintf(known + used, sizeof known - (size_t)used, i ? ", %s" : "%s",
                         searches[i]->name);
    return *out ? 0
                : error_set(err, -EINVAL, "plan.search '%s' is unknown; known: %s",
                            job->plan.search, known);
}

int planner_check(const struct job_config *job, struct error *err)
{
    const struct search *search;
    struct graph *graph;
    int rc = planner_graph(job, &graph, err);
    if (rc < 0)
        return rc;
    graph_destroy(graph);
    return planner_search(job, &search, err);
}

static const struct planner_device *device_of(const struct planner_request *request, int rank)
{
    return &request->devices[rank];
}

/* Do all members of a group, or a message's two ends, share one host? */
static bool on_one_host(const struct planner_request *request, const struct program *program,
                        const struct instruction *instruction)
{
    const char *host = device_of(request, program->rank)->host;
    if (instruction->kind != INSTRUCTION_COLLECTIVE)
        return strcmp(device_of(request, instruction->message.peer)->host, host) == 0;
    const struct group *group = &program->groups[instruction->collective.group];
    for (int i = 0; i < group->count; i++)
        if (strcmp(device_of(request, group->ranks[i])->host, host) != 0)
            return false;
    return true;
}

static double price(const void *context, const struct program *program,
                    const struct instruction *instruction)
{
    const struct planner_request *request = context;
    const struct profile *profile = device_of(request, program->rank)->profile;
    bool moves =
        instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
    const struct profile_link *link =
        moves && !on_one_host(request, program, instruction) ? &profile->network : &profile->host;
    return profile_seconds(profile, link, program, instruction);
}

/* Seconds of one micro-batch's forward and backward on a rank, nothing waited for. */
static double micro_batch_seconds(const struct planner_request *request,
                                  const struct program *program)
{
    double seconds = 0;
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            seconds += price(request, program, &program->instructions[i]);
    }
    return seconds;
}

static uint64_t memory_limit(const struct planner_request *request, int rank)
{
    uint64_t device = device_of(request, rank)->memory_bytes, job = request->job->plan.memory;
    return job && job < device ? job : device;
}

static void fill_stages(const struct planner_request *request, struct program *const *programs,
                        struct candidate *candidate)
{
    struct plan *plan = candidate->plan;
    candidate->fits = true;
    for (int rank = 0; rank < plan_ranks(plan); rank++) {
        struct plan_stage *stage = &plan->stages[programs[rank]->stage];
        uint64_t bytes = program_bytes(programs[rank]);
        double seconds = micro_batch_seconds(request, programs[rank]);
        stage->memory_bytes = bytes > stage->memory_bytes ? bytes : stage->memory_bytes;
        stage->time_s = seconds > stage->time_s ? seconds : stage->time_s;
        if (bytes > plan->predicted.memory_bytes_max)
            plan->predicted.memory_bytes_max = bytes;
        candidate->fits = candidate->fits && bytes <= memory_limit(request, rank);
    }
}

/* Rank r of the plan runs on device r of the request. */
static void name_devices(const struct planner_request *request, struct plan *plan)
{
    for (int i = 0, next = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        int count = mesh_count(&stage->mesh);
        for (int rank = 0; stage->devices && rank < count; rank++)
            free(stage->devices[rank]); /* a plan that was read names others */
        free(stage->devices);
        stage->devices = xcalloc((size_t)count, sizeof *stage->devices);
        for (int rank = 0; rank < count; rank++)
            stage->devices[rank] = xstrdup(request->devices[next++].name);
    }
}

static int lower_all(const struct planner_request *request, const struct plan *plan,
                     struct program **programs, struct error *err)
{
    int rc = 0;
    for (int rank = 0; rank < plan_ranks(plan) && rc == 0; rank++)
        rc = lower(request->graph, plan, rank, &programs[rank], err);
    return rc;
}

/* A plan that was read brings what somebody else predicted. */
static void forget_predictions(struct plan *plan)
{
    memset(&plan->predicted, 0, sizeof plan->predicted);
    for (int i = 0; i < plan->stage_count; i++) {
        plan->stages[i].time_s = 0;
        plan->stages[i].memory_bytes = 0;
    }
}

/* Is it a plan for these devices and this job? */
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
    struct timing timing = {request, price};
    struct simulation simulation;
    forget_predictions(plan);
    name_devices(request, plan);
    plan_name(plan);
    rc = lower_all(request, plan, programs, err);
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
        out->candidates =
            grow(out->candidates, out->count, &out->capacity, sizeof *out->candidates);
        out->candidates[out->count++] = candidate;
    } else {
        plan_destroy(plan);
    }
    for (int rank = 0; rank < ranks; rank++)
        program_destroy(programs[rank]);
    free(programs);
    return rc;
}

static int better_first(const void *a, const void *b, void *context)
{
    const struct candidate *first = a, *second = b;
    enum job_objective objective = *(const enum job_objective *)context;
    int fewer = plan_ranks(first->plan) - plan_ranks(second->plan);
    if (first->fits != second->fits)
        return first->fits ? -1 : 1;
    if (first->fits && objective == JOB_DEVICES && fewer != 0)
        return fewer;
    double x = first->plan->predicted.step_time_s, y = second->plan->predicted.step_time_s;
    uint64_t m = first->plan->predicted.memory_bytes_max,
             n = second->plan->predicted.memory_bytes_max;
    if (!first->fits && m != n)
        return m < n ? -1 : 1;
    if (x != y)
        return x < y ? -1 : 1;
    return strcmp(first->plan->id, second->plan->id);
}

/* The first rank of a plan that does not fit whose device is too small. */
static int find_tight(const struct planner_request *request, const struct plan *plan)
{
    int rank = 0, inside;
    while (rank + 1 < plan_ranks(plan) &&
           plan->stages[plan_rank_stage(plan, rank, &inside)].memory_bytes <=
               memory_limit(request, rank))
        rank++;
    return rank;
}

/* No candidate fits; the first of them needs the least. More of a device's memory may be allowed
 * only where there is more. */
static int explain_memory(const struct planner_request *request,
                          const struct planner_result *result, struct error *err)
{
    char need[32], have[32], text[96];
    const struct plan *least = result->candidates[0].plan;
    int inside, rank = find_tight(request, least);
    uint64_t bytes = least->stages[plan_rank_stage(least, rank, &inside)].memory_bytes;
    uint64_t limit = memory_limit(request, rank), most = least->predicted.memory_bytes_max;
    bool allowable = true;
    for (int i = 0; i < plan_ranks(least); i++)
        allowable = allowable && most <= device_of(request, i)->memory_bytes;
    return error_set(err, -ENOSPC,
                     "no plan fits: the smallest of %zu, %s on %d devices, needs %s on %s, where "
                     "%s may be used%s; it would run with %s of at least %llu bytes, more devices, "
                     "or a smaller train.global_batch or model",
                     result->count, plan_print(text, sizeof text, least), plan_ranks(least),
                     units_print_bytes(need, sizeof need, (double)bytes),
                     device_of(request, rank)->name,
                     units_print_bytes(have, sizeof have, (double)limit),
                     limit < device_of(request, rank)->memory_bytes ? " (plan.memory)" : "",
                     allowable ? "plan.memory" : "devices", (unsigned long long)most);
}

int planner_run(const struct planner_request *request, struct planner_result *out,
                struct error *err)
{
    *out = (struct planner_result){0};
    const struct search *search;
    int rc = planner_search(request->job, &search, err);
    if (rc < 0)
        return rc;
    if (request->job->devices.min > request->device_count)
        return error_set(err, -EINVAL, "devices.min is %lld, and there are %d devices",
                         (long long)request->job->devices.min, request->device_count);
    rc = search->run(request, out, err);
    if (rc < 0)
        return rc;
    enum job_objective objective = request->job->plan.objective;
    qsort_r(out->candidates, out->count, sizeof *out->candidates, better_first, &objective);
    for (size_t i = 0; i < out->count; i++) {
        struct plan *plan = out->candidates[i].plan;
        snprintf(plan->predicted.search, sizeof plan->predicted.search, "%s", search->name);
        plan->predicted.candidates = (int)out->count;
    }
    if (!out->candidates[0].fits)
        return explain_memory(request, out, err);
    out->best = out->candidates[0].plan;
    return 0;
}

void planner_result_finish(struct planner_result *result)
{
    for (size_t i = 0; i < result->count; i++)
        plan_destroy(result->candidates[i].plan);
    free(result->candidates);
    *result = (struct planner_result){0};
}

void planner_print(const struct planner_result *result, size_t rows, FILE *out)
{
    fprintf(out, "%-10s %-40s %7s %12s %12s %11s  %s\n", "PLAN", "DIVISION", "DEVICES", "STEP",
            "TOK/S", "MEMORY", "");
    for (size_t i = 0; i < result->count && (rows == 0 || i < rows); i++) {
        const struct plan *plan = result->candidates[i].plan;
        char division[96], step[32], memory[32];
        plan_print(division, sizeof division, plan);
        /* The middle dot is two bytes and one column. */
        int dots = 0;
        for (const char *c = division; *c; c++)
            dots += (unsigned char)*c == 0xc2;
        fprintf(out, "%-10s %-*s %7d %12s %12.0f %11s  %s\n", plan->id, 40 + dots, division,
                plan_ranks(plan),
                units_print_seconds(step, sizeof step, plan->predicted.step_time_s),
                plan->predicted.tokens_per_s,
                units_print_bytes(memory, sizeof memory, (double)plan->predicted.memory_bytes_max),
                !result->candidates[i].fits ? "does not fit"
                : plan == result->best      ? "chosen"
                                            : "");
    }
    if (rows && result->count > rows)
        fprintf(out, "and %zu more\n", result->count - rows);
}
