/* choices.c - prices a block's strategies and drops those that are never worth taking.
 *
 * First only the plain strategy of every role vector is priced: the resulting lower bounds of all
 * blocks tell which vectors are too slow for any plan that is wanted. */
#include "coordinator/planner/exact/instance.h"

#include "common/base/memory.h"
#include "common/program/lower.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct part_ends ends_of(struct costs *costs, const struct site *site, int place,
                                const struct strategy *strategy)
{
    struct plan *plan = costs->one;
    plan->stages[0].mesh = site->mesh;
    plan->stages[0].block_first = 0;
    plan->stages[0].block_count = plan->block_count;
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].stage = 0;
    memcpy(plan->blocks[place].roles, strategy->roles, sizeof strategy->roles);
    return lower_ends(costs->model.graph, plan, place);
}

/* Whether b is nowhere better than a. If weights are tied, the other end's costs depend on the tie,
 * and what a user of the weights shards is not known here: its costs are as if they were its
 * own. */
static bool dominates(const struct choice *a, const struct choice *b, int ranks)
{
    const struct part_cost *x = &a->cost, *y = &b->cost;
    return a->entry == b->entry && a->exit == b->exit && a->tie == b->tie &&
           (a->tie == 0 || a->strategy.zero == b->strategy.zero) && x->forward_s <= y->forward_s &&
           x->forward_s + x->backward_s <= y->forward_s + y->backward_s && x->once_s <= y->once_s &&
           part_cost_no_larger(x, y, ranks);
}

/* Of two equal choices the first remains. */
static void drop_dominated(struct choices *choices)
{
    size_t kept = 0;
    int ranks = choices->site->ranks;
    for (size_t i = 0; i < choices->count; i++) {
        bool worse = false;
        for (size_t j = 0; j < choices->count && !worse; j++)
            worse = j != i && dominates(&choices->items[j], &choices->items[i], ranks) &&
                    (j < i || !dominates(&choices->items[i], &choices->items[j], ranks));
        if (!worse)
            choices->items[kept++] = choices->items[i];
    }
    choices->count = kept;
}

static void number_ends(struct costs *costs, struct choices *choices)
{
    const struct site *site = choices->site;
    size_t count = choices->count;
    struct part_ends *ends = xcalloc(count, sizeof *ends);
    int *first_entry = xcalloc(count, sizeof *first_entry);
    int *first_exit = xcalloc(count, sizeof *first_exit);
    choices->entry_like = xcalloc(count, sizeof *choices->entry_like);
    choices->exit_like = xcalloc(count, sizeof *choices->exit_like);
    for (size_t i = 0; i < count; i++) {
        struct choice *choice = &choices->items[i];
        bool again = i > 0 && memcmp(choice->strategy.roles, choice[-1].strategy.roles,
                                     sizeof choice->strategy.roles) == 0;
        int *entry = &choice->entry, *exit = &choice->exit;
        ends[i] = again ? ends[i - 1] : ends_of(costs, site, choices->place, &choice->strategy);
        while (*entry < choices->entries &&
               memcmp(&ends[first_entry[*entry]].input, &ends[i].input, sizeof ends[i].input) != 0)
            ++*entry;
        while (*exit < choices->exits &&
               memcmp(&ends[first_exit[*exit]].output, &ends[i].output, sizeof ends[i].output) != 0)
            ++*exit;
        if (*entry == choices->entries) {
            first_entry[choices->entries] = (int)i;
            choices->entry_like[choices->entries++] = choice->strategy;
        }
        if (*exit == choices->exits) {
            first_exit[choices->exits] = (int)i;
            choices->exit_like[choices->exits++] = choice->strategy;
        }
    }
    free(ends);
    free(first_entry);
    free(first_exit);
}

/* A tied weight may be sharded less than its second user would shard it, so the unsharded cost is
 * the lower bound; what its user adds once per step is not known. */
static void find_least(struct instance *instance, struct choices *choices)
{
    bool tied = instance->costs->model.tied && choices->block == instance->blocks - 1;
    choices->least_s = choices->least_forward_s = INFINITY;
    choices->least_alone_s = INFINITY;
    choices->least_bound_s = choices->omitted_s;
    choices->least_step_s = instance->point.micro_batches * choices->omitted_both_s;
    choices->work_s = instance->point.micro_batches * choices->omitted_time_s;
    choices->late_s = (instance->point.micro_batches - instance->ahead) * choices->omitted_time_s;
    for (size_t i = 0; i < choices->count; i++) {
        struct choice *choice = &choices->items[i];
        struct strategy plain = choice->strategy;
        struct part_cost whole, *cost = &choice->cost;
        plain.zero = 0;
        if (tied && costs_block(instance->costs, choices->site, choices->block, &plain, NULL,
                                instance->point.samples, &whole, NULL) == 0)
            cost = &whole;
        choice->floor_s = cost->forward_s + cost->backward_s;
        choice->floor_once_s = tied ? 0 : cost->once_s;
        choices->least_s = fmin(choices->least_s, choice->floor_s);
        choices->least_forward_s = fmin(choices->least_forward_s, cost->forward_s);
        choices->least_bound_s = fmin(choices->least_bound_s, cost->least_s);
        choices->least_step_s =
            fmin(choices->least_step_s, instance->point.micro_batches * cost->least_both_s +
                                            (tied ? 0 : cost->least_once_s));
        double work_s = instance->point.micro_batches * choice->floor_s + choice->floor_once_s;
        choices->least_alone_s = fmin(choices->least_alone_s, work_s);
        choices->work_s = fmin(choices->work_s, work_s);
        choices->late_s =
            fmin(choices->late_s, work_s - instance->ahead * (choice->floor_s - cost->forward_s));
    }
}

/* The number of leading strategies that share the roles of the first. */
static size_t same_roles(const struct strategy *strategies, size_t count)
{
    size_t same = 1;
    while (same < count &&
           memcmp(strategies[same].roles, strategies[0].roles, sizeof strategies->roles) == 0)
        same++;
    return same;
}

static int add_choices(struct instance *instance, struct role_vector *vector,
                       struct choices *choices, struct error *err)
{
    struct costs *costs = instance->costs;
    int rc = 0;
    vector->added = true;
    for (size_t i = 0; i < vector->count && rc == 0; i++) {
        const struct strategy *strategy = &vector->strategies[i];
        if (instance->relaxed && vector->slow[strategy->recompute])
            continue;
        choices->items =
            grow(choices->items, choices->count, &choices->capacity, sizeof *choices->items);
        struct choice *choice = &choices->items[choices->count];
        choice->strategy = *strategy;
        rc = planner_stopped(costs->request)
                 ? -ECANCELED
                 : costs_block(costs, choices->site, choices->block, strategy, NULL,
                               instance->point.samples, &choice->cost, err);
        choice->tie = costs_tie(costs, choices->site, choices->block, strategy);
        choices->count += rc == 0;
    }
    return rc;
}

/* Whether no dim of the block but the samples can be cut into pieces of different sizes. */
static bool cuts_evenly(const struct graph *graph, int block, int devices)
{
    const struct block *of = &graph->blocks[block];
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        for (int i = 0; i <= operation_output(node->operation); i++)
            for (const char *dim = node->dims[i]; *dim; dim++)
                if (*dim != 'b' && !dim_cuts_equal(*dim) &&
                    sizes_get(&node->sizes, *dim) % devices != 0)
                    return false;
    }
    return true;
}

/* No zero suits every weight: a large one is better gathered once per step, a small one not reduced
 * by itself; but a micro-batch is fastest without any. Recomputing takes time if every device has
 * the same amount of work (test_costs.c), and usually also if samples do not divide evenly:
 * recomputations that take more than none are marked as slow. That does not hold for ranks with
 * different speeds, because the slowest to compute may hide more beside it, and T and u are each
 * taken from the slowest rank. Nothing is known if lowering does not accept a strategy by
 * itself. */
static void find_vector(struct instance *instance, const struct choices *choices,
                        struct role_vector *vector)
{
    double first_s = INFINITY, least_s = INFINITY, least_bound_s = INFINITY,
           least_both_s = INFINITY, least_steady_s = INFINITY, least_forward_s = INFINITY;
    int again = instance->point.micro_batches - 1, ahead = instance->ahead;
    bool asked[RECOMPUTES] = {false}, even = choices->site->even;
    int devices = mesh_count(&choices->site->mesh);
    bool divides = even && instance->point.samples % devices == 0 &&
                   cuts_evenly(instance->costs->request->graph, choices->block, devices);
    if (isinf(instance->upper_s) && !instance->relaxed)
        return;
    for (size_t i = 0; i < vector->count; i++) {
        struct strategy plain = vector->strategies[i];
        struct part_cost cost;
        plain.zero = 0;
        if (asked[plain.recompute])
            continue;
        asked[plain.recompute] = true;
        if (divides && isfinite(first_s)) {
            vector->slow[plain.recompute] = true;
            continue;
        }
        if (planner_stopped(instance->costs->request) ||
            costs_block(instance->costs, choices->site, choices->block, &plain, NULL,
                        instance->point.samples, &cost, NULL) < 0)
            return;
        double seconds = cost.forward_s + cost.backward_s;
        first_s = isinf(first_s) ? seconds : first_s;
        vector->slow[plain.recompute] = even && seconds > first_s;
        least_s = fmin(least_s, seconds);
        least_bound_s = fmin(least_bound_s, cost.least_s);
        least_both_s = fmin(least_both_s, cost.least_both_s);
        least_forward_s = fmin(least_forward_s, cost.forward_s);
        least_steady_s = fmin(least_steady_s, (again - ahead) * seconds + ahead * cost.backward_s);
    }
    vector->least_s = least_s;
    vector->least_bound_s = least_bound_s;
    vector->least_both_s = least_both_s;
    vector->least_steady_s = least_steady_s;
    vector->least_forward_s = least_forward_s;
}

static int refuse(const struct instance *instance, const struct choices *choices,
                  const struct error *reason, struct error *err)
{
    if (reason->text[0])
        return error_set(err, -ERANGE, "%s", reason->text);
    return error_set(err, -EINVAL,
                     "block %s has no strategy that agrees with plan.pin, plan.forbid and its "
                     "sizes on %d devices with micro-batches of %lld samples",
                     instance->costs->request->graph->blocks[choices->block].name,
                     mesh_count(&choices->site->mesh), (long long)instance->point.samples);
}

int choices_survey(struct choices *choices, struct instance *instance, struct error *err)
{
    size_t count;
    struct error reason = {0};
    choices->strategies = space_strategies(instance->costs, choices->site, choices->block,
                                           instance->point.samples, &count, &reason);
    if (count == 0)
        return refuse(instance, choices, &reason, err);
    choices->least_s = choices->least_bound_s = choices->least_steady_s = INFINITY;
    choices->ahead_s = INFINITY;
    for (size_t i = 0; i < count;) {
        choices->vectors = grow(choices->vectors, choices->vector_count, &choices->vector_capacity,
                                sizeof *choices->vectors);
        struct role_vector *vector = &choices->vectors[choices->vector_count++];
        vector->strategies = &choices->strategies[i];
        vector->count = same_roles(vector->strategies, count - i);
        find_vector(instance, choices, vector);
        choices->least_s = fmin(choices->least_s, vector->least_s);
        choices->least_bound_s = fmin(choices->least_bound_s, vector->least_bound_s);
        choices->least_steady_s = fmin(choices->least_steady_s, vector->least_steady_s);
        choices->ahead_s = fmin(choices->ahead_s, vector->least_forward_s);
        i += vector->count;
    }
    choices->least_alone_s = instance->point.micro_batches * choices->least_s;
    choices->least_step_s = INFINITY;
    for (size_t i = 0; i < choices->vector_count; i++)
        choices->least_step_s = fmin(choices->least_step_s, instance->point.micro_batches *
                                                                choices->vectors[i].least_both_s);
    return planner_stopped(instance->costs->request) ? -ECANCELED : 0;
}

/* Prices the vectors that may give the least m T + u, fastest first: no other has less than m T.
 * What a tied weight adds once per step to its last user is not known here. */
int choices_settle(struct choices *choices, struct instance *instance, struct error *err)
{
    int m = instance->point.micro_batches, rc = 0;
    double least_s = INFINITY, least_step_s = INFINITY;
    if (instance->costs->model.tied && choices->block == instance->blocks - 1)
        return 0;
    while (rc == 0) {
        struct role_vector *next = NULL;
        for (size_t i = 0; i < choices->vector_count; i++)
            if (!choices->vectors[i].added &&
                (!next || choices->vectors[i].least_s < next->least_s))
                next = &choices->vectors[i];
        if (!next || m * next->least_s >= least_s)
            break;
        size_t first = choices->count;
        rc = add_choices(instance, next, choices, err);
        for (size_t i = first; i < choices->count; i++) {
            const struct part_cost *cost = &choices->items[i].cost;
            least_s = fmin(least_s, m * (cost->forward_s + cost->backward_s) + cost->once_s);
            least_step_s = fmin(least_step_s, m * cost->least_both_s + cost->least_once_s);
        }
    }
    for (size_t i = 0; i < choices->vector_count; i++)
        if (!choices->vectors[i].added)
            least_step_s = fmin(least_step_s, m * choices->vectors[i].least_both_s);
    if (rc == 0 && isfinite(least_step_s))
        choices->least_step_s = fmax(choices->least_step_s, least_step_s);
    choices->least_alone_s = fmax(choices->least_alone_s, isfinite(least_s) ? least_s : 0);
    return rc;
}

/* If all are too slow, the fastest is kept so that there is something to report on. */
static int add_vectors(struct choices *choices, struct instance *instance, struct error *err)
{
    int rc = 0;
    choices->omitted_s = choices->omitted_both_s = choices->omitted_time_s = INFINITY;
    for (size_t i = 0; i < choices->vector_count && rc == 0; i++) {
        struct role_vector *vector = &choices->vectors[i];
        if (vector->added)
            continue;
        double bound_s = instance_choice_bound(instance, choices, vector->least_s, 0);
        if (bound_s < instance->upper_s || vector->least_s == choices->least_s)
            rc = add_choices(instance, vector, choices, err);
        else {
            choices->omitted_s = fmin(choices->omitted_s, vector->least_bound_s);
            choices->omitted_both_s = fmin(choices->omitted_both_s, vector->least_both_s);
            choices->omitted_time_s = fmin(choices->omitted_time_s, vector->least_s);
        }
    }
    return rc;
}

int choices_fill(struct choices *choices, struct instance *instance, struct error *err)
{
    struct error none = {0};
    int rc = add_vectors(choices, instance, err);
    if (rc < 0)
        return rc;
    if (choices->count == 0)
        return refuse(instance, choices, &none, err);
    number_ends(instance->costs, choices);
    drop_dominated(choices);
    find_least(instance, choices);
    return 0;
}

void choices_destroy(struct choices *choices)
{
    free(choices->strategies);
    free(choices->vectors);
    free(choices->items);
    free(choices->entry_like);
    free(choices->exit_like);
    free(choices);
}
