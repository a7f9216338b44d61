/* rank_costs.c - decides which ranks represent a stage, and takes the largest of their numbers. */
#include "coordinator/planner/costs/rank_costs.h"

#include <string.h>

/* Whether every rank of `count` shards equally much of the block's weights, which are cut along
 * their first dimension. Ranks of a block with a loss differ: of those with the same loss only one
 * counts it, and it needs no buffer of its own for that. */
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

enum ranks rank_costs_of(const struct costs *costs, const struct site *site, enum part_kind kind,
                         int place, int64_t samples, bool across)
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

int rank_costs_sum(struct costs *costs, const struct cost_key *key, const struct staged_part *part,
                   struct part_cost *out, struct error *err)
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
