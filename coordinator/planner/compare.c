/* compare.c - a plan from each search, judged by both sides.
 *
 * What was measured of a layer is a time; our searches price operations. So the milliseconds of a
 * layer are distributed over its operations: the part that does not depend on the batch by the
 * number of kernels, the rest by their arithmetic. */
#include "coordinator/planner/compare.h"

#include "common/base/memory.h"
#include "common/models/model.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planner/galvatron/search.h"
#include "coordinator/planner/searches/narrowed.h"

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

/* Seconds as fixed + samples x slope. If they do not rise or start below zero, as a line that was
 * fitted may, what a sample takes in a long run or alone. */
static void line_seconds(const struct galvatron_line *line, double *fixed_s, double *slope_s)
{
    bool rises = line->slope > 0;
    *fixed_s = rises && line->fixed >= 0 ? line->fixed / 1000 : 0;
    *slope_s = (rises ? line->slope : galvatron_at(line, 1)) / 1000;
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
    line_seconds(&measured->layers[0].forward_ms, &fixed_s, &slope_s);
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

/* GB/s of the largest measured group of `least` to `most` devices, of neighbours if there are such;
 * 0: none was measured. */
static double rate_up_to(const struct galvatron_profile *measured, int least, int most)
{
    double rate = 0;
    int size = 0;
    for (int neighbours = 1; neighbours >= 0; neighbours--) {
        const struct galvatron_table *table = &measured->allreduce_gb_s[neighbours];
        for (int i = 0; i < table->count; i++)
            if (table->keys[i] >= least && table->keys[i] <= most && table->keys[i] > size) {
                size = table->keys[i];
                rate = table->values[i];
            }
    }
    return rate;
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

/* The request with devices as fast as measured, restricted to plans that the formula knows. */
struct fitted {
    struct profile profile;
    struct planner_device *devices;
    struct narrowed narrowed;
};

static void fitted_init(struct fitted *fitted, const struct planner_request *request,
                        const struct galvatron_profile *profile)
{
    size_t devices = (size_t)request->device_count;
    *fitted = (struct fitted){.profile = galvatron_fit(profile, request)};
    fitted->devices = xcalloc(devices, sizeof *fitted->devices);
    for (size_t i = 0; i < devices; i++) {
        fitted->devices[i] = request->devices[i];
        fitted->devices[i].profile = &fitted->profile;
    }
    narrowed_init(&fitted->narrowed, request);
    fitted->narrowed.job.plan.schedule = (char *)"1f1b";
    fitted->narrowed.job.plan.objective = JOB_THROUGHPUT;
    fitted->narrowed.request.devices = fitted->devices;
}

static void fitted_finish(struct fitted *fitted)
{
    narrowed_finish(&fitted->narrowed);
    free(fitted->devices);
}

static int64_t hidden_of(const struct graph *graph)
{
    return tensor_size(&graph->tensors[graph->blocks[0].output], 'h');
}

int galvatron_spec_of(const struct planner_request *request, struct galvatron_spec *out,
                      struct error *err)
{
    const struct graph *graph = request->graph;
    int share = hosts_share(request->devices, request->device_count);
    uint64_t memory = planner_memory_limit(request, 0);
    if (share == 0)
        return error_set(err, -EINVAL,
                         "Galvatron's nodes have equally many devices, and these hosts have not");
    for (int i = 1; i < request->device_count; i++) {
        uint64_t bytes = planner_memory_limit(request, i);
        memory = bytes < memory ? bytes : memory;
    }
    *out = galvatron_spec_default();
    out->types[0] = (struct galvatron_type){hidden_of(graph), graph_positions(graph),
                                            (int)graph->block_count - 2};
    out->type_count = 1;
    out->nodes = request->device_count / share;
    out->gpus_per_node = share;
    out->memory_gb = (double)memory / (double)(1ull << 30);
    out->batch = request->job->train.global_batch;
    return 0;
}

int galvatron_spec_matches(const struct planner_request *request, const struct galvatron_spec *spec,
                           struct error *err)
{
    struct galvatron_spec own;
    int rc = galvatron_spec_of(request, &own, err);
    if (rc < 0)
        return rc;
    if (spec->type_count != 1 || spec->types[0].hidden != own.types[0].hidden ||
        spec->types[0].seq != own.types[0].seq || spec->types[0].count != own.types[0].count)
        return error_set(err, -EINVAL,
                         "the spec is of other layers than the job, which has %d of hidden size "
                         "%lld with sequences of %lld: leave one of them out",
                         own.types[0].count, (long long)own.types[0].hidden,
                         (long long)own.types[0].seq);
    if (spec->nodes != own.nodes || spec->gpus_per_node != own.gpus_per_node)
        return error_set(err, -EINVAL,
                         "the spec has %d nodes of %d devices, and the cluster %d of %d: leave one "
                         "of them out",
                         spec->nodes, spec->gpus_per_node, own.nodes, own.gpus_per_node);
    if (spec->batch != own.batch)
        return error_set(err, -EINVAL, "the spec's batch is %lld, and the job's %lld",
                         (long long)spec->batch, (long long)own.batch);
    return 0;
}

/* Whose rows they are: fitted is NULL without a job. */
struct comparison {
    struct fitted *fitted;
    const struct galvatron_problem *problem;
    const atomic_bool *stop;
};

static void judge_row(const struct comparison *comparison, struct galvatron_row *row)
{
    row->verdict = xcalloc(1, sizeof *row->verdict);
    if (galvatron_judge(comparison->problem, &row->theirs, row->verdict, &row->words) == 0)
        return;
    free(row->verdict);
    row->verdict = NULL;
}

/* Copy the answer of a search to the row; if nothing fits, the smallest plan. */
static int take_answer(const struct comparison *comparison, struct planner_result *result, int rc,
                       struct galvatron_row *row)
{
    if ((rc == 0 || rc == -ENOSPC) && result->count > 0)
        row->plan = plan_copy(result->candidates[0].plan);
    candidates_finish(result);
    if (row->plan && galvatron_plan_theirs(row->plan, &comparison->problem->spec, &row->theirs,
                                           &row->words) == 0)
        judge_row(comparison, row);
    return rc == -ECANCELED ? rc : 0;
}

/* Our programs can judge Galvatron's plan like any other. */
static void add_programs(const struct comparison *comparison, struct galvatron_row *row)
{
    const struct galvatron_problem *problem = comparison->problem;
    struct planner_result result = {0};
    if (!comparison->fitted) {
        error_set(&row->programs, 0, "no job names a model of ours");
        return;
    }
    struct plan *ours = galvatron_plan_ours(&row->theirs, &problem->spec,
                                            problem->profile.sequence_parallel, &row->programs);
    if (ours && simulate_programs(&comparison->fitted->narrowed.request, ours, &result,
                                  &row->programs) == 0)
        row->plan = plan_copy(result.candidates[0].plan);
    if (row->plan && !result.candidates[0].fits)
        error_set(&row->programs, 0, "our programs of it need more than a device has");
    candidates_finish(&result);
}

static int add_search(const struct comparison *comparison, const char *search,
                      struct galvatron_row *row)
{
    struct planner_result result;
    row->from = search;
    enum galvatron_goal goal =
        strcmp(search, NEUTRAL_SEARCH) == 0 ? GALVATRON_NEUTRAL : GALVATRON_FORMULA;
    if (goal == GALVATRON_NEUTRAL || strcmp(search, GALVATRON_SEARCH) == 0) {
        int rc = galvatron_search(comparison->problem, goal, comparison->stop, &row->theirs,
                                  &row->words);
        if (rc < 0)
            return rc == -ECANCELED ? rc : 0;
        judge_row(comparison, row);
        add_programs(comparison, row);
        return 0;
    }
    if (!comparison->fitted)
        return error_set(&row->words, -EINVAL,
                         "the search '%s' needs a job and a cluster: without, there are "
                         "'" GALVATRON_SEARCH "' and '" NEUTRAL_SEARCH "'",
                         search);
    comparison->fitted->narrowed.job.plan.search = (char *)search;
    int rc = planner_run(&comparison->fitted->narrowed.request, &result, &row->words);
    return take_answer(comparison, &result, rc, row);
}

static int add_given(const struct comparison *comparison, struct plan *given,
                     struct galvatron_plan *theirs, struct galvatron_row *row)
{
    struct planner_result result = {0};
    row->from = "given";
    if (theirs) {
        row->theirs = *theirs;
        judge_row(comparison, row);
        add_programs(comparison, row);
        return 0;
    }
    if (!comparison->fitted) {
        plan_destroy(given);
        return error_set(&row->words, -EINVAL, "a plan of ours needs its job and a cluster");
    }
    int rc = planner_given(&comparison->fitted->narrowed.request, given, &result, &row->words);
    return take_answer(comparison, &result, rc, row);
}

int galvatron_compare(const struct planner_request *request,
                      const struct galvatron_problem *problem, const char *const *names,
                      struct plan *given, struct galvatron_plan *given_theirs,
                      struct galvatron_rows *out, struct error *err)
{
    struct fitted fitted;
    struct comparison comparison = {request ? &fitted : NULL, problem,
                                    request ? request->stop : NULL};
    bool one = given || given_theirs;
    size_t wanted = one ? 1 : 0;
    int rc = 0;
    while (!one && names[wanted] && strcmp(names[wanted], GALVATRON_SEARCH) != 0)
        wanted++;
    *out = (struct galvatron_rows){.items = xcalloc(wanted + 1, sizeof *out->items)};
    if (request)
        fitted_init(&fitted, request, &problem->profile);
    for (; out->count < wanted && rc == 0; out->count++) {
        struct galvatron_row *row = &out->items[out->count];
        rc = one ? add_given(&comparison, given, given_theirs, row)
                 : add_search(&comparison, names[out->count], row);
    }
    if (rc == 0) {
        out->count++;
        rc = add_search(&comparison, GALVATRON_SEARCH, &out->items[out->count - 1]);
    }
    if (rc < 0)
        error_set(err, rc, "%s", out->items[out->count - 1].words.text);
    if (request)
        fitted_finish(&fitted);
    return rc;
}

void galvatron_rows_finish(struct galvatron_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        plan_destroy(rows->items[i].plan);
        galvatron_plan_finish(&rows->items[i].theirs);
        free(rows->items[i].verdict);
    }
    free(rows->items);
    *rows = (struct galvatron_rows){0};
}
