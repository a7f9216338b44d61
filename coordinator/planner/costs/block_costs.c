/* block_costs.c - lowers parts of the short model, placed on small scratch plans, and caches what
 * they cost. */
#include "coordinator/planner/costs/block_costs.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/rank_costs.h"

#include <stdlib.h>
#include <string.h>

/* How a tied block is priced: together with its partner's weights on the same site, or with those
 * on another site; or as what it adds to its partner on the same site. */
enum side { SIDE_BOTH = 1, SIDE_ACROSS, SIDE_ADDED };

int costs_init(struct costs *costs, const struct planner_request *request, struct error *err)
{
    *costs = (struct costs){.request = request, .only_rank = -1};
    int rc = short_graph_init(&costs->model, request->graph, err);
    if (rc < 0)
        return rc;
    int blocks = (int)costs->model.graph->block_count;
    costs->like = xcalloc((size_t)blocks * RECOMPUTES, sizeof *costs->like);
    for (int i = 0; i < blocks * RECOMPUTES; i++)
        costs->like[i] = (uint8_t)recompute_like(costs->model.graph, i / RECOMPUTES,
                                                 (enum recompute)(i % RECOMPUTES));
    costs->sites.request = request;
    costs->ways = ways_create();
    costs->one = plan_create(1, blocks);
    costs->two = plan_create(2, blocks);
    costs->one->overlap = costs->two->overlap = request->job->plan.overlap;
    known_costs_init(&costs->known);
    return 0;
}

void costs_finish(struct costs *costs)
{
    free(costs->like);
    short_graph_finish(&costs->model);
    sites_finish(&costs->sites);
    ways_destroy(costs->ways);
    ties_finish(&costs->ties);
    plan_destroy(costs->one);
    plan_destroy(costs->two);
    known_costs_finish(&costs->known);
}

struct strategy strategy_of(const struct plan *plan, int block)
{
    struct strategy strategy = {.zero = plan->blocks[block].zero,
                                .recompute = plan->blocks[block].recompute};
    int axes = plan->stages[plan->blocks[block].stage].mesh.axes;
    memcpy(strategy.roles, plan->blocks[block].roles, (size_t)axes * sizeof *strategy.roles);
    return strategy;
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

/* Price a block together with those of its partner's weights that it shares. */
static int tied_cost(struct costs *costs, const struct cost_key *key, const struct site *site,
                     const struct strategy *strategy, const struct tie *tie, struct part_cost *out,
                     struct error *err)
{
    int last = (int)costs->model.graph->block_count - 1, place = key->index, side = place == last;
    struct staged_part part = {.part = {PART_BLOCK, place, tie ? last - place : -1},
                               .sites = {site}};
    if (tie && tie->site != site) {
        part.side = side;
        part.sites[side] = site;
        part.sites[!side] = tie->site;
    }
    struct plan *plan = set_scratch(costs, part.sites, last, key->samples);
    set_block(plan, place, strategy);
    if (tie)
        set_block(plan, last - place, tie->strategy);
    part.plan = plan;
    return rank_costs_sum(costs, key, &part, out, err);
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

/* Reduce *out, which is both tied blocks on the site, to what the last one adds to the first. Bytes
 * per rank are cached for the pair of strategies. */
static int leave_out_first(struct costs *costs, const struct cost_key *both,
                           const struct site *site, const struct tie *tie, struct part_cost *out,
                           struct error *err)
{
    struct part_cost first;
    int rc = costs_block(costs, site, 0, tie->strategy, NULL, both->samples, &first, err);
    if (rc < 0)
        return rc;
    const struct part_cost whole = *out;
    struct cost_key key = *both;
    struct part_bytes bytes[SITE_RANKS_MAX];
    part_cost_leave_out(out, &first, costs->request->devices[site->first].profile->overlap);
    if (!whole.ranks && !first.ranks)
        return 0;
    key.side = SIDE_ADDED;
    key_strategy(&key, 1, site, tie->strategy);
    if (known_costs_recall(&costs->known, &key, out))
        return 0;
    out->bytes.state = 0;
    for (int rank = 0; rank < site->ranks; rank++) {
        bytes[rank] = *part_cost_bytes(&whole, rank);
        bytes[rank].state -= part_cost_bytes(&first, rank)->state;
        if (bytes[rank].state > out->bytes.state)
            out->bytes.state = bytes[rank].state;
    }
    out->ranks = known_costs_keep(&costs->known, bytes, site->ranks);
    known_costs_remember(&costs->known, &key, out);
    return 0;
}

int costs_block(struct costs *costs, const struct site *site, int block,
                const struct strategy *strategy, const struct tie *tie, int64_t samples,
                struct part_cost *out, struct error *err)
{
    int place = costs->model.place[block], last = (int)costs->model.graph->block_count - 1;
    bool ends = place == 0 || place == last;
    if (!costs->model.tied || !ends || (tie && place == 0 && tie->site == site))
        tie = NULL;
    bool across = tie && tie->site != site;
    struct cost_key key = {.samples = samples,
                           .kind = PART_BLOCK,
                           .index = place,
                           .ranks = rank_costs_of(costs, site, PART_BLOCK, place, samples, across),
                           .site = site->kind};
    key_strategy(&key, 0, site, strategy);
    key.recompute[0] = costs->like[place * RECOMPUTES + (int)strategy->recompute];
    if (tie) {
        key.tie = tie_of(costs, tie->site, last - place, tie->strategy);
        key.side = across ? SIDE_ACROSS : SIDE_BOTH;
        key.pair = tie->site == site ? 0
                   : place == 0      ? sites_pair(&costs->sites, site, tie->site)
                                     : sites_pair(&costs->sites, tie->site, site);
    }
    int rc = known_costs_recall(&costs->known, &key, out)
                 ? 0
                 : tied_cost(costs, &key, site, strategy, tie, out, err);
    return rc == 0 && tie && !across ? leave_out_first(costs, &key, site, tie, out, err) : rc;
}

int costs_joint(struct costs *costs, const struct site *site, int block,
                const struct strategy *before, const struct strategy *after, int64_t samples,
                struct part_cost *out, struct error *err)
{
    int place = costs->model.before[block];
    struct staged_part part = {.part = {PART_JOINT, place, -1}, .sites = {site}};
    struct cost_key key = {.samples = samples,
                           .kind = PART_JOINT,
                           .index = place,
                           .ranks = rank_costs_of(costs, site, PART_JOINT, place, samples, false),
                           .site = site->kind};
    key_strategy(&key, 0, site, before);
    key_strategy(&key, 1, site, after);
    memset(key.zero, 0, sizeof key.zero);
    memset(key.recompute, 0, sizeof key.recompute);
    if (known_costs_recall(&costs->known, &key, out))
        return 0;
    struct plan *plan = set_scratch(costs, part.sites, 0, samples);
    set_block(plan, place, before);
    set_block(plan, place + 1, after);
    part.plan = plan;
    return rank_costs_sum(costs, &key, &part, out, err);
}

int costs_crossing(struct costs *costs, const struct site *const sites[2], int block,
                   const struct strategy *before, const struct strategy *after, int64_t samples,
                   int side, struct part_cost *out, struct error *err)
{
    struct staged_part part = {
        .part = {PART_CROSSING, 0, -1}, .sites = {sites[0], sites[1]}, .side = side};
    int place = costs->model.before[block];
    struct cost_key key = {
        .samples = samples,
        .kind = PART_CROSSING,
        .index = place,
        .side = side,
        .ranks = rank_costs_of(costs, sites[side], PART_CROSSING, place, samples, true),
        .pair = sites_pair(&costs->sites, sites[0], sites[1])};
    key_strategy(&key, 0, sites[0], before);
    key_strategy(&key, 1, sites[1], after);
    memset(key.zero, 0, sizeof key.zero);
    memset(key.recompute, 0, sizeof key.recompute);
    if (known_costs_recall(&costs->known, &key, out))
        return 0;
    struct plan *plan = set_scratch(costs, sites, place + 1, samples);
    set_block(plan, place, before);
    set_block(plan, place + 1, after);
    part.plan = plan;
    return rank_costs_sum(costs, &key, &part, out, err);
}

/* The cost of a rank without weights and activations, in a plan whose only stage has `devices`
 * ranks. */
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
        *out = part_cost_price(&pricing, &lowered);
        out->bytes.state += site->library_bytes; /* held from step to step */
        lower_part_done(costs->ways, &lowered);
    }
    plan_destroy(plan);
    return rc;
}

int costs_base(struct costs *costs, const struct site *site, int devices, struct part_cost *out,
               struct error *err)
{
    /* So few words are divided among all ranks that a rank's share depends on its place among
     * them. */
    struct cost_key key = {
        .kind = PART_BASE, .index = devices, .site = site->kind, .pair = site->first};
    if (known_costs_recall(&costs->known, &key, out))
        return 0;
    int rc = base_cost(costs, site, devices, out, err);
    if (rc == 0)
        known_costs_remember(&costs->known, &key, out);
    return rc;
}
