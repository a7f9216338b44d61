/* fit.c - distributes the milliseconds of a layer over its operations: the part that does not
 * depend on the batch by the number of kernels, the rest by their arithmetic. */
#include "coordinator/planner/galvatron/fit.h"

#include "common/models/model.h"
#include "coordinator/planner/costs/hosts.h"

#include <assert.h>
#include <math.h>
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
    struct sizes sizes = graph_sizes(graph, 1);
    struct work work = {0};
    for (int n = block->node_first; n < block->node_first + block->node_count; n++) {
        const struct operation *operation = graph->nodes[n].operation;
        struct box boxes[OPERANDS_MAX] = {0};
        for (int i = 0; i < operation_operands(operation); i++)
            boxes[i] = box_whole(operation->dims[i], &sizes);
        double flops = operation->flops(operation, boxes);
        for (int d = 0; d < DIRECTIONS; d++) {
            if (!has_kernel(operation, d))
                continue;
            work.flops[d] += d == BACKWARD ? flops * operation->backward_flops : flops;
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
        struct profile_rate *rate = find_rate(profile, graph->nodes[n].operation->name);
        strcpy(rate->operation, graph->nodes[n].operation->name);
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
static void fit_link(struct profile_link *link, double gb_s, double narrow)
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
