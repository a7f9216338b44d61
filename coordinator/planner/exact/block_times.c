/* block_times.c - tries every subset of the mesh axes to split the samples.
 *
 * Axes that do not split the samples divide a block's work evenly or not at all, and cuts of the
 * samples are those of placement.h. So for every subset each device's least share is known. */
#include "coordinator/planner/exact/block_times.h"

#include <assert.h>
#include <math.h>

/* The rank's share of the work if `axes` split the samples and all other axes divide the rest
 * evenly. */
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

struct part_cost block_times_alone(struct costs *costs, int device, struct block_work work)
{
    const struct mesh mesh = {0};
    const struct strategy strategy = {.recompute = work.recompute};
    struct part_cost cost = {0};
    costs_block(costs, sites_add(&costs->sites, device, &mesh), work.block, &strategy, NULL,
                work.samples, &cost, NULL);
    return cost;
}

/* The least share of any rank with this rank's profile. Unless every rank represents itself, it is
 * rounded down to whole samples, since cuts may differ by one sample. */
static double least_share(const struct site *site, unsigned axes, int64_t samples, int rank)
{
    const struct mesh *mesh = &site->mesh;
    int64_t span = mesh_span(mesh, axes), cut = samples / span * span;
    if (site->representative_count == mesh_count(mesh))
        return share_of(mesh, axes, samples, rank);
    return site->weights ? 0 : (double)cut / (double)samples / mesh_count(mesh);
}

void block_times_weights(struct costs *costs, const struct site *site, struct block_work work,
                         double *weights)
{
    double sum = 0;
    for (int i = 0; i < site->representative_count; i++) {
        struct part_cost cost =
            block_times_alone(costs, site->first + site->representatives[i], work);
        weights[i] = 1 / (cost.forward_s + cost.backward_s);
        sum += weights[i];
    }
    for (int i = 0; i < site->representative_count; i++)
        weights[i] /= sum;
}

struct block_times block_times_find(struct costs *costs, const struct site *site,
                                    struct block_work work, const double *weights)
{
    int count = site->representative_count;
    struct block_times times;
    struct part_cost costs_alone[SITE_RANKS_MAX];
    times.formula_s = times.least_s = INFINITY;
    for (int i = 0; i <= count; i++)
        times.accounts_s[i] = INFINITY;
    for (int i = 0; i < count; i++)
        costs_alone[i] = block_times_alone(costs, site->first + site->representatives[i], work);
    for (unsigned axes = 0; axes < 1u << site->mesh.axes; axes++) {
        double most = 0, mean = 0;
        if (mesh_span(&site->mesh, axes) > work.samples)
            continue;
        for (int i = 0; i < count; i++) {
            const struct part_cost *cost = &costs_alone[i];
            double shared_s = cost->forward_s + cost->backward_s - cost->fixed_s;
            int rank = site->representatives[i];
            double seconds =
                cost->fixed_s + shared_s * share_of(&site->mesh, axes, work.samples, rank);
            double least = least_share(site, axes, work.samples, rank);
            times.least_s = fmin(times.least_s, cost->fixed_s + shared_s * least);
            most = fmax(most, seconds);
            mean += weights[i] * seconds;
            times.accounts_s[i] = fmin(times.accounts_s[i], seconds);
        }
        times.formula_s = fmin(times.formula_s, most);
        times.accounts_s[count] = fmin(times.accounts_s[count], mean);
    }
    return times;
}
