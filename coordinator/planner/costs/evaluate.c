/* evaluate.c - adds up the costs of parts: to those of a stage, and of a whole plan. */
#include "coordinator/planner/costs/evaluate.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/part_cost.h"

#include <math.h>
#include <stdlib.h>

void evaluate_sites(struct costs *costs, const struct plan *plan, const struct site **sites)
{
    for (int i = 0, first = 0; i < plan->stage_count; i++) {
        sites[i] = sites_add(&costs->sites, first, &plan->stages[i].mesh);
        first += mesh_count(&plan->stages[i].mesh);
    }
}

static int block_cost(struct costs *costs, const struct plan *plan, const struct site *const *sites,
                      int block, struct part_cost *out, struct error *err)
{
    int last = plan->block_count - 1, partner = block == 0 ? last : block == last ? 0 : -1;
    struct strategy strategy = strategy_of(plan, block), other;
    struct tie tie = {.strategy = &other};
    if (partner >= 0 && partner != block) {
        other = strategy_of(plan, partner);
        tie.site = sites[plan->blocks[partner].stage];
    }
    return costs_block(costs, sites[plan->blocks[block].stage], block, &strategy,
                       tie.site ? &tie : NULL, plan->micro_batch_samples, out, err);
}

/* The cost to this stage of what joins `block` and the next one: a joint within the stage, or its
 * side of a crossing. */
static int join_cost(struct costs *costs, const struct plan *plan, const struct site *const *sites,
                     int block, int stage, struct part_cost *out, struct error *err)
{
    struct strategy before = strategy_of(plan, block), after = strategy_of(plan, block + 1);
    int from = plan->blocks[block].stage, to = plan->blocks[block + 1].stage;
    if (from == to)
        return costs_joint(costs, sites[stage], block, &before, &after, plan->micro_batch_samples,
                           out, err);
    return costs_crossing(costs, (const struct site *const[]){sites[from], sites[to]}, block,
                          &before, &after, plan->micro_batch_samples, stage == to, out, err);
}

/* Append a block to the run of each rank, or begin the runs with it. */
static void evaluate_extend(struct taken *runs, const struct site *site, int slots, bool first,
                            const struct part_cost *joint, const struct part_cost *block)
{
    for (int rank = 0; rank < site->ranks; rank++) {
        struct taken one = taken_block(part_cost_bytes(block, rank), (uint64_t)slots);
        runs[rank] =
            first ? one
                  : taken_join(&runs[rank], &one, part_cost_bytes(joint, rank), (uint64_t)slots);
    }
}

/* Add what lies beyond the runs: crossings, and what a rank has without blocks. */
static void evaluate_add_bytes(const struct taken *runs, const struct site *site, int slots,
                               const struct part_cost *base,
                               const struct part_cost *const crossings[2], struct stage_cost *out)
{
    for (int rank = 0; rank < site->ranks; rank++) {
        uint64_t limit = site->limits[rank];
        uint64_t bytes = taken_stage(&runs[rank], part_cost_bytes(base, rank),
                                     part_cost_bytes(crossings[0], rank),
                                     part_cost_bytes(crossings[1], rank), (uint64_t)slots);
        out->bytes = taken_larger(out->bytes, bytes);
        out->lacking = taken_larger(out->lacking, bytes > limit ? bytes - limit : 0);
        out->filling = fmax(out->filling, (double)bytes / (double)limit);
    }
}

int evaluate_stage(struct costs *costs, const struct plan *plan, const struct site *const *sites,
                   int stage, struct stage_cost *out, struct error *err)
{
    const struct plan_stage *range = &plan->stages[stage];
    const struct site *site = sites[stage];
    int first = range->block_first, end = first + range->block_count;
    int slots = plan->schedule->in_flight(stage, plan->stage_count, plan->micro_batches);
    struct part_cost base, sum, block, into = {0}, joint = {0}; /* joint ends as the crossing out */
    struct taken runs[SITE_RANKS_MAX] = {0};
    int rc = costs_base(costs, site, plan_ranks(plan), &base, err);
    if (rc == 0 && first > 0)
        rc = join_cost(costs, plan, sites, first - 1, stage, &into, err);
    if (rc < 0)
        return rc;
    sum = base;
    part_cost_add(&sum, &into);
    for (int b = first; b < end && rc == 0; b++) {
        rc = block_cost(costs, plan, sites, b, &block, err);
        if (rc < 0)
            break;
        evaluate_extend(runs, site, slots, b == first, &joint, &block);
        part_cost_add(&sum, &block);
        joint = (struct part_cost){0};
        if (b + 1 < plan->block_count)
            rc = join_cost(costs, plan, sites, b, stage, &joint, err);
        part_cost_add(&sum, &joint);
    }
    if (rc < 0)
        return rc;
    const struct part_cost *const crossings[2] = {&into, &joint};
    *out = (struct stage_cost){sum.forward_s, sum.backward_s,   sum.once_s,
                               sum.least_s,   sum.least_both_s, sum.least_once_s};
    evaluate_add_bytes(runs, site, slots, &base, crossings, out);
    return 0;
}

double evaluate_formula(const struct stage_cost *stages, int count, int micro_batches)
{
    double sum = 0, longest = 0, rest = -INFINITY, before = 0;
    for (int i = 0; i < count; i++) {
        double seconds = stages[i].forward_s + stages[i].backward_s;
        sum += seconds;
        longest = fmax(longest, seconds);
        rest = fmax(rest, stages[i].once_s - before);
        before += stages[i].backward_s;
    }
    return sum + (micro_batches - 1) * longest + rest;
}

double evaluate_bound(const struct stage_cost *stages, int count, int micro_batches)
{
    double before = 0, bound = 0;
    for (int i = 0; i < count; i++) {
        double all = micro_batches * stages[i].least_both_s + stages[i].least_once_s;
        bound = fmax(bound, fmax(before + micro_batches * stages[i].least_s, all));
        before += stages[i].least_s;
    }
    return bound;
}

double evaluate_passes(int stages, int micro_batches)
{
    return 1 / -expm1(stages * log1p(-1.0 / micro_batches));
}

int evaluate_plan(struct costs *costs, const struct plan *plan, double *step_s, double *bound_s,
                  bool *fits, struct error *err)
{
    size_t count = (size_t)plan->stage_count;
    const struct site **sites = xcalloc(count, sizeof *sites);
    struct stage_cost *stages = xcalloc(count, sizeof *stages);
    int rc = 0;
    evaluate_sites(costs, plan, sites);
    *fits = true;
    for (int i = 0; i < plan->stage_count && rc == 0; i++) {
        rc = evaluate_stage(costs, plan, sites, i, &stages[i], err);
        *fits = *fits && stages[i].lacking == 0;
    }
    *step_s = evaluate_formula(stages, plan->stage_count, plan->micro_batches);
    *bound_s = evaluate_bound(stages, plan->stage_count, plan->micro_batches);
    free(sites);
    free(stages);
    return rc;
}

int evaluate_filling(struct costs *costs, const struct plan *plan, double *share, struct error *err)
{
    const struct site **sites = xcalloc((size_t)plan->stage_count, sizeof *sites);
    int rc = 0;
    evaluate_sites(costs, plan, sites);
    *share = 0;
    for (int i = 0; i < plan->stage_count && rc == 0; i++) {
        struct stage_cost stage;
        rc = evaluate_stage(costs, plan, sites, i, &stage, err);
        if (rc == 0)
            *share = fmax(*share, stage.filling);
    }
    free(sites);
    return rc;
}
