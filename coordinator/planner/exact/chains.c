/* chains.c - dynamic programming over the stages, forwards for heads and backwards for tails. */
#include "coordinator/planner/exact/chains.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/part_cost.h"
#include "coordinator/planner/exact/instance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Prices per byte that are tried: zero, and those at which a middle block trades time for
 * memory. */
#define PRICES 8
/* Sums formed in another order may be smaller by this much. */
#define ROUNDING 1e-12

/* A price on one stage; all zero: unused. */
struct price {
    double per_byte, all_s; /* all_s: price of all bytes that the stage's blocks may use */
    double *before;         /* [block]: sum of the least of all blocks before it */
};

/* Bytes that a choice occupies permanently, on the rank with the least memory. Tied weights are
 * counted where they are used first. */
static double bytes_of(const struct instance *instance, int stage, int block,
                       const struct part_cost *cost)
{
    struct part_bytes bytes = *part_cost_bytes(cost, instance->sites[stage]->tight);
    if (instance->costs->model.tied && block == instance->blocks - 1)
        bytes.state = 0;
    return (double)taken_sum(&bytes, (uint64_t)instance->slots[stage]);
}

/* Bytes available to one stage's blocks together, less the smallest transient room that any of its
 * blocks may need. */
static double budget_of(const struct instance *instance, int stage)
{
    double room = INFINITY, memory = (double)instance_memory(instance, stage);
    for (int b = 0; b < instance->blocks; b++) {
        const struct choices *choices = instance_choices(instance, stage, b);
        bool again = b > 0 && choices == instance_choices(instance, stage, b - 1);
        for (size_t i = 0; choices && !again && i < choices->count; i++) {
            const struct part_bytes *bytes =
                part_cost_bytes(&choices->items[i].cost, instance->sites[stage]->tight);
            room = fmin(room, (double)taken_larger(bytes->other, bytes->forward) +
                                  2 * (double)bytes->beside);
        }
    }
    return memory - (double)instance->bases[stage].bytes.state - room;
}

static double seconds_of(const struct chains *chains, const struct choice *choice)
{
    return chains->per_second * choice->floor_s + chains->per_once * choice->floor_once_s;
}

/* The cheapest choice of a block at a price per byte. */
static const struct choice *find_least(const struct chains *chains, const struct instance *instance,
                                       int stage, int block, double per_byte, double *least)
{
    const struct choices *choices = instance_choices(instance, stage, block);
    const struct choice *found = NULL;
    double found_bytes = INFINITY;
    *least = INFINITY;
    for (size_t i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->items[i];
        double bytes = bytes_of(instance, stage, block, &choice->cost);
        double seconds = seconds_of(chains, choice) + per_byte * bytes;
        if (seconds < *least || (seconds == *least && bytes < found_bytes)) {
            *least = seconds;
            found_bytes = bytes;
            found = choice;
        }
    }
    return found;
}

/* From one choice of a block, move to the one that saves the most bytes for its extra time. Returns
 * the price per byte at which that pays, or 0 if no choice is smaller. */
static double find_saving(const struct chains *chains, const struct instance *instance, int stage,
                          int block, const struct choice **at)
{
    const struct choices *choices = instance_choices(instance, stage, block);
    const struct choice *next = NULL;
    double best = INFINITY, bytes = bytes_of(instance, stage, block, &(*at)->cost);
    for (size_t i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->items[i];
        double saved = bytes - bytes_of(instance, stage, block, &choice->cost);
        double price = (seconds_of(chains, choice) - seconds_of(chains, *at)) / saved;
        if (saved > 0 && price < best) {
            best = price;
            next = choice;
        }
    }
    *at = next ? next : *at;
    return next ? best : 0;
}

/* The prices at which a middle block changes its choice, starting from its fastest one. */
static void find_prices(const struct chains *chains, const struct instance *instance, int stage,
                        struct price *prices)
{
    int middle = instance->blocks / 2;
    double least, budget = budget_of(instance, stage);
    if (!instance_choices(instance, stage, middle))
        return;
    const struct choice *at = find_least(chains, instance, stage, middle, 0, &least);
    for (int p = 1; p < PRICES && at; p++) {
        prices[p].per_byte = find_saving(chains, instance, stage, middle, &at);
        prices[p].all_s = prices[p].per_byte * budget;
        if (prices[p].per_byte == 0)
            return;
    }
}

/* Blocks that cannot be on the stage contribute nothing; chains_own() excludes them. */
static void sum_up(const struct chains *chains, const struct instance *instance, int stage,
                   size_t member, struct price *price)
{
    double seconds = 0;
    price->before = xcalloc((size_t)instance->blocks + 1, sizeof *price->before);
    for (int b = 0; b < instance->blocks; b++) {
        const struct choices *choices = instance_choices(instance, stage, b);
        bool again = b > 0 && choices == instance_choices(instance, stage, b - 1);
        if (choices && !again && chains->per_second > 0)
            find_least(chains, instance, stage, b, price->per_byte, &seconds);
        else if (choices && !again)
            seconds = *(const double *)((const char *)choices + member);
        price->before[b + 1] = price->before[b] + (choices ? seconds : 0);
    }
}

static void improve(struct chain *chain, const struct chain *rest, double seconds)
{
    chain->sum_s = fmin(chain->sum_s, rest->sum_s + seconds);
    chain->longest_s = fmin(chain->longest_s, fmax(rest->longest_s, seconds));
}

/* Time of the blocks alone, without crossings. */
static double run_seconds(const struct chains *chains, int stage, int first, int end)
{
    const struct price *prices = &chains->prices[(size_t)stage * PRICES];
    double most = 0;
    for (int p = 0; p < PRICES && prices[p].before; p++)
        most = fmax(most, prices[p].before[end] - prices[p].before[first] - prices[p].all_s);
    return most;
}

double chains_own(const struct chains *chains, int stage, int first, int end)
{
    if ((first == 0) != (stage == 0) || (end == chains->blocks) != (stage == chains->stages - 1))
        return INFINITY;
    const struct least *all = chains->others;
    double others_s =
        all ? all[first].forward_s + all[chains->blocks].seconds - all[end].seconds : 0;
    double crossing_s = chains->per_crossing * crossings_of(chains->crossings, stage, first, end);
    return (run_seconds(chains, stage, first, end) + others_s + crossing_s) * (1 - ROUNDING);
}

/* Extend heads by a stage that starts with block `first`. */
static void extend_head(struct chains *chains, int stage, int first, double most_s)
{
    const struct chain *rest = chains_head(chains, stage, first);
    for (int end = first + 1; end <= chains->blocks && isfinite(rest->sum_s); end++) {
        double seconds = chains_own(chains, stage, first, end);
        if (run_seconds(chains, stage, first, end) > most_s)
            return;
        if (seconds <= most_s)
            improve(&chains->heads[(stage + 1) * (chains->blocks + 1) + end], rest, seconds);
    }
}

/* Extend tails by a stage that ends before block `end`. */
static void extend_tail(struct chains *chains, int stage, int end, double most_s)
{
    const struct chain *rest = chains_tail(chains, stage + 1, end);
    for (int first = end - 1; first >= 0 && isfinite(rest->sum_s); first--) {
        double seconds = chains_own(chains, stage, first, end);
        if (run_seconds(chains, stage, first, end) > most_s)
            return;
        if (seconds <= most_s)
            improve(&chains->tails[stage * (chains->blocks + 1) + first], rest, seconds);
    }
}

static void fill(struct chains *chains, const struct instance *instance, size_t member,
                 double most_s)
{
    int stages = chains->stages;
    size_t cells = (size_t)(stages + 1) * (size_t)(chains->blocks + 1);
    chains->heads = xcalloc(cells, sizeof *chains->heads);
    chains->tails = xcalloc(cells, sizeof *chains->tails);
    for (size_t i = 0; i < cells; i++)
        chains->heads[i] = chains->tails[i] = (struct chain){INFINITY, INFINITY};
    chains->heads[0] = chains->tails[cells - 1] = (struct chain){0, 0};
    for (int i = 0; i < stages * PRICES; i++)
        if (i % PRICES == 0 || chains->prices[i].per_byte > 0)
            sum_up(chains, instance, i / PRICES, member, &chains->prices[i]);
    for (int stage = 0; stage < stages; stage++)
        for (int b = 0; b <= chains->blocks; b++) {
            extend_head(chains, stage, b, most_s);
            extend_tail(chains, stages - 1 - stage, b, most_s);
        }
}

void chains_init(struct chains *chains, const struct instance *instance, size_t member,
                 double per_crossing, double most_s)
{
    *chains = (struct chains){.stages = instance->point.stages,
                              .blocks = instance->blocks,
                              .crossings = &instance->crossings,
                              .per_crossing = per_crossing};
    chains->prices = xcalloc((size_t)chains->stages * PRICES, sizeof *chains->prices);
    fill(chains, instance, member, most_s);
}

void chains_init_among(struct chains *chains, const struct instance *instance, size_t member,
                       const struct least *others)
{
    *chains = (struct chains){.stages = instance->point.stages,
                              .blocks = instance->blocks,
                              .crossings = &instance->crossings,
                              .others = others};
    chains->prices = xcalloc((size_t)chains->stages * PRICES, sizeof *chains->prices);
    fill(chains, instance, member, INFINITY);
}

void chains_init_priced(struct chains *chains, const struct instance *instance, double per_second,
                        double per_once, double most_s)
{
    *chains = (struct chains){.stages = instance->point.stages,
                              .blocks = instance->blocks,
                              .per_second = per_second,
                              .per_once = per_once,
                              .crossings = &instance->crossings,
                              .per_crossing = per_second,
                              .others = per_once > 0 ? instance->before : NULL};
    chains->prices = xcalloc((size_t)chains->stages * PRICES, sizeof *chains->prices);
    for (int i = 0; i < chains->stages; i++)
        find_prices(chains, instance, i, &chains->prices[(size_t)i * PRICES]);
    fill(chains, instance, 0, most_s);
}

void chains_finish(struct chains *chains)
{
    for (int i = 0; i < chains->stages * PRICES && chains->prices; i++)
        free(chains->prices[i].before);
    free(chains->prices);
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
