/* shares.c - tries every way to use some devices for the samples and the rest for other dims. */
#include "coordinator/planner/space/shares.h"

#include <math.h>

/* Whether the number divides any dim of the block's tensors other than the samples. */
static bool divides_any(const struct graph *graph, int block, int number)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct operation *operation = graph->nodes[n].operation;
        for (int i = 0; i <= operation_output(operation); i++)
            for (const char *dim = operation->dims[i]; *dim; dim++)
                if (*dim != 'b' && sizes_get(&graph->sizes, *dim) % number == 0)
                    return true;
    }
    return false;
}

/* Whether axes with this many devices together can split the block's work otherwise than by
 * samples. An axis has a prime number of devices or a product of primes. */
static bool may_split(const struct graph *graph, int block, int devices)
{
    for (int prime = 2; devices > 1; prime++)
        for (bool first = true; devices % prime == 0; devices /= prime, first = false)
            if (first && !divides_any(graph, block, prime))
                return false;
    return true;
}

double shares_least(const struct graph *graph, int block, int64_t samples, int devices)
{
    double least = 1;
    for (int by_samples = 1; by_samples <= devices; by_samples++) {
        int otherwise = devices / by_samples;
        if (devices % by_samples != 0 || !may_split(graph, block, otherwise))
            continue;
        double most = ceil((double)samples / by_samples);
        least = fmin(least, most / (double)samples / otherwise);
    }
    return least;
}
