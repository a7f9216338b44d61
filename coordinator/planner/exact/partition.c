/* partition.c - dynamic programming over the stages, from the last to the first; suffixes.h says
 * what is kept of the stages from some stage on. */
#include "coordinator/planner/exact/partition.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/labels.h"
#include "coordinator/planner/exact/suffixes.h"
#include "coordinator/planner/exact/tied_ends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct solver {
    struct frontiers *frontiers;
    struct suffixes *of; /* [stage * blocks + first] */
    /* [before * entries + entry]: of the stage and first block that are being solved, by the
     * crossing into them; empty in between */
    struct suffixes *offered;
    size_t offered_capacity;
};

/* The blocks of a stage while suffixes begin with them. */
struct opening {
    int stage, first, end;
    const struct frontier *frontier;
    const struct suffixes *rest; /* what may follow; NULL: this is the last stage */
};

static bool fits_on(const struct instance *instance, int stage, int rank, const struct taken *taken,
                    const struct part_cost *into, const struct part_cost *out_of)
{
    return taken_stage(taken, part_cost_bytes(&instance->bases[stage], rank),
                       part_cost_bytes(into, rank), part_cost_bytes(out_of, rank),
                       (uint64_t)instance->slots[stage]) <= instance->sites[stage]->limits[rank];
}

static bool fits(const struct instance *instance, int stage, const struct frontier *frontier,
                 const struct label *label, const struct part_cost *into,
                 const struct part_cost *out_of)
{
    const struct site *site = instance->sites[stage];
    bool alike = label->ranks < 0 && !into->ranks && !out_of->ranks;
    if (!fits_on(instance, stage, site->tight, &label->taken, into, out_of))
        return false;
    for (int rank = 0; !alike && rank < site->ranks; rank++)
        if (!fits_on(instance, stage, rank, label_on(label, frontier->ranks, rank), into, out_of))
            return false;
    return true;
}

/* Complete a stage: a label with its base and crossings. false: it does not fit. */
static bool close_stage(const struct instance *instance, int stage, const struct frontier *frontier,
                        const struct label *label, const struct part_cost *into,
                        const struct part_cost *out_of, struct stage_cost *out)
{
    static const struct part_cost none;
    into = into ? into : &none;
    out_of = out_of ? out_of : &none;
    out->forward_s = label->forward_s + into->forward_s + out_of->forward_s;
    out->backward_s = label->seconds - label->forward_s + into->backward_s + out_of->backward_s;
    out->once_s = label->once_s + instance->bases[stage].once_s;
    return isfinite(out->forward_s) &&
           (instance->relaxed || fits(instance, stage, frontier, label, into, out_of));
}

/* fmax() without its care for what is not a number, which takes a call. */
static double larger(double a, double b)
{
    return a > b ? a : b;
}

static struct suffix prepend(const struct stage_cost *stage, const struct suffix *rest)
{
    double seconds = stage->forward_s + stage->backward_s;
    return (struct suffix){
        .sum_s = seconds + (rest ? rest->sum_s : 0),
        .longest_s = rest ? larger(seconds, rest->longest_s) : seconds,
        .rest_s = rest ? larger(stage->once_s, rest->rest_s - stage->backward_s) : stage->once_s,
    };
}

static double step_seconds(const struct instance *instance, const struct suffix *suffix)
{
    return suffix->sum_s + (instance->point.micro_batches - 1) * suffix->longest_s + suffix->rest_s;
}

/* Lower bound on the whole step, with the minimum for the blocks before. */
static double least_step(const struct instance *instance, int stage, int first,
                         const struct suffix *suffix)
{
    const struct chain *head = chains_head(&instance->chains, stage, first);
    double longest = larger(larger(suffix->longest_s, instance->longest_s), head->longest_s);
    return suffix->sum_s + larger(head->sum_s, instance->before[first].forward_s + suffix->rest_s) +
           (instance->point.micro_batches - 1) * longest;
}

/* Combine a label of the stage with every suffix that may follow. before: exit of the preceding
 * block; -1: this is the first stage. */
static void extend(struct solver *solver, const struct opening *at, const struct label *label,
                   int before, struct suffixes *offered)
{
    struct instance *instance = solver->frontiers->instance;
    const struct part_cost *into =
        before < 0 ? NULL
                   : instance_crossing(instance, at->stage, at->first - 1, before, label->entry, 1);
    const struct part_cost *out_of = NULL;
    struct stage_cost cost;
    int entry = -1; /* of the last suffix; the stage costs the same for all that share it */
    bool closed =
        !at->rest && close_stage(instance, at->stage, at->frontier, label, into, NULL, &cost);
    for (size_t j = 0; j < (at->rest ? at->rest->count : 1); j++) {
        const struct suffix *next = at->rest ? &at->rest->items[j] : NULL;
        if (next && next->before != label->exit)
            continue;
        if (next && next->entry != entry) {
            entry = next->entry;
            out_of = instance_crossing(instance, at->stage, at->end - 1, label->exit, entry, 0);
            closed = close_stage(instance, at->stage, at->frontier, label, into, out_of, &cost);
        }
        if (!closed)
            continue;
        struct suffix suffix = prepend(&cost, next);
        suffix.least_s = least_step(instance, at->stage, at->first, &suffix);
        if (suffix.least_s >= solver->frontiers->upper_s)
            continue;
        suffix.before = before;
        suffix.entry = label->entry;
        suffix.end = at->end;
        suffix.node = label->node;
        suffix.next = next ? (int)j : -1;
        suffixes_offer(offered, &suffix);
    }
}

/* Combine every label of the stage with every suffix that may follow. exits: of the preceding
 * block; 1 if this is the first stage. */
static void extend_all(struct solver *solver, const struct opening *at, int exits, int entries)
{
    solver->frontiers->joined +=
        (double)at->frontier->count * (double)(at->rest ? at->rest->count : 1) * exits;
    for (int exit = 0; exit < exits; exit++) {
        struct suffixes *offered = &solver->offered[(size_t)exit * (size_t)entries];
        for (size_t i = 0; i < at->frontier->count; i++) {
            const struct label *label = &at->frontier->labels[i];
            extend(solver, at, label, at->stage ? exit : -1, &offered[label->entry]);
        }
    }
}

/* Whether no plan with these blocks on this stage can be fast enough, whatever their strategies. */
static bool is_too_slow(const struct solver *solver, int stage, int first, int end)
{
    const struct instance *instance = solver->frontiers->instance;
    const struct chain *head = chains_head(&instance->chains, stage, first),
                       *tail = chains_tail(&instance->chains, stage + 1, end);
    double own_s = chains_own(&instance->chains, stage, first, end);
    double longest = fmax(fmax(own_s, instance->longest_s), fmax(head->longest_s, tail->longest_s));
    return head->sum_s + own_s + tail->sum_s + (instance->point.micro_batches - 1) * longest >=
           solver->frontiers->upper_s;
}

/* Make room for suffixes by this many crossings. */
static void make_room(struct solver *solver, size_t crossings)
{
    size_t had = solver->offered_capacity;
    if (crossings <= had)
        return;
    solver->offered = xrealloc(solver->offered, crossings * sizeof *solver->offered);
    memset(&solver->offered[had], 0, (crossings - had) * sizeof *solver->offered);
    solver->offered_capacity = crossings;
}

static void solve_stage(struct solver *solver, int stage, int first)
{
    struct instance *instance = solver->frontiers->instance;
    int stages = instance->point.stages, left = stages - 1 - stage;
    struct suffixes *list = &solver->of[stage * instance->blocks + first];
    int exits = stage == 0 ? 1 : instance_choices(instance, stage - 1, first - 1)->exits;
    int entries = instance_choices(instance, stage, first)->entries;
    make_room(solver, (size_t)exits * (size_t)entries);
    for (int end = left ? first + 1 : instance->blocks; end <= instance->blocks - left; end++) {
        if (planner_stopped(instance->costs->request) || is_too_slow(solver, stage, first, end) ||
            (left && solver->of[(stage + 1) * instance->blocks + end].count == 0))
            continue;
        const struct opening at = {stage, first, end,
                                   frontiers_get(solver->frontiers, stage, first, end),
                                   left ? &solver->of[(stage + 1) * instance->blocks + end] : NULL};
        extend_all(solver, &at, exits, entries);
    }
    for (int crossing = 0; crossing < exits * entries; crossing++)
        suffixes_move(&solver->offered[crossing], list);
    solver->frontiers->omitted_s =
        fmin(solver->frontiers->omitted_s, suffixes_cut_off(list, solver->frontiers->most));
}

/* Build the best plan, stage by stage from the first. */
static struct plan *make_plan(const struct solver *solver, const struct suffix *best)
{
    const struct instance *instance = solver->frontiers->instance;
    struct plan *plan = space_plan(instance->costs, &instance->point);
    struct strategy *strategies = xcalloc((size_t)instance->blocks, sizeof *strategies);
    for (int stage = 0, first = 0; stage < plan->stage_count; stage++) {
        struct plan_stage *of = &plan->stages[stage];
        of->block_first = first;
        of->block_count = best->end - first;
        frontiers_choices(solver->frontiers, best->node, &strategies[first]);
        for (int b = first; b < best->end; b++) {
            struct plan_block *block = &plan->blocks[b];
            memcpy(block->roles, strategies[b].roles, sizeof block->roles);
            block->zero = strategies[b].zero;
            block->recompute = strategies[b].recompute;
            block->stage = stage;
        }
        first = best->end;
        if (best->next >= 0)
            best = &solver->of[(stage + 1) * instance->blocks + first].items[best->next];
    }
    free(strategies);
    return plan;
}

struct plan *partition_solve_set(struct frontiers *frontiers)
{
    struct solver solver = {.frontiers = frontiers};
    struct instance *instance = frontiers->instance;
    int stages = instance->point.stages;
    size_t cells = (size_t)stages * (size_t)instance->blocks;
    const struct suffix *best = NULL;
    solver.of = xcalloc(cells, sizeof *solver.of);
    for (int stage = stages - 1; stage >= 0; stage--)
        for (int first = stage; first < (stage ? instance->blocks - (stages - 1 - stage) : 1);
             first++)
            solve_stage(&solver, stage, first);
    for (size_t i = 0; i < solver.of[0].count; i++)
        if (!best || step_seconds(instance, &solver.of[0].items[i]) < step_seconds(instance, best))
            best = &solver.of[0].items[i];
    struct plan *plan = NULL;
    if (best && step_seconds(instance, best) < frontiers->upper_s) {
        frontiers->upper_s = step_seconds(instance, best);
        plan = make_plan(&solver, best);
    }
    for (size_t i = 0; i < cells; i++)
        free(solver.of[i].items);
    free(solver.of);
    for (size_t i = 0; i < solver.offered_capacity; i++)
        free(solver.offered[i].items);
    free(solver.offered);
    return plan;
}

struct plan *partition_solve(struct frontiers *frontiers)
{
    return frontiers->instance->costs->model.tied ? tied_ends_solve(frontiers)
                                                  : partition_solve_set(frontiers);
}
