/* crossings.c - of all pairs of ends that can meet at a crossing, the one that takes least.
 *
 * Every pair has to be lowered, so the bound is computed only where there are few pairs. Unlike
 * devices have unlike links, and sending may be most of what a stage takes; there more pairs are
 * allowed. */
#include "coordinator/planner/exact/crossings.h"

#include "common/base/memory.h"
#include "coordinator/planner/exact/instance.h"

#include <math.h>
#include <stdlib.h>

#define PAIRS_MAX 4
#define PAIRS_UNLIKE_MAX 64

/* One side of the crossing after `block`; side 0 is the stage before it, 1 the stage behind it. */
static double find_least(struct instance *instance, int stage, int block, int side, int pairs_max)
{
    const struct choices *before = instance_choices(instance, stage - side, block),
                         *after = instance_choices(instance, stage - side + 1, block + 1);
    double least_s = INFINITY;
    if (!before || !after || before->exits * after->entries > pairs_max)
        return 0;
    for (int exit = 0; exit < before->exits; exit++)
        for (int entry = 0; entry < after->entries; entry++) {
            const struct part_cost *cost =
                instance_crossing(instance, stage, block, exit, entry, side);
            least_s = fmin(least_s, cost->forward_s + cost->backward_s);
        }
    return least_s;
}

/* Whether the same blocks meet here as one block earlier. */
static bool is_again(const struct instance *instance, int stage, int block)
{
    const int *before = instance->costs->model.before;
    return block > 0 && before[block] == before[block - 1] &&
           instance_choices(instance, stage, block) ==
               instance_choices(instance, stage, block - 1) &&
           instance_choices(instance, stage + 1, block) ==
               instance_choices(instance, stage + 1, block + 1);
}

void crossings_init(struct crossings *crossings, struct instance *instance)
{
    const struct space_point *point = &instance->point;
    int blocks = instance->blocks;
    bool alike = space_same_speed(instance->costs->request, 0, point->devices);
    int pairs_max = alike ? PAIRS_MAX : PAIRS_UNLIKE_MAX;
    size_t cells = (size_t)point->stages * (size_t)blocks;
    *crossings = (struct crossings){.blocks = blocks};
    crossings->into_s = xcalloc(cells, sizeof *crossings->into_s);
    crossings->out_of_s = xcalloc(cells, sizeof *crossings->out_of_s);
    for (int stage = 0; stage + 1 < point->stages; stage++)
        for (int b = 0; b + 1 < blocks; b++) {
            double *out_of_s = &crossings->out_of_s[stage * blocks + b],
                   *into_s = &crossings->into_s[(stage + 1) * blocks + b + 1];
            bool again = is_again(instance, stage, b);
            *out_of_s = again ? out_of_s[-1] : find_least(instance, stage, b, 0, pairs_max);
            *into_s = again ? into_s[-1] : find_least(instance, stage + 1, b, 1, pairs_max);
        }
}

void crossings_finish(struct crossings *crossings)
{
    free(crossings->into_s);
    free(crossings->out_of_s);
}

double crossings_of(const struct crossings *crossings, int stage, int first, int end)
{
    const int at = stage * crossings->blocks;
    return crossings->into_s ? crossings->into_s[at + first] + crossings->out_of_s[at + end - 1]
                             : 0;
}
