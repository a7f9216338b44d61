/* partition.c - dynamic programming over the stages, from the last to the first.
 *
 * For the stages from i on a suffix keeps S, the sum of T; X, the largest T; and R, the largest of
 * u_k less the backwards from i to k. Prepending a stage makes S + T, max(X, T) and max(u, R - B);
 * the step is S + (m - 1) X + R. One suffix dominates another if its S, X and S + R are no
 * larger. */
#include "coordinator/planner/exact/partition.h"

#include "common/base/memory.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/exact/labels.h"
#include "coordinator/planner/exact/tied_ends.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The stages from some stage on, which the first block enters with these ends. */
struct suffix {
    double sum_s, longest_s, rest_s;
    double least_s; /* lower bound on the whole step */
    /* exit of the preceding block and entry of the first one: the crossing into it */
    int before, entry;
    int end, node; /* blocks of its first stage, and the node of its label */
    int next;      /* index among the suffixes of the next stage that begin at `end`; -1: none */
};

struct suffixes {
    struct suffix *items;
    size_t count, capacity;
};

struct solver {
    struct frontiers *frontiers;
    struct suffixes *of; /* [stage * blocks + first] */
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

static struct suffix prepend(const struct stage_cost *stage, const struct suffix *rest)
{
    double seconds = stage->forward_s + stage->backward_s;
    return (struct suffix){
        .sum_s = seconds + (rest ? rest->sum_s : 0),
        .longest_s = rest ? fmax(seconds, rest->longest_s) : seconds,
        .rest_s = rest ? fmax(stage->once_s, rest->rest_s - stage->backward_s) : stage->once_s,
    };
}

static double step_seconds(const struct instance *instance, const struct suffix *suffix)
{
    return suffix->sum_s + (instance->point.micro_batches - 1) * suffix->longest_s + suffix->rest_s;
}

/* Lower bound on the whole step, with the minimum for the blocks before. */
static double least_step(const struct solver *solver, int stage, int first,
                         const struct suffix *suffix)
{
    const struct instance *instance = solver->frontiers->instance;
    const struct chain *head = chains_head(&instance->chains, stage, first);
    double longest = fmax(fmax(suffix->longest_s, instance->longest_s), head->longest_s);
    return suffix->sum_s + fmax(head->sum_s, instance->before[first].forward_s + suffix->rest_s) +
           (instance->point.micro_batches - 1) * longest;
}

static int in_order(const void *first, const void *second)
{
    const struct suffix *a = first, *b = second;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    if (a->sum_s != b->sum_s)
        return a->sum_s < b->sum_s ? -1 : 1;
    if (a->longest_s != b->longest_s)
        return a->longest_s < b->longest_s ? -1 : 1;
    if (a->rest_s != b->rest_s)
        return a->rest_s < b->rest_s ? -1 : 1;
    return a->end != b->end ? a->end - b->end : a->node - b->node;
}

static bool same_crossing(const struct suffix *a, const struct suffix *b)
{
    return a->before == b->before && a->entry == b->entry;
}

static void reduce(struct suffixes *list)
{
    size_t kept = 0, group = 0;
    if (list->count > 1)
        qsort(list->items, list->count, sizeof *list->items, in_order);
    for (size_t i = 0; i < list->count; i++) {
        const struct suffix *suffix = &list->items[i];
        bool worse = false;
        if (kept > 0 && !same_crossing(&list->items[kept - 1], suffix))
            group = kept;
        for (size_t j = group; j < kept && !worse; j++) {
            const struct suffix *other = &list->items[j];
            worse = other->sum_s <= suffix->sum_s && other->longest_s <= suffix->longest_s &&
                    other->sum_s + other->rest_s <= suffix->sum_s + suffix->rest_s;
        }
        if (!worse)
            list->items[kept++] = *suffix;
    }
    list->count = kept;
}

static int by_least(const void *first, const void *second)
{
    const struct suffix *a = first, *b = second;
    return a->least_s != b->least_s ? (a->least_s < b->least_s ? -1 : 1) : in_order(first, second);
}

/* If there are too many, keep the fastest. */
static void cut_off(struct solver *solver, struct suffixes *list)
{
    if (list->count <= solver->frontiers->most)
        return;
    qsort(list->items, list->count, sizeof *list->items, by_least);
    list->count = solver->frontiers->most;
    solver->frontiers->omitted_s =
        fmin(solver->frontiers->omitted_s, list->items[list->count].least_s);
}

static void offer(struct solver *solver, int stage, int first, struct suffix suffix,
                  struct suffixes *list)
{
    suffix.least_s = least_step(solver, stage, first, &suffix);
    if (suffix.least_s >= solver->frontiers->upper_s)
        return;
    list->items = grow(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = suffix;
}

/* Combine every label of the stage with every suffix that may follow. before: exit of the preceding
 * block; -1: this is the first stage. */
static void extend(struct solver *solver, int stage, const struct frontier *frontier, int first,
                   int end, int before, struct suffixes *list)
{
    struct instance *instance = solver->frontiers->instance;
    bool last = stage == instance->point.stages - 1;
    const struct suffixes *rest = last ? NULL : &solver->of[(stage + 1) * instance->blocks + end];
    solver->frontiers->joined += (double)frontier->count * (double)(last ? 1 : rest->count);
    for (size_t i = 0; i < frontier->count; i++) {
        const struct label *label = &frontier->labels[i];
        const struct part_cost *into =
            before < 0 ? NULL
                       : instance_crossing(instance, stage, first - 1, before, label->entry, 1);
        struct stage_cost cost;
        for (size_t j = 0; j < (last ? 1 : rest->count); j++) {
            const struct suffix *next = last ? NULL : &rest->items[j];
            if (next && next->before != label->exit)
                continue;
            const struct part_cost *out_of =
                next ? instance_crossing(instance, stage, end - 1, label->exit, next->entry, 0)
                     : NULL;
            if (!close_stage(instance, stage, frontier, label, into, out_of, &cost))
                continue;
            struct suffix suffix = prepend(&cost, next);
            suffix.before = before;
            suffix.entry = label->entry;
            suffix.end = end;
            suffix.node = label->node;
            suffix.next = last ? -1 : (int)j;
            offer(solver, stage, first, suffix, list);
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

static void solve_stage(struct solver *solver, int stage, int first)
{
    struct instance *instance = solver->frontiers->instance;
    int stages = instance->point.stages, left = stages - 1 - stage;
    struct suffixes *list = &solver->of[stage * instance->blocks + first];
    int exits = stage == 0 ? 0 : instance_choices(instance, stage - 1, first - 1)->exits;
    for (int end = left ? first + 1 : instance->blocks; end <= instance->blocks - left; end++) {
        if (planner_stopped(instance->costs->request) || is_too_slow(solver, stage, first, end) ||
            (left && solver->of[(stage + 1) * instance->blocks + end].count == 0))
            continue;
        const struct frontier *frontier = frontiers_get(solver->frontiers, stage, first, end);
        for (int before = stage ? 0 : -1; before < exits; before++)
            extend(solver, stage, frontier, first, end, before, list);
    }
    reduce(list);
    cut_off(solver, list);
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
    return plan;
}

struct plan *partition_solve(struct frontiers *frontiers)
{
    return frontiers->instance->costs->model.tied ? tied_ends_solve(frontiers)
                                                  : partition_solve_set(frontiers);
}
