/* block_costs.c - lowering parts on scratch plans of the short model, summing, remembering. */
#include "coordinator/planner/block_costs.h"

#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/pricing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a cost depends on; compared by its bytes. */
struct cost_key {
    int64_t samples;
    int32_t kind, index, side, site, one_rank, pair, tie;
    int32_t unused; /* keys are hashed and compared by their bytes: none may be padding */
    uint8_t roles[2][AXES_MAX], zero[2], recompute[2]; /* roles: one more than their row */
};

struct cost_entry {
    bool taken;
    struct cost_key key;
    struct part_cost cost;
};

int costs_init(struct costs *costs, const struct planner_request *request, struct error *err)
{
    *costs = (struct costs){.request = request, .only_rank = -1};
    int rc = short_graph_init(&costs->model, request->graph, err);
    if (rc < 0)
        return rc;
    int blocks = (int)costs->model.graph->block_count;
    costs->sites.request = request;
    costs->ways = ways_create();
    costs->one = plan_create(1, blocks);
    costs->two = plan_create(2, blocks);
    costs->one->overlap = costs->two->overlap = request->job->plan.overlap;
    costs->entry_capacity = 1024;
    costs->entries = xcalloc(costs->entry_capacity, sizeof *costs->entries);
    return 0;
}

void costs_finish(struct costs *costs)
{
    short_graph_finish(&costs->model);
    sites_finish(&costs->sites);
    ways_destroy(costs->ways);
    ties_finish(&costs->ties);
    plan_destroy(costs->one);
    plan_destroy(costs->two);
    free(costs->entries);
}

struct strategy strategy_of(const struct plan *plan, int block)
{
    struct strategy strategy = {.zero = plan->blocks[block].zero,
                                .recompute = plan->blocks[block].recompute};
    int axes = plan->stages[plan->blocks[block].stage].mesh.axes;
    memcpy(strategy.roles, plan->blocks[block].roles, (size_t)axes * sizeof *strategy.roles);
    return strategy;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void part_cost_add(struct part_cost *sum, const struct part_cost *cost)
{
    sum->forward_s += cost->forward_s;
    sum->backward_s += cost->backward_s;
    sum->least_s += cost->least_s;
    sum->fixed_s += cost->fixed_s;
    sum->once_s += cost->once_s;
    sum->state_bytes += cost->state_bytes;
    sum->saved_bytes += cost->saved_bytes;
    sum->communication_bytes += cost->communication_bytes;
    sum->beside_bytes = larger(sum->beside_bytes, cost->beside_bytes);
    sum->forward_bytes = larger(sum->forward_bytes, cost->forward_bytes);
    sum->other_bytes = larger(sum->other_bytes, cost->other_bytes);
    sum->passing_bytes = larger(sum->passing_bytes, cost->passing_bytes);
}

static void take_longer(double most[QUEUES], const double seconds[QUEUES])
{
    for (int queue = 0; queue < QUEUES; queue++)
        most[queue] = fmax(most[queue], seconds[queue]);
}

/* Of two ranks of one stage: the larger of every number but the least. */
static void take_larger(struct part_cost *most, const struct part_cost *cost)
{
    most->forward_s = cost->forward_s > most->forward_s ? cost->forward_s : most->forward_s;
    most->backward_s = cost->backward_s > most->backward_s ? cost->backward_s : most->backward_s;
    most->fixed_s = cost->fixed_s > most->fixed_s ? cost->fixed_s : most->fixed_s;
    most->once_s = cost->once_s > most->once_s ? cost->once_s : most->once_s;
    take_longer(most->seconds.forward, cost->seconds.forward);
    take_longer(most->seconds.backward, cost->seconds.backward);
    take_longer(most->seconds.weights, cost->seconds.weights);
    take_longer(most->seconds.reduce, cost->seconds.reduce);
    most->seconds.other = fmax(most->seconds.other, cost->seconds.other);
    most->state_bytes = larger(most->state_bytes, cost->state_bytes);
    most->saved_bytes = larger(most->saved_bytes, cost->saved_bytes);
    most->communication_bytes = larger(most->communication_bytes, cost->communication_bytes);
    most->beside_bytes = larger(most->beside_bytes, cost->beside_bytes);
    most->forward_bytes = larger(most->forward_bytes, cost->forward_bytes);
    most->other_bytes = larger(most->other_bytes, cost->other_bytes);
    most->passing_bytes = larger(most->passing_bytes, cost->passing_bytes);
}

/* Seconds of both queues side by side, each slowed by the factor while both run: Galvatron
 * (arXiv 2211.13878), section 3.3. */
static double side_by_side(const double seconds[QUEUES], double factor)
{
    double shorter = fmin(seconds[QUEUE_COMPUTE], seconds[QUEUE_COMMUNICATION]);
    double longer = fmax(seconds[QUEUE_COMPUTE], seconds[QUEUE_COMMUNICATION]);
    return shorter * factor + fmax(0, longer - shorter);
}

/* What more there is beside the same computing adds. */
static double added(const double seconds[QUEUES], const double more[QUEUES], double factor)
{
    double both[QUEUES] = {seconds[QUEUE_COMPUTE],
                           seconds[QUEUE_COMMUNICATION] + more[QUEUE_COMMUNICATION]};
    return more[QUEUE_COMPUTE] + side_by_side(both, factor) - side_by_side(seconds, factor);
}

static void overlap(struct part_cost *cost, double factor)
{
    const struct part_seconds *seconds = &cost->seconds;
    cost->forward_s = side_by_side(seconds->forward, factor);
    cost->backward_s = side_by_side(seconds->backward, factor);
    cost->once_s = seconds->other + added(seconds->forward, seconds->weights, factor) +
                   added(seconds->backward, seconds->reduce, factor);
}

static void add_section(const struct pricing *pricing, const struct program *program,
                        enum section section, double seconds[QUEUES])
{
    struct range range = program->sections[section];
    for (int i = range.first; i < range.first + range.count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        seconds[instruction->queue] += pricing_seconds(pricing, program, instruction);
    }
}

static double fixed_seconds(const struct pricing *pricing, const struct program *program)
{
    double seconds = 0;
    for (int section = SECTION_FORWARD; section <= SECTION_BACKWARD; section++) {
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            seconds += pricing_fixed_seconds(pricing, program, &program->instructions[i]);
    }
    return seconds;
}

static struct part_cost sum_up(const struct pricing *pricing, const struct lowered_part *part)
{
    const struct program *program = part->program;
    struct part_cost cost = {
        .state_bytes = program->bytes[REGION_STATE],
        .saved_bytes = program->slot_bytes,
        .communication_bytes = program->bytes[REGION_COMMUNICATION] - 2 * program->beside_bytes,
        .beside_bytes = program->beside_bytes,
        .forward_bytes = part->forward_bytes,
        .other_bytes = part->other_bytes,
        .passing_bytes = part->passing_bytes,
    };
    double other[QUEUES] = {0};
    add_section(pricing, program, SECTION_FORWARD, cost.seconds.forward);
    add_section(pricing, program, SECTION_BACKWARD, cost.seconds.backward);
    add_section(pricing, program, SECTION_WEIGHTS, cost.seconds.weights);
    add_section(pricing, program, SECTION_REDUCE, cost.seconds.reduce);
    add_section(pricing, program, SECTION_CLEAR, other);
    add_section(pricing, program, SECTION_METRICS, other);
    add_section(pricing, program, SECTION_UPDATE, other);
    cost.seconds.other = other[QUEUE_COMPUTE];
    cost.fixed_s = fixed_seconds(pricing, program);
    overlap(&cost, pricing_overlap(pricing, program));
    return cost;
}

/* Does every rank of `count` shard as much of the block's weights? They are cut along the first
 * dim. Of those with the same loss one alone counts it, without a buffer of its own. */
static bool shards_evenly(const struct graph *graph, int block, int count)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct operation *operation = graph->nodes[n].operation;
        for (int i = operation->input_count; i < operation_output(operation); i++)
            if (sizes_get(&graph->sizes, operation->dims[i][0]) % count != 0)
                return false;
        if (operation->is_loss)
            return false;
    }
    return true;
}

/* Is what the first rank takes for a part on one stage what every rank takes? */
static bool is_alike(const struct costs *costs, const struct site *site, enum part_kind kind,
                     int block, int64_t samples)
{
    int count = mesh_count(&site->mesh);
    return site->alike && samples % count == 0 &&
           (kind == PART_JOINT || shards_evenly(costs->model.graph, block, count));
}

/* What happens once, without that of the block whose weights were lowered too. */
static void leave_out(struct part_seconds *seconds, const struct part_seconds *first)
{
    for (int queue = 0; queue < QUEUES; queue++) {
        seconds->weights[queue] = fmax(0, seconds->weights[queue] - first->weights[queue]);
        seconds->reduce[queue] = fmax(0, seconds->reduce[queue] - first->reduce[queue]);
    }
    seconds->other = fmax(0, seconds->other - first->other);
}

/* The part on the ranks that stand for the stage `side` of the plan. */
static int lower_and_sum(struct costs *costs, const struct plan *plan, const struct part *part,
                         const struct site *const sites[2], int side, struct part_cost *out,
                         struct error *err)
{
    const struct site *site = sites[side];
    struct pricing pricing = {costs->request,
                              mesh_count(&sites[0]->mesh),
                              {sites[0]->first, sites[1] ? sites[1]->first : 0}};
    int base = side ? pricing.split : 0;
    bool one = costs->one_rank ? site->even
                               : !sites[1] && is_alike(costs, site, part->kind, part->index,
                                                       plan->micro_batch_samples);
    int count = one ? 1 : site->representative_count;
    *out = (struct part_cost){0};
    for (int i = 0; i < (costs->only_rank < 0 ? count : 1); i++) {
        struct lowered_part lowered;
        int rank = costs->only_rank < 0 ? site->representatives[i] : costs->only_rank;
        int rc =
            lower_part(costs->model.graph, plan, base + rank, part, costs->ways, &lowered, err);
        if (rc < 0)
            return rc;
        struct part_cost cost = sum_up(&pricing, &lowered);
        lower_part_done(costs->ways, &lowered);
        double seconds = cost.seconds.forward[QUEUE_COMPUTE] + cost.seconds.backward[QUEUE_COMPUTE];
        take_larger(out, &cost);
        out->least_s = i == 0 || seconds < out->least_s ? seconds : out->least_s;
        costs->lowered++;
    }
    return 0;
}

static void key_strategy(struct cost_key *key, int which, const struct site *site,
                         const struct strategy *strategy)
{
    for (int axis = 0; axis < site->mesh.axes; axis++) {
        int row = 0;
        while (roles[row] != strategy->roles[axis])
            row++;
        key->roles[which][axis] = (uint8_t)(row + 1);
    }
    key->zero[which] = (uint8_t)strategy->zero;
    key->recompute[which] = (uint8_t)strategy->recompute;
}

/* The entry of this key, or the free one where it belongs. */
static struct cost_entry *find_entry(struct cost_entry *entries, size_t capacity,
                                     const struct cost_key *key)
{
    size_t i = hash_words(HASH_START, key, sizeof *key) & (capacity - 1);
    while (entries[i].taken && memcmp(&entries[i].key, key, sizeof *key) != 0)
        i = (i + 1) & (capacity - 1);
    return &entries[i];
}

static void remember(struct costs *costs, const struct cost_key *key, const struct part_cost *cost)
{
    if (2 * (costs->entry_count + 1) > costs->entry_capacity) {
        size_t capacity = 2 * costs->entry_capacity;
        struct cost_entry *entries = xcalloc(capacity, sizeof *entries);
        for (size_t i = 0; i < costs->entry_capacity; i++)
            if (costs->entries[i].taken)
                *find_entry(entries, capacity, &costs->entries[i].key) = costs->entries[i];
        free(costs->entries);
        costs->entries = entries;
        costs->entry_capacity = capacity;
    }
    *find_entry(costs->entries, costs->entry_capacity, key) =
        (struct cost_entry){.taken = true, .key = *key, .cost = *cost};
    costs->entry_count++;
}

/* Sites and strategies of the scratch plan: `first` holds for blocks before `cut`. */
static struct plan *set_scratch(struct costs *costs, const struct site *const sites[2], int cut,
                                int64_t samples)
{
    struct plan *plan = sites[1] ? costs->two : costs->one;
    for (int i = 0; i < plan->stage_count; i++) {
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
        plan->stages[i].mesh = sites[i]->mesh;
        plan->stages[i].block_first = i ? cut : 0;
        plan->stages[i].block_count = i || !sites[1] ? plan->block_count - (i ? cut : 0) : cut;
    }
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].stage = sites[1] && b >= cut;
    plan->micro_batch_samples = samples;
    return plan;
}

static void set_block(struct plan *plan, int block, const struct strategy *strategy)
{
    memcpy(plan->blocks[block].roles, strategy->roles, sizeof strategy->roles);
    plan->blocks[block].zero = strategy->zero;
    plan->blocks[block].recompute = strategy->recompute;
}

bool costs_accepts(struct costs *costs, const struct site *site, int block,
                   const struct strategy *strategy, int64_t samples, struct error *err)
{
    const struct site *sites[2] = {site, NULL};
    struct plan *plan = set_scratch(costs, sites, 0, samples);
    int place = costs->model.place[block];
    set_block(plan, place, strategy);
    return plan_check_block(plan, costs->model.graph, place, err) == 0;
}

/* A block, with those weights of its partner that it shares. */
static int tied_cost(struct costs *costs, const struct site *site, int place,
                     const struct strategy *strategy, const struct tie *tie, int64_t samples,
                     struct part_cost *out, struct error *err)
{
    int last = (int)costs->model.graph->block_count - 1, side = place == last;
    struct part part = {PART_BLOCK, place, tie ? last - place : -1};
    const struct site *sites[2] = {site, NULL};
    bool across = tie && tie->site != site;
    if (across) {
        sites[side] = site;
        sites[!side] = tie->site;
    }
    struct plan *plan = set_scratch(costs, sites, last, samples);
    set_block(plan, place, strategy);
    if (tie)
        set_block(plan, last - place, tie->strategy);
    return lower_and_sum(costs, plan, &part, sites, across ? side : 0, out, err);
}

/* place: of the short model. */
static int tie_of(struct costs *costs, const struct site *site, int place,
                  const struct strategy *strategy)
{
    bool ends = place == 0 || place + 1 == (int)costs->model.graph->block_count;
    return costs->model.tied && ends ? ties_find(&costs->ties, costs->model.graph, place,
                                                 strategy->roles, site->mesh.axes, strategy->zero)
                                     : 0;
}

int costs_tie(struct costs *costs, const struct site *site, int block,
              const struct strategy *strategy)
{
    return tie_of(costs, site, costs->model.place[block], strategy);
}

int costs_block(struct costs *costs, const struct site *site, int block,
                const struct strategy *strategy, const struct tie *tie, int64_t samples,
                struct part_cost *out, struct error *err)
{
    int place = costs->model.place[block], last = (int)costs->model.graph->block_count - 1;
    bool ends = place == 0 || place == last;
    if (!costs->model.tied || !ends || (tie && place == 0 && tie->site == site))
        tie = NULL;
    /* Messages between stages are divided among ranks: they are not alike. */
    bool across = tie && tie->site != site;
    bool alike = !across && is_alike(costs, site, PART_BLOCK, place, samples);
    struct cost_key key = {.one_rank = costs->one_rank && !alike,
                           .samples = samples,
                           .kind = PART_BLOCK,
                           .index = place,
                           .site = site->kind};
    key_strategy(&key, 0, site, strategy);
    if (tie) {
        key.tie = tie_of(costs, tie->site, last - place, tie->strategy);
        key.side = tie->site == site ? 1 : 2;
        key.pair = tie->site == site ? 0
                   : place == 0      ? sites_pair(&costs->sites, site, tie->site)
                                     : sites_pair(&costs->sites, tie->site, site);
    }
    const struct cost_entry *known = find_entry(costs->entries, costs->entry_capacity, &key);
    if (known->taken) {
        *out = known->cost;
        return 0;
    }
    int rc = tied_cost(costs, site, place, strategy, tie, samples, out, err);
    if (rc == 0 && tie && tie->site == site) {
        struct part_cost first;
        rc = costs_block(costs, site, 0, tie->strategy, NULL, samples, &first, err);
        leave_out(&out->seconds, &first.seconds);
        overlap(out, costs->request->devices[site->first].profile->overlap);
        out->state_bytes -= first.state_bytes;
    }
    if (rc == 0)
        remember(costs, &key, out);
    return rc;
}

int costs_joint(struct costs *costs, const struct site *site, int block,
                const struct strategy *before, const struct strategy *after, int64_t samples,
                struct part_cost *out, struct error *err)
{
    const struct site *sites[2] = {site, NULL};
    struct part part = {PART_JOINT, costs->model.before[block], -1};
    struct cost_key key = {.one_rank = costs->one_rank &&
                                       !is_alike(costs, site, PART_JOINT, part.index, samples),
                           .samples = samples,
                           .kind = PART_JOINT,
                           .index = part.index,
                           .site = site->kind};
    key_strategy(&key, 0, site, before);
    key_strategy(&key, 1, site, after);
    memset(key.zero, 0, sizeof key.zero);
    memset(key.recompute, 0, sizeof key.recompute);
    const struct cost_entry *known = find_entry(costs->entries, costs->entry_capacity, &key);
    if (known->taken) {
        *out = known->cost;
        return 0;
    }
    struct plan *plan = set_scratch(costs, sites, 0, samples);
    set_block(plan, part.index, before);
    set_block(plan, part.index + 1, after);
    int rc = lower_and_sum(costs, plan, &part, sites, 0, out, err);
    if (rc == 0)
        remember(costs, &key, out);
    return rc;
}

int costs_crossing(struct costs *costs, const struct site *const sites[2], int block,
                   const struct strategy *before, const struct strategy *after, int64_t samples,
                   int side, struct part_cost *out, struct error *err)
{
    struct part part = {PART_CROSSING, 0, -1};
    int place = costs->model.before[block];
    struct cost_key key = {.one_rank = costs->one_rank,
                           .samples = samples,
                           .kind = PART_CROSSING,
                           .index = place,
                           .side = side,
                           .pair = sites_pair(&costs->sites, sites[0], sites[1])};
    key_strategy(&key, 0, sites[0], before);
    key_strategy(&key, 1, sites[1], after);
    memset(key.zero, 0, sizeof key.zero);
    memset(key.recompute, 0, sizeof key.recompute);
    const struct cost_entry *known = find_entry(costs->entries, costs->entry_capacity, &key);
    if (known->taken) {
        *out = known->cost;
        return 0;
    }
    struct plan *plan = set_scratch(costs, sites, place + 1, samples);
    set_block(plan, place, before);
    set_block(plan, place + 1, after);
    int rc = lower_and_sum(costs, plan, &part, sites, side, out, err);
    if (rc == 0)
        remember(costs, &key, out);
    return rc;
}

/* Nobody's weights, nobody's activations: a stage with the site's mesh among `devices` ranks. */
static int base_cost(struct costs *costs, const struct site *site, int devices,
                     struct part_cost *out, struct error *err)
{
    struct part part = {PART_BASE, 0, -1};
    struct lowered_part lowered;
    struct pricing pricing = pricing_plain(costs->request);
    struct plan *plan = plan_create(1, (int)costs->model.graph->block_count);
    plan->stages[0].mesh = (struct mesh){.axes = 1, .size = {devices}};
    plan->stages[0].block_count = plan->block_count;
    plan->overlap = costs->request->job->plan.overlap;
    int rc = lower_part(costs->model.graph, plan, site->first, &part, costs->ways, &lowered, err);
    if (rc == 0) {
        *out = sum_up(&pricing, &lowered);
        out->state_bytes += site->library_bytes; /* held from step to step */
        lower_part_done(costs->ways, &lowered);
    }
    plan_destroy(plan);
    return rc;
}

int costs_base(struct costs *costs, const struct site *site, int devices, struct part_cost *out,
               struct error *err)
{
    /* A rank's share of so few words depends on its place among all ranks. */
    struct cost_key key = {
        .kind = PART_BASE, .index = devices, .site = site->kind, .pair = site->first};
    const struct cost_entry *known = find_entry(costs->entries, costs->entry_capacity, &key);
    if (known->taken) {
        *out = known->cost;
        return 0;
    }
    int rc = base_cost(costs, site, devices, out, err);
    if (rc == 0)
        remember(costs, &key, out);
    return rc;
}
