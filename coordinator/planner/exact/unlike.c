/* unlike.c - shares of samples by every choice of axes that split them.
 *
 * Axes that do not split the samples divide a block's work evenly, or not at all; cuts of samples
 * are those of placement.h. So for each choice it is known what a device has at least, and the
 * device that takes longest is what the stage takes. A stage of a step takes e + n t for n blocks
 * of the run, e for an end of the model: the longest stage is the least L for which the stages
 * together have room for all blocks, the sum of (L - e) / t, rounded down. */
#include "coordinator/planner/exact/unlike.h"

#include "common/base/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-12

/* Of the samples, and of all else what axes divide that are not among these. */
static double share_of(const struct mesh *mesh, unsigned axes, int64_t samples, int rank)
{
    struct shape shape = {.dims = 1, .dim = "b", .size = {samples}};
    struct placement batch = {0};
    assert(mesh->axes >= 0 && mesh->axes <= AXES_MAX);
    for (int axis = mesh->axes - 1; axis >= 0; axis--)
        if (axes >> axis & 1)
            placement_append(&batch, 0, axis);
    struct box box = placement_slice(mesh, &shape, &batch, rank);
    return (double)box_count(&box) / (double)samples * mesh_span(mesh, axes) / mesh_count(mesh);
}

/* What one device would take for the whole block. */
static struct part_cost alone(struct costs *costs, int device, int block, int64_t samples)
{
    const struct mesh mesh = {0};
    const struct strategy strategy = {0};
    struct part_cost cost = {0};
    costs_block(costs, sites_add(&costs->sites, device, &mesh), block, &strategy, NULL, samples,
                &cost, NULL);
    return cost;
}

/* A block on the stage, on the ranks that stand for it. */
static double block_seconds(struct costs *costs, const struct site *site, int block,
                            int64_t samples)
{
    double least = INFINITY;
    for (unsigned axes = 0; axes < 1u << site->mesh.axes; axes++) {
        double most = 0;
        if (mesh_span(&site->mesh, axes) > samples)
            continue;
        for (int i = 0; i < site->representative_count; i++) {
            int rank = site->representatives[i];
            struct part_cost cost = alone(costs, site->first + rank, block, samples);
            double shared_s = cost.forward_s + cost.backward_s - cost.fixed_s;
            most = fmax(most, cost.fixed_s + shared_s * share_of(&site->mesh, axes, samples, rank));
        }
        least = fmin(least, most);
    }
    return least;
}

/* Of a pipeline: what each of its stages takes for an end of the model, and for a block of the run.
 */
struct stages {
    int count;
    double *end_s, *block_s;
};

/* How many blocks a stage has room for that takes so long. */
static double room(const struct stages *stages, int stage, double longest, int blocks)
{
    double each = stages->block_s[stage], left_s = longest - stages->end_s[stage];
    return each > 0 ? fmin(floor(left_s / each * (1 + ROUNDING)), blocks) : blocks;
}

/* The least that the longest takes. */
static double find_longest(const struct stages *stages, int blocks)
{
    double longest = 0;
    for (int i = 0; i < stages->count; i++)
        longest = fmax(longest, stages->end_s[i]);
    for (;;) {
        double next = INFINITY, places = 0;
        for (int i = 0; i < stages->count; i++) {
            double has = room(stages, i, longest, blocks);
            places += has;
            next = fmin(next, stages->end_s[i] + (has + 1) * stages->block_s[i]);
        }
        if (places >= blocks || !(next > longest) || !isfinite(next))
            return longest;
        longest = next;
    }
}

/* Of all its blocks. */
static double find_sum(const struct stages *stages, int blocks)
{
    double fastest = INFINITY, sum = 0;
    for (int i = 0; i < stages->count; i++) {
        fastest = fmin(fastest, stages->block_s[i]);
        sum += stages->end_s[i];
    }
    return sum + blocks * fastest;
}

static void fill(const struct stages *stages, struct costs *costs, const struct space_point *point,
                 struct block_run run)
{
    const struct site **sites = xcalloc((size_t)stages->count, sizeof *sites);
    int last = (int)costs->request->graph->block_count - 1;
    space_sites(costs, point, sites);
    for (int i = 0; i < stages->count; i++)
        stages->block_s[i] = i > 0 && sites[i]->kind == sites[i - 1]->kind
                                 ? stages->block_s[i - 1]
                                 : block_seconds(costs, sites[i], run.last, point->samples);
    if (run.last - run.count >= 0)
        stages->end_s[0] = block_seconds(costs, sites[0], 0, point->samples);
    if (run.last < last)
        stages->end_s[stages->count - 1] +=
            block_seconds(costs, sites[stages->count - 1], last, point->samples);
    free(sites);
}

double unlike_bound(struct costs *costs, const struct space_point *point, struct block_run run)
{
    size_t count = (size_t)point->stages;
    struct stages stages = {point->stages, xcalloc(count, sizeof *stages.end_s),
                            xcalloc(count, sizeof *stages.block_s)};
    fill(&stages, costs, point, run);
    double step_s = find_sum(&stages, run.count) +
                    (point->micro_batches - 1) * find_longest(&stages, run.count);
    free(stages.end_s);
    free(stages.block_s);
    return step_s * (1 - ROUNDING);
}
