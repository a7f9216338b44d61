/* compare.c - one row for each of our searches, then one for Galvatron's best plan. */
#include "coordinator/planner/galvatron/compare.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/site.h"
#include "coordinator/planner/galvatron/fit.h"
#include "coordinator/planner/galvatron/space.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ZERO_UNKNOWN (1u << 1)
#define RECOMPUTE_UNKNOWN (1u << RECOMPUTE_SELECTIVE)

static bool is_known(const char *role)
{
    return strcmp(role, "batch") == 0 || strcmp(role, "tensor") == 0 ||
           strcmp(role, "tensor_seq") == 0;
}

/* The request with devices as fast as measured, restricted to plans that the formula knows. */
struct fitted {
    struct profile profile;
    struct planner_device *devices;
    struct job_config job;
    struct planner_request request;
};

static void fitted_init(struct fitted *fitted, const struct planner_request *request,
                        const struct galvatron_profile *profile)
{
    size_t devices = (size_t)request->device_count, known = 0, role_count = 0;
    struct job_plan *plan = &fitted->job.plan;
    while (roles[role_count])
        role_count++;
    *fitted = (struct fitted){.profile = galvatron_fit(profile, request), .job = *request->job};
    fitted->devices = xcalloc(devices, sizeof *fitted->devices);
    for (size_t i = 0; i < devices; i++) {
        fitted->devices[i] = request->devices[i];
        fitted->devices[i].profile = &fitted->profile;
    }
    const struct texts *forbidden = &request->job->plan.forbid.roles;
    plan->forbid.roles.items = xcalloc(forbidden->count + role_count, sizeof(char *));
    for (; known < forbidden->count; known++)
        plan->forbid.roles.items[known] = forbidden->items[known];
    for (size_t i = 0; i < role_count; i++)
        if (!is_known(roles[i]->name))
            plan->forbid.roles.items[known++] = (char *)roles[i]->name;
    plan->forbid.roles.count = known;
    plan->forbid.zero |= ZERO_UNKNOWN;
    plan->forbid.recompute |= RECOMPUTE_UNKNOWN;
    plan->schedule = (char *)"1f1b";
    plan->objective = JOB_THROUGHPUT;
    fitted->request = *request;
    fitted->request.job = &fitted->job;
    fitted->request.devices = fitted->devices;
}

static void fitted_finish(struct fitted *fitted)
{
    free(fitted->job.plan.forbid.roles.items);
    free(fitted->devices);
}

static struct galvatron_problem problem_of(const struct planner_request *request,
                                           const struct galvatron_profile *profile)
{
    struct galvatron_problem problem = {
        .profile = profile,
        .hidden = sizes_get(&request->graph->sizes, 'h'),
        .seq = sizes_get(&request->graph->sizes, 's'),
        .layers = (int)request->graph->block_count - 2,
        .memory_bytes = site_memory_limit(request, 0),
    };
    for (int i = 1; i < request->device_count; i++) {
        uint64_t bytes = site_memory_limit(request, i);
        problem.memory_bytes = bytes < problem.memory_bytes ? bytes : problem.memory_bytes;
    }
    return problem;
}

static void judge(const struct galvatron_problem *problem, struct galvatron_row *row)
{
    int stages = row->plan->stage_count;
    struct galvatron_cost *costs = xcalloc((size_t)stages, sizeof *costs);
    int rc = galvatron_judge(problem, row->plan, costs, &row->formula_s, &row->fits, &row->words);
    row->judged = rc == 0;
    for (int i = 0; i < stages && rc == 0; i++)
        row->bytes = fmax(row->bytes, costs[i].bytes);
    if (rc == 0)
        row->simulated_s = galvatron_simulate(costs, row->plan);
    free(costs);
}

/* Copy the answer of a search to the row; if nothing fits, the smallest plan. */
static int take_answer(const struct galvatron_problem *problem, struct planner_result *result,
                       int rc, struct galvatron_row *row)
{
    if ((rc == 0 || rc == -ENOSPC) && result->count > 0)
        row->plan = plan_copy(result->candidates[0].plan);
    planner_result_finish(result);
    if (row->plan)
        judge(problem, row);
    return rc == -ECANCELED ? rc : 0;
}

static int add_search(struct fitted *fitted, const struct galvatron_problem *problem,
                      const char *search, struct galvatron_row *row)
{
    struct planner_result result;
    row->from = search;
    fitted->job.plan.search = (char *)search;
    int rc = planner_run(&fitted->request, &result, &row->words);
    return take_answer(problem, &result, rc, row);
}

static int add_given(struct fitted *fitted, const struct galvatron_problem *problem,
                     struct plan *plan, struct galvatron_row *row)
{
    struct planner_result result = {0};
    row->from = "given";
    int rc = planner_given(&fitted->request, plan, &result, &row->words);
    return take_answer(problem, &result, rc, row);
}

/* Our programs can judge Galvatron's plan like any other; their prediction is shown beside. */
static void add_theirs(const struct fitted *fitted, const struct galvatron_problem *problem,
                       struct galvatron_row *row)
{
    const struct planner_request *request = &fitted->request;
    struct planner_result result = {0};
    row->from = "galvatron";
    struct plan *best = galvatron_best(problem, request->graph, request->device_count,
                                       request->job->train.global_batch, &row->words);
    if (!best)
        return;
    if (planner_consider(request, plan_copy(best), &result, &row->words) == 0) {
        row->plan = plan_copy(result.candidates[0].plan);
        if (!result.candidates[0].fits)
            error_set(&row->words, 0, "our programs of it need more than a device has");
    }
    planner_result_finish(&result);
    plan_destroy(best);
    if (row->plan)
        judge(problem, row);
}

int galvatron_compare(const struct planner_request *request,
                      const struct galvatron_profile *profile, const char *const *names,
                      struct plan *given, struct galvatron_rows *out, struct error *err)
{
    struct galvatron_problem problem = problem_of(request, profile);
    struct fitted fitted;
    size_t wanted = given ? 1 : 0;
    int rc = 0;
    for (size_t i = 0; !given && names[i]; i++)
        wanted++;
    *out = (struct galvatron_rows){.items = xcalloc(wanted + 1, sizeof *out->items),
                                   .memory_bytes = galvatron_memory(&problem)};
    fitted_init(&fitted, request, profile);
    for (; out->count < wanted && rc == 0; out->count++) {
        struct galvatron_row *row = &out->items[out->count];
        rc = given ? add_given(&fitted, &problem, given, row)
                   : add_search(&fitted, &problem, names[out->count], row);
    }
    if (rc == 0)
        add_theirs(&fitted, &problem, &out->items[out->count++]);
    else
        error_set(err, rc, "%s", out->items[out->count - 1].words.text);
    fitted_finish(&fitted);
    return rc;
}

void galvatron_rows_finish(struct galvatron_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        plan_destroy(rows->items[i].plan);
    free(rows->items);
    *rows = (struct galvatron_rows){0};
}
