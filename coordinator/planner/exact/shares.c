/* shares.c - tries every way to use some devices for the samples and the rest for other dims. */
#include "coordinator/planner/exact/shares.h"

#include "common/base/memory.h"
#include "coordinator/planner/space/space.h"

#include <math.h>
#include <stdlib.h>

void splits_init(struct splits *splits, struct costs *costs)
{
    *splits = (struct splits){.costs = costs};
}

void splits_finish(struct splits *splits)
{
    free(splits->known);
    splits->known = NULL;
}

/* Whether any dim of the block's tensors other than the samples can be cut into so many pieces. */
static bool divides_any(const struct graph *graph, int block, int number)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (int i = 0; i <= operation_output(node->operation); i++)
            for (const char *dim = node->dims[i]; *dim; dim++)
                if (*dim != 'b' && dim_divides(*dim, sizes_get(&node->sizes, *dim), number))
                    return true;
    }
    return false;
}

struct mesh shares_mesh(int devices)
{
    struct mesh mesh = {0};
    for (int prime = 2; devices > 1; prime++)
        for (; devices % prime == 0; devices /= prime) {
            if (mesh.axes < AXES_MAX)
                mesh.size[mesh.axes] = prime;
            mesh.axes++;
        }
    return mesh;
}

/* Whether so many devices that all have the same samples can divide the block. In a larger mesh the
 * axes that split the samples are left out: the others, with the roles that they have, must be able
 * to do it alone, since whether they can split a dim does not depend on what is done with the
 * samples. With one sample no axis can split these. Pins of roles are of the whole mesh, and say
 * nothing of a part of it; and if there are so many axes that some have to be merged, it matters
 * which. */
static bool try_split(struct costs *costs, int place, int devices)
{
    const struct job_plan *plan = &costs->request->job->plan;
    struct mesh mesh = shares_mesh(devices);
    size_t count = 0;
    int block = 0;
    for (int axis = 0; axis < mesh.axes && axis < AXES_MAX; axis++)
        if (!divides_any(costs->model.graph, place, mesh.size[axis]))
            return false;
    if (devices == 1 || plan->pin.dp || plan->pin.tp || mesh.axes > AXES_MAX)
        return true;
    while (costs->model.place[block] != place)
        block++;
    free(space_vectors(costs, sites_add(&costs->sites, 0, &mesh), block, 1, &count, NULL));
    return count > 0;
}

bool splits_may(struct splits *splits, int place, int devices)
{
    struct costs *costs = splits->costs;
    size_t count = (size_t)costs->request->device_count;
    if (!splits->known)
        splits->known = xcalloc(costs->model.graph->block_count * count, sizeof *splits->known);
    signed char *known = &splits->known[(size_t)place * count + (size_t)devices - 1];
    if (*known == 0)
        *known = try_split(costs, place, devices) ? 1 : -1;
    return *known > 0;
}

double shares_least(struct splits *splits, int place, int64_t samples, int devices)
{
    double least = INFINITY;
    for (int by_samples = 1; by_samples <= devices && by_samples <= samples; by_samples++) {
        int otherwise = devices / by_samples;
        if (devices % by_samples != 0 || !splits_may(splits, place, otherwise))
            continue;
        double most = ceil((double)samples / by_samples);
        least = fmin(least, most / (double)samples / otherwise);
    }
    return least;
}
