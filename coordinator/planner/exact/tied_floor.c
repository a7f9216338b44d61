/* tied_floor.c - prices every choice of either block next to every tie of the other.
 *
 * Each pair has to be lowered, so this is done only where there are few: where the stages at the
 * ends have few devices. With many devices each holds little of the weights anyway. */
#include "coordinator/planner/exact/tied_floor.h"

#include "coordinator/planner/exact/instance.h"

#include <math.h>

#define COMBINATIONS_MAX 128

/* Whether no earlier choice has the same tie. */
static bool is_new(const struct choices *choices, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (choices->items[i].tie == choices->items[index].tie)
            return false;
    return true;
}

/* The least u of a block on its stage, over the other end's choices. */
static double find_least(const struct instance *instance, int block, const struct choices *own,
                         const struct choices *others)
{
    int last = instance->point.stages - 1, stage = block == 0 ? 0 : last;
    const struct site *site = instance->sites[stage];
    double least_s = INFINITY;
    for (size_t i = 0; i < others->count; i++) {
        const struct tie tie = {instance->sites[last - stage], &others->items[i].strategy};
        for (size_t j = 0; j < own->count && is_new(others, i); j++) {
            struct part_cost cost;
            if (costs_block(instance->costs, site, block, &own->items[j].strategy, &tie,
                            instance->point.samples, &cost, NULL) == 0)
                least_s = fmin(least_s, cost.once_s);
        }
    }
    return isfinite(least_s) ? least_s : 0;
}

/* Raise the lower bounds on u to at least once_s. */
static void raise(const struct instance *instance, struct choices *choices, double once_s)
{
    choices->least_alone_s = INFINITY;
    for (size_t i = 0; i < choices->count; i++) {
        struct choice *choice = &choices->items[i];
        choice->floor_once_s = fmax(choice->floor_once_s, once_s);
        choices->least_alone_s =
            fmin(choices->least_alone_s,
                 instance->point.micro_batches * choice->floor_s + choice->floor_once_s);
    }
}

struct tied_floor tied_floor_set(struct instance *instance)
{
    int stages = instance->point.stages, last = instance->blocks - 1;
    const struct choices *firsts = instance_choices(instance, 0, 0),
                         *lasts = instance_choices(instance, stages - 1, last);
    if (!instance->costs->model.tied || stages == 1 ||
        firsts->count * lasts->count > COMBINATIONS_MAX)
        return (struct tied_floor){0, 0};
    struct tied_floor floor = {find_least(instance, 0, firsts, lasts),
                               find_least(instance, last, lasts, firsts)};
    for (size_t i = 0; i < instance->all_count; i++)
        if (instance->all[i] == firsts || instance->all[i] == lasts)
            raise(instance, instance->all[i],
                  instance->all[i] == firsts ? floor.first_s : floor.last_s);
    return floor;
}
