/* evaluate.c - adding parts up. */
#include "coordinator/planner/evaluate.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>

int evaluate_slots(const struct schedule *schedule, int stage, int stages, int micro_batches)
{
    struct event *events = xcalloc(2 * (size_t)micro_batches, sizeof *events);
    int slots = schedule_events(schedule, stage, stages, micro_batches, events);
    free(events);
    return slots;
}

void evaluate_sites(struct costs *costs, const struct plan *plan, const struct site **sites)
{
    for (int i = 0, first = 0; i < plan->stage_count; i++) {
        sites[i] = sites_add(&costs->sites, first, &plan->stages[i].mesh);
        first += mesh_count(&plan->stages[i].mesh);
    }
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
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

/* What joins `block` and the next, as the stage of either sees it. */
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

int evaluate_stage(struct costs *costs, const struct plan *plan, const struct site *const *sites,
                   int stage, struct stage_cost *out, struct error *err)
{
    const struct plan_stage *range = &plan->stages[stage];
    int end = range->block_first + range->block_count;
    struct part_cost sum, cost;
    int rc = costs_base(costs, sites[stage], plan_ranks(plan), &sum, err);
    uint64_t transient = sum.other_bytes, forward = 0;
    for (int b = range->block_first - 1; b < end && rc == 0; b++) {
        if (b >= range->block_first) {
            rc = block_cost(costs, plan, sites, b, &cost, err);
            if (rc < 0)
                break;
            part_cost_add(&sum, &cost);
            forward = cost.forward_bytes;
            transient = larger(transient, larger(forward, cost.other_bytes));
        }
        if (b < 0 || b + 1 == plan->block_count)
            continue;
        rc = join_cost(costs, plan, sites, b, stage, &cost, err);
        if (rc < 0)
            break;
        part_cost_add(&sum, &cost);
        transient = larger(transient, cost.other_bytes);
        if (b >= range->block_first)
            transient = larger(transient, forward + cost.passing_bytes);
    }
    if (rc < 0)
        return rc;
    int slots = evaluate_slots(plan->schedule, stage, plan->stage_count, plan->micro_batches);
    *out = (struct stage_cost){sum.forward_s, sum.backward_s, sum.once_s, sum.least_s,
                               sum.state_bytes + (uint64_t)slots * sum.saved_bytes +
                                   sum.communication_bytes + 2 * sum.beside_bytes + transient};
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
        bound = fmax(bound, before + micro_batches * stages[i].least_s);
        before += stages[i].least_s;
    }
    return bound;
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
        *fits = *fits && stages[i].bytes <= sites[i]->memory_bytes;
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
            *share = fmax(*share, (double)stage.bytes / (double)sites[i]->memory_bytes);
    }
    free(sites);
    return rc;
}
