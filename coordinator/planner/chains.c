/* chains.c - stage by stage, from the first and from the last. */
#include "coordinator/planner/chains.h"

#include "common/base/memory.h"
#include "coordinator/planner/instance.h"

#include <math.h>
#include <stdlib.h>

/* Sums that are added up in another order may be so much less. */
#define ROUNDING 1e-12

/* Infinity: the block cannot lie there. */
static double seconds_of(const struct instance *instance, int stage, int block, size_t member)
{
    const struct choices *choices = instance_choices(instance, stage, block);
    return choices ? *(const double *)((const char *)choices + member) : INFINITY;
}

static void improve(struct chain *chain, const struct chain *rest, double seconds)
{
    chain->sum_s = fmin(chain->sum_s, rest->sum_s + seconds);
    chain->longest_s = fmin(chain->longest_s, fmax(rest->longest_s, seconds));
}

/* The stage takes blocks from `first` on, which follow a head, or up to `first`, before a tail. */
static void extend(const struct instance *instance, int stage, int first, int step, size_t member,
                   double most_s, const struct chain *rest, struct chain *row)
{
    double seconds = 0;
    for (int b = step > 0 ? first : first - 1; b >= 0 && b < instance->blocks; b += step) {
        seconds += seconds_of(instance, stage, b, member);
        if (seconds * (1 - ROUNDING) > most_s || isinf(seconds))
            return;
        improve(&row[step > 0 ? b + 1 : b], rest, seconds * (1 - ROUNDING));
    }
}

void chains_init(struct chains *chains, const struct instance *instance, size_t member,
                 double most_s)
{
    int stages = instance->point.stages, blocks = instance->blocks, width = blocks + 1;
    size_t cells = (size_t)(stages + 1) * (size_t)width;
    *chains = (struct chains){blocks, xcalloc(cells, sizeof(struct chain)),
                              xcalloc(cells, sizeof(struct chain))};
    for (size_t i = 0; i < cells; i++)
        chains->heads[i] = chains->tails[i] = (struct chain){INFINITY, INFINITY};
    chains->heads[0] = chains->tails[cells - 1] = (struct chain){0, 0};
    for (int stage = 0; stage < stages; stage++) {
        int last = stages - 1 - stage;
        struct chain *heads = &chains->heads[(stage + 1) * width],
                     *tails = &chains->tails[last * width];
        for (int b = 0; b < width; b++) {
            const struct chain *head = &heads[b - width], *tail = &tails[b + width];
            if (isfinite(head->sum_s))
                extend(instance, stage, b, 1, member, most_s, head, heads);
            if (isfinite(tail->sum_s))
                extend(instance, last, b, -1, member, most_s, tail, tails);
        }
    }
}

void chains_finish(struct chains *chains)
{
    free(chains->heads);
    free(chains->tails);
}

const struct chain *chains_head(const struct chains *chains, int stage, int end)
{
    return &chains->heads[stage * (chains->blocks + 1) + end];
}

const struct chain *chains_tail(const struct chains *chains, int stage, int first)
{
    return &chains->tails[stage * (chains->blocks + 1) + first];
}
