/* memory_price.c - finds the price by bisection: as long as blocks choose more bytes than there
 * are, a byte is worth more.
 *
 * A single stage takes m T + u. Of P stages some stage takes no less than the mean, so a step is no
 * shorter than the sum of m T + u divided by P; nor is it shorter than the first micro-batch
 * through all stages plus m - 1 times the mean of T, or plus m - 1 times the least that the slowest
 * stage can take. */
#include "coordinator/planner/exact/memory_price.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/part_cost.h"
#include "coordinator/planner/exact/instance.h"

#include <math.h>
#include <stdlib.h>

#define BISECTIONS 40

/* What blocks of one place choose. */
struct chosen {
    double least, bytes;
};

struct pricing_of_memory {
    const struct instance *instance;
    double per_second, per_once;
    double budget; /* bytes */
    double fixed_s;
    int slots; /* of the stage that has fewest */
};

/* Bytes on the rank of a stage that needs fewest: which rank has the least memory depends on the
 * stage. */
static uint64_t bytes_of(const struct pricing_of_memory *of, const struct choices *choices,
                         const struct choice *choice, bool last)
{
    uint64_t least = UINT64_MAX;
    for (int rank = 0; rank < (choice->cost.ranks ? choices->site->ranks : 1); rank++) {
        struct part_bytes bytes = *part_cost_bytes(&choice->cost, rank);
        if (last && of->instance->costs->model.tied)
            bytes.state = 0; /* tied weights are counted where they are used first */
        uint64_t sum = taken_sum(&bytes, (uint64_t)of->slots);
        least = sum < least ? sum : least;
    }
    return least;
}

/* Least transient room of a block, including the buffers beside it. */
static double room_bytes(const struct instance *instance, int block)
{
    uint64_t room = UINT64_MAX, beside = UINT64_MAX;
    for (size_t c = 0; c < instance->all_count; c++) {
        const struct choices *choices = instance->all[c];
        if (choices->place != instance->costs->model.place[block])
            continue;
        for (size_t i = 0; i < choices->count; i++) {
            const struct part_cost *cost = &choices->items[i].cost;
            for (int rank = 0; rank < (cost->ranks ? choices->site->ranks : 1); rank++) {
                const struct part_bytes *bytes = part_cost_bytes(cost, rank);
                uint64_t own = taken_larger(bytes->other, bytes->forward);
                room = own < room ? own : room;
                beside = bytes->beside < beside ? bytes->beside : beside;
            }
        }
    }
    return (double)room + 2 * (double)beside;
}

/* What a block chooses at this price per byte, on whichever site is cheapest. */
static struct chosen choose(const struct pricing_of_memory *of, int block, double per_byte)
{
    const struct instance *instance = of->instance;
    int place = instance->costs->model.place[block];
    struct chosen best = {INFINITY, 0};
    for (size_t c = 0; c < instance->all_count; c++) {
        const struct choices *choices = instance->all[c];
        for (size_t i = 0; i < choices->count && choices->place == place; i++) {
            const struct choice *choice = &choices->items[i];
            double bytes = (double)bytes_of(of, choices, choice, block == instance->blocks - 1);
            double seconds = of->per_second * choice->floor_s +
                             of->per_once * choice->floor_once_s + per_byte * bytes;
            if (seconds < best.least || (seconds == best.least && bytes < best.bytes))
                best = (struct chosen){seconds, bytes};
        }
    }
    return best;
}

/* Sum over all blocks at this price; fills `before` if it is not NULL. Equal blocks choose
 * alike. */
static struct chosen choose_all(const struct pricing_of_memory *of, double per_byte, double *before)
{
    const int *place = of->instance->costs->model.place;
    struct chosen sum = {0, 0}, one = {0, 0};
    for (int b = 0; b < of->instance->blocks; b++) {
        if (b == 0 || place[b] != place[b - 1])
            one = choose(of, b, per_byte);
        if (before)
            before[b] = sum.least;
        sum.least += one.least;
        sum.bytes += one.bytes;
    }
    if (before)
        before[of->instance->blocks] = sum.least;
    return sum;
}

static double bound_of(const struct pricing_of_memory *of, double per_byte)
{
    return choose_all(of, per_byte, NULL).least + of->fixed_s - per_byte * of->budget;
}

/* The price that maximizes the bound: above it less memory is chosen than there is. */
static double find_price(const struct pricing_of_memory *of)
{
    struct chosen free_of_charge = choose_all(of, 0, NULL);
    double low = 0, high = free_of_charge.least / fmax(of->budget, 1);
    if (free_of_charge.bytes <= of->budget)
        return 0;
    for (int i = 0; i < BISECTIONS && choose_all(of, high, NULL).bytes > of->budget; i++) {
        low = high;
        high *= 2;
    }
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = (low + high) / 2;
        if (choose_all(of, middle, NULL).bytes > of->budget)
            low = middle;
        else
            high = middle;
    }
    return high;
}

static void take_better(struct memory_price *price, const struct pricing_of_memory *of)
{
    double per_byte = find_price(of), bound_s = bound_of(of, per_byte);
    if (price->bound_s >= bound_s)
        return;
    price->per_second = of->per_second;
    price->per_once = of->per_once;
    price->per_byte = per_byte;
    price->rest_s = of->fixed_s - per_byte * of->budget;
    price->bound_s = bound_s;
    choose_all(of, per_byte, price->before);
}

void memory_price_init(struct memory_price *price, const struct instance *instance)
{
    int stages = instance->point.stages, m = instance->point.micro_batches;
    *price = (struct memory_price){.bound_s = 0};
    price->before = xcalloc((size_t)instance->blocks + 1, sizeof *price->before);
    if (instance->relaxed)
        return;
    struct pricing_of_memory of = {.instance = instance, .slots = instance->slots[0]};
    for (int i = 0; i < stages; i++) {
        double memory = (double)instance_memory(instance, i);
        of.budget += memory - (double)instance->bases[i].bytes.state;
        of.slots = instance->slots[i] < of.slots ? instance->slots[i] : of.slots;
    }
    double largest = 0; /* needed by some stage */
    for (int b = 0; b < instance->blocks; b++)
        largest = fmax(largest, room_bytes(instance, b));
    of.budget -= largest;
    of.per_second = (double)m / stages;
    of.per_once = 1.0 / stages;
    of.fixed_s = stages == 1 ? instance->bases[0].once_s : 0;
    take_better(price, &of);
    of.per_second = 1 + (double)(m - 1) / stages;
    of.per_once = 0;
    if (stages > 1)
        take_better(price, &of);
    of.per_second = 1;
    of.fixed_s = (m - 1) * instance->longest_s;
    if (stages > 1)
        take_better(price, &of);
}

void memory_price_finish(struct memory_price *price)
{
    free(price->before);
}

double memory_price_bound(const struct memory_price *price, int blocks, int first, int end,
                          double seconds, double once_s, uint64_t bytes)
{
    double others = price->before[blocks] - (price->before[end] - price->before[first]);
    return price->per_second * seconds + price->per_once * once_s +
           price->per_byte * (double)bytes + others + price->rest_s;
}
