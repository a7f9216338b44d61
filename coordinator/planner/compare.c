/* compare.c - one row for each of our searches, then one for Galvatron's best plan.
 *
 * What was measured of a layer is a time; our searches price operations. So the milliseconds of a
 * layer are distributed over its operations: the part that does not depend on the batch by the
 * number of kernels, the rest by their arithmetic. */
#include "coordinator/planner/compare.h"

#include "common/base/memory.h"
#include "common/models/model.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/galvatron/space.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MB 1048576.0
/* Backward over forward time, as Galvatron's formula has it. */
#define BACKWARD_TIMES 2

/* One sample's arithmetic and the number of kernels of a layer, by direction. */
struct work {
    double flops[DIRECTIONS];
    int kernels[DIRECTIONS];
};

/* Whether there is anything to compute in this direction: an operation that only adds passes its
 * gradient on. */
static bool has_kernel(const struct operation *operation, int direction)
{
    unsigned inputs = (1u << operation->input_count) - 1;
    return direction == FORWARD || operation->weight_count > 0 ||
           (operation->passes & inputs) != inputs;
}

static struct work work_of(const struct graph *graph, const struct block *block)
{
    struct work work = {0};
    for (int n = block->node_first; n < block->node_first + block->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        const struct operation *operation = node->operation;
        struct box boxes[OPERANDS_MAX] = {0};
        for (int i = 0; i < operation_operands(operation); i++)
            boxes[i] = tensor_box(&graph->tensors[node->operands[i]], 1);
        for (int d = 0; d < DIRECTIONS; d++) {
            if (!has_kernel(operation, d))
                continue;
            work.flops[d] += node_flops(node, boxes, (enum direction)d);
            work.kernels[d] += operation->phases[d];
        }
    }
    return work;
}

/* Fit a line through the smallest and the largest batch: fixed + samples x slope, in seconds. If it
 * does not rise or starts below zero, use the largest batch alone. */
static void fit_line(const struct galvatron_times *times, double *fixed_s, double *slope_s)
{
    const struct galvatron_time *small = &times->items[0], *large = &times->items[times->count - 1];
    double slope = 0, fixed = -1;
    if (small->batch > 0 && large->batch > small->batch) {
        slope =
            (large->batch * large->ms - small->batch * small->ms) / (large->batch - small->batch);
        fixed = small->batch * (small->ms - slope);
    }
    bool line = slope > 0 && fixed >= 0;
    *fixed_s = line ? fixed / 1000 : 0;
    *slope_s = (line ? slope : large->ms) / 1000;
}

static struct profile_rate *find_rate(struct profile *profile, const char *operation)
{
    for (size_t i = 0; i < profile->rate_count; i++)
        if (strcmp(profile->rates[i].operation, operation) == 0)
            return &profile->rates[i];
    assert(profile->rate_count < PROFILE_RATES_MAX && "no layer has so many operations");
    return &profile->rates[profile->rate_count++];
}

static void fit_kernels(const struct galvatron_profile *measured, const struct graph *graph,
                        struct profile *profile)
{
    const struct block *layer = &graph->blocks[1];
    struct work work = work_of(graph, layer);
    double fixed_s, slope_s;
    fit_line(&measured->layer, &fixed_s, &slope_s);
    profile->rate_count = 0;
    profile->seconds_per_flop = slope_s / work.flops[FORWARD];
    for (int n = layer->node_first; n < layer->node_first + layer->node_count; n++) {
        struct profile_rate *rate = find_rate(profile, graph->nodes[n].name);
        strcpy(rate->operation, graph->nodes[n].name);
        for (int d = 0; d < DIRECTIONS; d++) {
            double times = d == BACKWARD ? BACKWARD_TIMES : 1;
            rate->fixed_s[d] = times * fixed_s / work.kernels[d];
            rate->seconds_per_flop[d] = times * slope_s / work.flops[d];
        }
    }
}

/* GB/s of the largest measured group of `least` to `most` devices; 0: none was measured. */
static double rate_up_to(const struct galvatron_profile *measured, int least, int most)
{
    for (int level = GALVATRON_LEVELS - 1; level > 0; level--) {
        if (1 << level > most || 1 << level < least)
            continue;
        double rate = measured->allreduce_gb_s[1][level];
        rate = rate > 0 ? rate : measured->allreduce_gb_s[0][level];
        if (rate > 0)
            return rate;
    }
    return 0;
}

/* One GB/s is one MB per millisecond. narrow: bytes of an element in the measurements over bytes of
 * ours. */
static void fit_link(struct hardware_link *link, double gb_s, double narrow)
{
    if (gb_s > 0)
        link->seconds_per_byte = narrow / (gb_s * 1000 * MB);
}

struct profile galvatron_fit(const struct galvatron_profile *measured,
                             const struct planner_request *request)
{
    const struct planner_device *devices = request->devices;
    struct profile profile = *devices[0].profile;
    int host = 1, all = request->device_count;
    double narrow = (measured->mixed ? 2.0 : 4.0) / request->graph->element_bytes;
    while (host < all && hosts_same(&devices[host], &devices[0]))
        host++;
    fit_kernels(measured, request->graph, &profile);
    fit_link(&profile.host, rate_up_to(measured, 2, host), narrow);
    fit_link(&profile.network, rate_up_to(measured, host + 1, all), narrow);
    profile.overlap = fmin(fmax(measured->overlap, 1), PROFILE_OVERLAP_MAX);
    return profile;
}

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
        .hidden = tensor_size(&request->graph->tensors[request->graph->blocks[0].output], 'h'),
        .seq = graph_positions(request->graph),
        .layers = (int)request->graph->block_count - 2,
        .memory_bytes = planner_memory_limit(request, 0),
    };
    for (int i = 1; i < request->device_count; i++) {
        uint64_t bytes = planner_memory_limit(request, i);
        problem.memory_bytes = bytes < problem.memory_bytes ? bytes : problem.memory_bytes;
    }
    return problem;
}

static void judge_row(const struct galvatron_problem *problem, struct galvatron_row *row)
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
    candidates_finish(result);
    if (row->plan)
        judge_row(problem, row);
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
    if (simulate_programs(request, plan_copy(best), &result, &row->words) == 0) {
        row->plan = plan_copy(result.candidates[0].plan);
        if (!result.candidates[0].fits)
            error_set(&row->words, 0, "our programs of it need more than a device has");
    }
    candidates_finish(&result);
    plan_destroy(best);
    if (row->plan)
        judge_row(problem, row);
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
