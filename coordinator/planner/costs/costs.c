/* costs.c - lowers parts of the short model, placed on small scratch plans, for the ranks that
 * represent a stage, takes the largest of their numbers, and remembers what they cost.
 *
 * Only ranks that represent all others are lowered; but all ranks are if the site tells its ranks
 * apart and they, or their hosts, differ. */
#include "coordinator/planner/costs/costs.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_FIRST 1024
#define USES_MAX 8 /* weights used by one block */

/* Everything a cost depends on. */
struct cost_key {
    int64_t samples;
    int32_t kind, index, side, site, ranks, pair, tie;
    int32_t unused; /* keys are hashed and compared as bytes, so there must be no padding */
    /* roles: row in the table of roles plus one */
    uint8_t roles[2][AXES_MAX], zero[2], recompute[2];
};

struct cost_entry {
    struct cost_key key;
    struct part_cost cost;
};

static void known_costs_init(struct known_costs *known)
{
    *known = (struct known_costs){.slot_count = SLOTS_FIRST};
    known->slots = xcalloc(known->slot_count, sizeof *known->slots);
}

static void known_costs_finish(struct known_costs *known)
{
    free(known->entries);
    free(known->slots);
    for (size_t i = 0; i < known->kept_count; i++)
        free(known->kept[i]);
    free(known->kept);
}

/* The slot that holds the key's entry, or the empty one where it belongs. */
static uint32_t *known_costs_slot(const struct known_costs *known, const struct cost_key *key)
{
    size_t i = hash_words(HASH_START, key, sizeof *key) & (known->slot_count - 1);
    while (known->slots[i] &&
           memcmp(&known->entries[known->slots[i] - 1].key, key, sizeof *key) != 0)
        i = (i + 1) & (known->slot_count - 1);
    return &known->slots[i];
}

/* Copy the cost to *out and return true, or return false if it is not known. */
static bool known_costs_recall(const struct known_costs *known, const struct cost_key *key,
                               struct part_cost *out)
{
    uint32_t slot = *known_costs_slot(known, key);
    if (slot)
        *out = known->entries[slot - 1].cost;
    return slot != 0;
}

static void known_costs_double(struct known_costs *known)
{
    free(known->slots);
    known->slot_count *= 2;
    known->slots = xcalloc(known->slot_count, sizeof *known->slots);
    for (size_t i = 0; i < known->count; i++)
        *known_costs_slot(known, &known->entries[i].key) = (uint32_t)i + 1;
}

/* Add a cost that is not known yet. */
static void known_costs_remember(struct known_costs *known, const struct cost_key *key,
                                 const struct part_cost *cost)
{
    if (2 * (known->count + 1) > known->slot_count)
        known_costs_double(known);
    known->entries = grow(known->entries, known->count, &known->capacity, sizeof *known->entries);
    uint32_t *slot = known_costs_slot(known, key);
    known->entries[known->count++] = (struct cost_entry){*key, *cost};
    *slot = (uint32_t)known->count;
}

/* Copy the bytes of `count` ranks; lent until known_costs_finish(). */
static const struct part_bytes *known_costs_keep(struct known_costs *known,
                                                 const struct part_bytes *ranks, int count)
{
    struct part_bytes *copy = xcalloc((size_t)count, sizeof *copy);
    memcpy(copy, ranks, (size_t)count * sizeof *copy);
    known->kept =
        grow(known->kept, known->kept_count, &known->kept_capacity, sizeof(struct part_bytes *));
    known->kept[known->kept_count++] = copy;
    return copy;
}

/* What the other end of a shared weight pays depends on where it lies, how its gradients leave and,
 * for the owner, on what is sharded. The owner's other weights matter too: what both blocks take
 * together is reduced in common, and what the owner takes alone is then subtracted. Strategies that
 * agree in all this form one tie, and it makes no difference which of them came first.
 *
 * Compared as bytes, so whatever is not used has to be 0. */
struct tie_ends {
    int32_t block, zero;
    struct {
        struct placement compute, leaving;
    } weights[USES_MAX];
};

static void ties_fill(struct tie_ends *ends, const struct graph *graph, int block,
                      const struct role *const *vector, int axes)
{
    const struct block *of = &graph->blocks[block];
    int count = 0;
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        struct signature signature = signature_make(node, vector, axes);
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            assert(count < USES_MAX && "a block at the end of the model with more weights");
            ends->weights[count].compute = signature.operand[i];
            ends->weights[count++].leaving = signature.gradient[i];
        }
    }
}

/* The number, from 1, of the tie of a strategy for block 0, the owner, or for the last block, on a
 * mesh with this many axes. */
static int ties_find(struct ties *ties, const struct graph *graph, int block,
                     const struct role *const *vector, int axes, int zero)
{
    struct tie_ends ends;
    memset(&ends, 0, sizeof ends);
    ends.block = block;
    ends.zero = block == 0 ? zero : 0;
    ties_fill(&ends, graph, block, vector, axes);
    for (size_t i = 0; i < ties->count; i++)
        if (memcmp(&ties->items[i], &ends, sizeof ends) == 0)
            return (int)i + 1;
    ties->items = grow(ties->items, ties->count, &ties->capacity, sizeof *ties->items);
    ties->items[ties->count] = ends;
    return (int)++ties->count;
}

/* For which ranks of a stage a part is lowered: all representatives, or the first of them. */
enum ranks { RANKS_ALL, RANKS_FIRST };

/* A part of a scratch plan of one stage or two; it is on stage `side`. */
struct staged_part {
    const struct plan *plan; /* for the short model */
    struct part part;
    const struct site *sites[2]; /* of the plan's stages; the second is NULL if there is only one */
    int side;
};

/* Whether every rank of `count` shards equally much of the block's weights, which are cut along
 * their first dimension. Ranks of a block with a loss differ: of those with the same loss only one
 * counts it, and it needs no buffer of its own for that. */
static bool shards_evenly(const struct graph *graph, int block, int count)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        const struct operation *operation = node->operation;
        for (int i = operation->input_count; i < operation_output(operation); i++)
            if (graph->tensors[node->operands[i]].sizes[0] % count != 0)
                return false;
        if (operation->is_loss)
            return false;
    }
    return true;
}

/* Which ranks have to be lowered. place: where the part begins in the short model. samples: per
 * micro-batch. across: the part involves two stages. */
static enum ranks rank_costs_of(const struct costs *costs, const struct site *site,
                                enum part_kind kind, int place, int64_t samples, bool across)
{
    int count = mesh_count(&site->mesh);
    if (count == 1 || (costs->one_rank && site->even))
        return RANKS_FIRST;
    /* Messages between stages are divided among the ranks, which are then not alike. */
    bool alike = !across && site->alike && samples % count == 0 &&
                 (kind == PART_JOINT || shards_evenly(costs->model.graph, place, count));
    return alike ? RANKS_FIRST : RANKS_ALL;
}

static int lower_rank(struct costs *costs, const struct staged_part *part, int rank,
                      struct part_cost *out, struct error *err)
{
    const struct site *const *sites = part->sites;
    struct pricing pricing = {costs->request,
                              mesh_count(&sites[0]->mesh),
                              {sites[0]->first, sites[1] ? sites[1]->first : 0}};
    struct lowered_part lowered;
    int base = part->side ? pricing.split : 0;
    int rc = lower_part(costs->model.graph, part->plan, base + rank, &part->part, costs->ways,
                        &lowered, err);
    if (rc < 0)
        return rc;
    *out = part_cost_price(&pricing, &lowered);
    lower_part_done(costs->ways, &lowered);
    costs->lowered++;
    planner_tell_work(costs->request);
    return 0;
}

/* Lower the part on all representatives of the stage but the first, whose cost *out is; and on all
 * ranks that are told apart, unless the representatives have the same bytes: the first has the
 * least of a dimension that does not divide evenly, the last one the most. That does not hold for
 * shares by weight, for unlike devices and for messages between stages; and if hosts are unequal,
 * another rank's messages may take longest. In these cases all ranks are lowered. */
static int lower_others(struct costs *costs, const struct staged_part *part, struct part_cost *out,
                        struct error *err)
{
    const struct site *site = part->sites[part->side];
    struct part_bytes bytes[SITE_RANKS_MAX], first = out->bytes;
    bool apart = site->ranks > 1, all = apart && (!site->alike || part->sites[1]), unlike = false;
    int count = site->representative_count, rc = 0;
    for (int i = 1; i < (all ? site->ranks : count) && rc == 0; i++) {
        int rank = site->representatives[i];
        struct part_cost cost;
        rc = lower_rank(costs, part, rank, &cost, err);
        if (rc < 0)
            break;
        unlike = unlike || memcmp(&cost.bytes, &first, sizeof first) != 0;
        all = apart && (all || unlike);
        if (apart)
            bytes[rank] = cost.bytes;
        part_cost_larger(out, &cost);
    }
    bytes[site->representatives[0]] = first;
    if (rc == 0 && apart && unlike)
        out->ranks = known_costs_keep(&costs->known, bytes, site->ranks);
    return rc;
}

/* The cost on the ranks that the key names. Cached under the key; the first rank's cost also on its
 * own. Returns as lower_part(). */
static int rank_costs_sum(struct costs *costs, const struct cost_key *key,
                          const struct staged_part *part, struct part_cost *out, struct error *err)
{
    struct cost_key first = *key;
    int rc = 0;
    first.ranks = RANKS_FIRST;
    if (!known_costs_recall(&costs->known, &first, out)) {
        int standing = part->sites[part->side]->representatives[0];
        rc = lower_rank(costs, part, costs->only_rank < 0 ? standing : costs->only_rank, out, err);
        if (rc == 0)
            known_costs_remember(&costs->known, &first, out);
    }
    if (key->ranks == RANKS_FIRST || costs->only_rank >= 0)
        return rc;
    if (rc == 0)
        rc = lower_others(costs, part, out, err);
    if (rc == 0)
        known_costs_remember(&costs->known, key, out);
    return rc;
}

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
    costs->ways = lower_cache_create();
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
    lower_cache_destroy(costs->ways);
    free(costs->ties.items);
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
