/* partition.c - stages from the last to the first, over labels of what follows.
 *
 * Of the stages from i on a label keeps S, the sum of T, X, the largest T, and R, the largest of
 * u_k less the backwards from i to k. A stage before it makes S + T, max(X, T) and
 * max(u, R - B); the step is S + (m - 1) X + R. One label is nowhere worse than another when its
 * S, X and S + R are not larger.
 *
 * Where the first and the last block share weights, what either costs depends on the other's
 * tie (costs_tie): all this is done for every pair of ties, best bound first. */
#include "coordinator/planner/partition.h"

#include "common/base/memory.h"
#include "coordinator/planner/evaluate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Stages from one on, whose first block is found with these ends. */
struct suffix {
    double sum_s, longest_s, rest_s;
    double least_s;    /* of the whole step */
    int before, entry; /* exit of the block before, entry of the first: the crossing into it */
    int end, node;     /* blocks of its first stage; how */
    int next;          /* among the suffixes of the next stage that begin at `end`; -1: none */
};

struct suffixes {
    struct suffix *items;
    size_t count, capacity;
};

struct solver {
    struct frontiers *frontiers;
    struct suffixes *of; /* [stage * blocks + first] */
    /* Of the first block's and the last one's choices those of a pair of ties. */
    struct choice *firsts, *lasts;
};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* A stage: a label with its base and its crossings. false: it does not fit. */
static bool close_stage(const struct instance *instance, int stage, const struct label *label,
                        const struct part_cost *into, const struct part_cost *out_of,
                        struct stage_cost *out)
{
    static const struct part_cost none;
    const struct part_cost *base = &instance->bases[stage];
    into = into ? into : &none;
    out_of = out_of ? out_of : &none;
    uint64_t slots = (uint64_t)instance->slots[stage];
    uint64_t transient = larger(larger(larger(label->transient, base->other_bytes),
                                       larger(into->other_bytes, out_of->other_bytes)),
                                label->forward + out_of->passing_bytes);
    uint64_t beside = larger(larger(label->beside, base->beside_bytes),
                             larger(into->beside_bytes, out_of->beside_bytes));
    out->bytes = base->state_bytes + label->bytes + transient + 2 * beside +
                 slots * (into->saved_bytes + out_of->saved_bytes) + into->communication_bytes +
                 out_of->communication_bytes;
    out->forward_s = label->forward_s + into->forward_s + out_of->forward_s;
    out->backward_s = label->seconds - label->forward_s + into->backward_s + out_of->backward_s;
    out->once_s = label->once_s + base->once_s;
    return (instance->relaxed || out->bytes <= instance_memory(instance, stage)) &&
           isfinite(out->forward_s);
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

/* Of the whole step, with the least of the blocks before. */
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

/* Of more than may be kept the fastest are. */
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

/* One label of the stage, which is entered from `before` (-1: it is the first), with all that may
 * follow it. */
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
            if (!close_stage(instance, stage, label, into, out_of, &cost))
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

/* Can no plan that has these blocks on this stage be fast enough, whatever their strategies? */
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

/* The stages of the best plan, from the first on. */
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

/* The best plan with the choices that are set at the ends. */
static struct plan *solve(struct solver *solver)
{
    struct instance *instance = solver->frontiers->instance;
    int stages = instance->point.stages;
    size_t cells = (size_t)stages * (size_t)instance->blocks;
    const struct suffix *best = NULL;
    solver->of = xcalloc(cells, sizeof *solver->of);
    for (int stage = stages - 1; stage >= 0; stage--)
        for (int first = stage; first < (stage ? instance->blocks - (stages - 1 - stage) : 1);
             first++)
            solve_stage(solver, stage, first);
    for (size_t i = 0; i < solver->of[0].count; i++)
        if (!best || step_seconds(instance, &solver->of[0].items[i]) < step_seconds(instance, best))
            best = &solver->of[0].items[i];
    struct plan *plan = NULL;
    if (best && step_seconds(instance, best) < solver->frontiers->upper_s) {
        solver->frontiers->upper_s = step_seconds(instance, best);
        plan = make_plan(solver, best);
    }
    for (size_t i = 0; i < cells; i++)
        free(solver->of[i].items);
    free(solver->of);
    return plan;
}

/* A pair of ties: choices that stand for them, and what no plan with them is shorter than. */
struct pair {
    int first, last; /* -1: all of the last block's */
    double bound_s;
};

/* On one stage sums tell: can a last choice still be part of a plan that is fast enough? */
static bool is_hopeless(const struct solver *solver, const struct pair *pair,
                        const struct choices *lasts, const struct choice *last)
{
    const struct instance *instance = solver->frontiers->instance;
    return solver->frontiers->one_stage && pair->bound_s - lasts->least_alone_s +
                                                   instance->point.micro_batches * last->floor_s +
                                                   last->floor_once_s >=
                                               solver->frontiers->upper_s;
}

/* Those of this tie (0: all), with their costs beside the other end's. */
static size_t select_tie(struct solver *solver, const struct pair *pair, int block, int tied,
                         const struct strategy *partner, struct choice *out)
{
    struct instance *instance = solver->frontiers->instance;
    int stage = block == 0 ? 0 : instance->point.stages - 1;
    const struct choices *all = instance_choices(instance, stage, block);
    struct tie tie = {instance->sites[instance->point.stages - 1 - stage], partner};
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++) {
        if ((tied && all->items[i].tie != tied) ||
            (block > 0 && is_hopeless(solver, pair, all, &all->items[i])))
            continue;
        out[count] = all->items[i];
        count +=
            costs_block(instance->costs, instance->sites[stage], block, &all->items[i].strategy,
                        &tie, instance->point.samples, &out[count].cost, NULL) == 0;
    }
    return count;
}

static int by_bound(const void *first, const void *second)
{
    const struct pair *a = first, *b = second;
    if (a->bound_s != b->bound_s)
        return a->bound_s < b->bound_s ? -1 : 1;
    return a->first != b->first ? a->first - b->first : a->last - b->last;
}

static bool is_new(const struct choices *choices, size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (choices->items[i].tie == choices->items[index].tie)
            return false;
    return true;
}

static void set_pair(struct solver *solver, const struct pair *pair)
{
    struct frontiers *frontiers = solver->frontiers;
    struct instance *instance = frontiers->instance;
    int last = instance->blocks - 1;
    const struct choice *first = &instance_choices(instance, 0, 0)->items[pair->first], *end = NULL;
    if (pair->last >= 0)
        end = &instance_choices(instance, instance->point.stages - 1, last)->items[pair->last];
    frontiers_forget_ends(frontiers);
    frontiers->firsts = solver->firsts;
    frontiers->lasts = solver->lasts;
    frontiers->first_count = select_tie(solver, pair, 0, first->tie,
                                        end ? &end->strategy : &first->strategy, solver->firsts);
    frontiers->last_count =
        select_tie(solver, pair, last, end ? end->tie : 0, &first->strategy, solver->lasts);
}

/* The least of those with the tie of one of them, or of all. */
static void find_floor(const struct choices *choices, int like, double *seconds, double *once_s)
{
    *seconds = *once_s = INFINITY;
    for (size_t i = 0; i < choices->count; i++) {
        const struct choice *choice = &choices->items[i];
        if (like >= 0 && choice->tie != choices->items[like].tie)
            continue;
        *seconds = fmin(*seconds, choice->floor_s);
        *once_s = fmin(*once_s, choice->floor_once_s);
    }
}

/* The sums that all plans have, with the ends' choices of a pair. */
static double pair_bound(const struct instance *instance, const struct choices *firsts,
                         const struct choices *lasts, const struct pair *pair)
{
    double first, last, first_once, last_once;
    find_floor(firsts, pair->first, &first, &first_once);
    find_floor(lasts, pair->last, &last, &last_once);
    if (instance->point.stages == 1)
        return instance_formula_bound(instance) - firsts->least_alone_s +
               instance->point.micro_batches * first + first_once;
    double sum = first + last, longest = fmax(fmax(first, last), instance->longest_s);
    sum += instance_between(instance, 1, instance->blocks - 1).seconds;
    return sum + first_once + instance->bases[0].once_s +
           (instance->point.micro_batches - 1) * fmax(longest, sum / instance->point.stages);
}

static struct plan *solve_pairs(struct solver *solver)
{
    struct instance *instance = solver->frontiers->instance;
    const struct choices *firsts = instance_choices(instance, 0, 0),
                         *lasts = instance_choices(instance, instance->point.stages - 1,
                                                   instance->blocks - 1);
    bool one = instance->point.stages == 1;
    struct pair *pairs = xcalloc(firsts->count * (one ? 1 : lasts->count), sizeof *pairs);
    size_t count = 0;
    struct plan *best = NULL;
    solver->firsts = xcalloc(firsts->count, sizeof *solver->firsts);
    solver->lasts = xcalloc(lasts->count, sizeof *solver->lasts);
    for (size_t i = 0; i < firsts->count; i++) {
        if (!is_new(firsts, i))
            continue;
        for (size_t j = 0; j < (one ? 1 : lasts->count); j++)
            if (one || is_new(lasts, j))
                pairs[count++] = (struct pair){(int)i, one ? -1 : (int)j, 0};
    }
    for (size_t i = 0; i < count; i++)
        pairs[i].bound_s = pair_bound(instance, firsts, lasts, &pairs[i]);
    qsort(pairs, count, sizeof *pairs, by_bound);
    for (size_t i = 0; i < count && pairs[i].bound_s < solver->frontiers->upper_s; i++) {
        if (i == solver->frontiers->pairs) {
            solver->frontiers->omitted_s = fmin(solver->frontiers->omitted_s, pairs[i].bound_s);
            break;
        }
        set_pair(solver, &pairs[i]);
        struct plan *plan = solve(solver);
        if (plan) {
            plan_destroy(best);
            best = plan;
        }
    }
    free(solver->firsts);
    free(solver->lasts);
    free(pairs);
    return best;
}

struct plan *partition_solve(struct frontiers *frontiers)
{
    struct solver solver = {.frontiers = frontiers};
    return frontiers->instance->costs->model.tied ? solve_pairs(&solver) : solve(&solver);
}
