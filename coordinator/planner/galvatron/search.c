/* search.c - points first, then what goes with each of them.
 *
 * A point fixes the number of stages, the micro-batches, the least tp, the
 * largest one, and how embedding and head are divided. Points are opened in the
 * order of a bound from below, for which every layer has its fastest strategy
 * whatever memory it takes, until the bound reaches the best plan. In a point
 * stages are independent: each is filled (stage.h) for a few weights of what is
 * done once per step and not hidden by the stages before. With one stage there
 * is one right weight, and the answer is the best.
 *
 * Simulated, a step is at least sum of T before j + m T_j for every stage j; of
 * stages that take W together the least that this can be is W / (1 - (1 -
 * 1/m)^p). */
#include "coordinator/planner/galvatron/search.h"

#include "common/base/memory.h"
#include "coordinator/planner/galvatron/stage.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 320   /* strategies of a layer */
#define WEIGHTS 3         /* of what is done once per step */
#define NEAR 1.02         /* times the best plan's step: stages are improved one by one */
#define DIVISIONS_MAX 256 /* of a point: up to so many all are tried */
#define FILLED_MAX ((size_t)1 << 22)
#define CLIMBS_MAX 64 /* rounds in which boundaries between stages move */

/* A strategy of a layer of some type in a point. */
struct choice {
    struct galvatron_strategy strategy;
    double seconds, once_s; /* of a micro-batch without reduction, and what that adds */
};

/* What a layer of some type may have on a stage; ready: it has been asked for.
 */
struct menu {
    struct galvatron_option *options;
    int count;
    bool ready;
};

/* A stage with the layers from first on: filled, or not yet (0), or in vain
 * (-1). */
struct filled {
    int8_t state;
    double seconds, once_s;
};

struct search {
    const struct galvatron_problem *problem;
    enum galvatron_goal goal;
    const atomic_bool *stop;
    int layers;
    double best_s;
    struct galvatron_plan best; /* no strategies: none yet */
    struct error reason;        /* why the last one could not */
};

struct opened {
    struct search *search;
    const struct galvatron_point *point;
    struct choice *choices[GALVATRON_TYPES_MAX];
    int choice_count[GALVATRON_TYPES_MAX];
    int64_t micro_batches;
    struct galvatron_cost *ends; /* per stage */
    struct menu *menus;          /* [stage][type] */
    struct filled *filled;       /* [stage][first][count] */
};

/* ---- points ---- */

struct candidate_point {
    struct galvatron_point point;
    double bound_s;
};

struct candidate_points {
    struct candidate_point *items;
    size_t count, capacity;
};

static int by_bound(const void *a, const void *b)
{
    const struct candidate_point *one = a, *other = b;
    if (one->bound_s != other->bound_s)
        return one->bound_s < other->bound_s ? -1 : 1;
    return memcmp(&one->point, &other->point, sizeof one->point);
}

/* The strategies of a layer of a type that the profile can price. */
static int list_choices(const struct galvatron_problem *problem,
                        const struct galvatron_point *point, int type, struct choice *out,
                        struct error *err)
{
    int width = galvatron_devices(&problem->spec) / point->pp, count = 0;
    for (int tp = point->min_tp; tp <= point->max_tp && tp <= width; tp *= 2) {
        if (width % tp != 0)
            break;
        for (int more = 0; more < 16; more++) {
            struct galvatron_strategy one = {.tp = tp,
                                             .dp = width / tp,
                                             .consecutive = more & 1,
                                             .recompute = more >> 1 & 1,
                                             .zero = more & 4              ? 3
                                                     : problem->spec.zero2 ? 2
                                                                           : 0,
                                             .ulysses = more >> 3};
            struct galvatron_cost cost;
            bool both = tp > 1 && one.dp > 1;
            double mb;
            if ((!both && !one.consecutive) || (one.dp == 1 && (more & 4)) ||
                (one.ulysses && (tp == 1 || !problem->spec.measured_collectives)) ||
                count == OPTIONS_MAX ||
                galvatron_layer_seconds(problem, type, &one, point, &cost, err) < 0 ||
                galvatron_layer_mb(problem, type, &one, point, 0, &mb, err) < 0)
                continue;
            out[count++] = (struct choice){one, cost.seconds, cost.reduced_s - cost.seconds};
        }
    }
    return count;
}

/* What stages that take `sum` together take at least in a simulated step of m
 * micro-batches. */
static double bound_pipeline(double sum, double m, int pp)
{
    return m == 1 ? sum : sum / (1 - pow(1 - 1 / m, pp));
}

/* A bound from below of all plans of a point; infinity: there is none. */
static double bound_point(struct search *search, const struct galvatron_point *point)
{
    const struct galvatron_problem *problem = search->problem;
    int64_t m = galvatron_micro_batches(problem, point);
    struct choice *choices = xcalloc(OPTIONS_MAX, sizeof *choices);
    struct galvatron_cost *stages = xcalloc((size_t)point->pp, sizeof *stages);
    double fastest[GALVATRON_TYPES_MAX], sum = 0, bound_s;
    int division[GALVATRON_STAGES_MAX], layer = 0, rc = 0;
    rc = galvatron_divide(problem, point, division, &search->reason);
    for (int type = 0; type < problem->spec.type_count && rc == 0; type++) {
        int count = list_choices(problem, point, type, choices, &search->reason);
        fastest[type] = INFINITY;
        for (int i = 0; i < count; i++)
            fastest[type] = fmin(fastest[type], choices[i].seconds);
        rc = count ? 0 : -EINVAL;
        sum += fastest[type] * problem->spec.types[type].count;
    }
    for (int i = 0; i < point->pp && rc == 0; i++) {
        if (i <= 1 || i == point->pp - 1)
            rc = galvatron_ends(problem, point, i, &stages[i], &search->reason);
        sum += stages[i].seconds;
        for (int n = 0; n < division[i] && rc == 0; n++, layer++)
            stages[i].seconds += fastest[galvatron_type_of(&problem->spec, layer)];
    }
    if (rc < 0)
        bound_s = INFINITY;
    else if (search->goal == GALVATRON_FORMULA)
        bound_s = galvatron_formula(stages, point->pp, m);
    else
        bound_s = bound_pipeline(sum, (double)m, point->pp);
    free(stages);
    free(choices);
    return bound_s;
}

static void add_point(struct search *search, struct galvatron_point point,
                      struct candidate_points *out)
{
    double bound_s = bound_point(search, &point);
    if (!isfinite(bound_s))
        return;
    out->items = grow(out->items, out->count, &out->capacity, sizeof *out->items);
    out->items[out->count++] = (struct candidate_point){point, bound_s};
}

/* All ways to divide embedding and head, with these micro-batches. */
static void list_ends(struct search *search, struct galvatron_point point,
                      struct candidate_points *out)
{
    int width = galvatron_devices(&search->problem->spec) / point.pp;
    for (int vsp = 0; vsp <= search->problem->spec.measured_collectives; vsp++)
        for (int sdp = 0; sdp <= 1; sdp++)
            for (int vtp = point.min_tp; vtp <= point.max_tp && vtp <= width; vtp *= 2) {
                point.vsp = vsp;
                point.embed_sdp = sdp;
                point.vtp = vtp;
                if (width % vtp == 0)
                    add_point(search, point, out);
            }
}

/* All micro-batches that the replicas at min_tp cut the batch into exactly. */
static void list_points(struct search *search, struct candidate_points *out)
{
    const struct galvatron_spec *spec = &search->problem->spec;
    int devices = galvatron_devices(spec);
    for (int pp = 1; pp <= devices && pp <= search->layers && pp <= GALVATRON_STAGES_MAX; pp *= 2)
        for (int min_tp = 1; min_tp <= spec->max_tp && devices % (pp * min_tp) == 0; min_tp *= 2) {
            int replicas = devices / pp / min_tp;
            int64_t share = spec->batch / replicas;
            for (int64_t chunks = 1;
                 chunks <= share && chunks <= PLAN_MICRO_BATCHES_MAX && spec->batch % replicas == 0;
                 chunks++) {
                struct galvatron_point point;
                memset(&point, 0, sizeof point); /* compared as bytes */
                point.pp = pp;
                point.batch = spec->batch;
                point.chunks = chunks;
                point.samples = (share + chunks - 1) / chunks;
                point.min_tp = min_tp;
                if (spec->batch % chunks != 0 ||
                    (share + point.samples - 1) / point.samples != chunks)
                    continue;
                for (int max_tp = spec->global_buffer ? min_tp : spec->max_tp;
                     max_tp <= spec->max_tp; max_tp *= 2) {
                    point.max_tp = max_tp;
                    list_ends(search, point, out);
                }
            }
        }
}

/* ---- a point that is open ---- */

static void opened_finish(struct opened *opened)
{
    size_t menus = (size_t)opened->point->pp * (size_t)opened->search->problem->spec.type_count;
    for (int type = 0; type < opened->search->problem->spec.type_count; type++)
        free(opened->choices[type]);
    for (size_t i = 0; opened->menus && i < menus; i++)
        free(opened->menus[i].options);
    free(opened->menus);
    free(opened->filled);
    free(opened->ends);
}

static int opened_init(struct opened *opened, struct search *search,
                       const struct galvatron_point *point)
{
    const struct galvatron_problem *problem = search->problem;
    size_t stages = (size_t)point->pp;
    *opened = (struct opened){.search = search, .point = point};
    opened->micro_batches = galvatron_micro_batches(problem, point);
    opened->ends = xcalloc(stages, sizeof *opened->ends);
    opened->menus = xcalloc(stages * (size_t)problem->spec.type_count, sizeof *opened->menus);
    for (int type = 0; type < problem->spec.type_count; type++) {
        opened->choices[type] = xcalloc(OPTIONS_MAX, sizeof *opened->choices[type]);
        opened->choice_count[type] =
            list_choices(problem, point, type, opened->choices[type], &search->reason);
    }
    for (int i = 0; i < point->pp; i++) {
        int rc = galvatron_ends(problem, point, i, &opened->ends[i], &search->reason);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static const struct menu *find_menu(struct opened *opened, int stage, int type)
{
    const struct galvatron_problem *problem = opened->search->problem;
    struct menu *menu =
        &opened->menus[(size_t)stage * (size_t)problem->spec.type_count + (size_t)type];
    if (menu->ready)
        return menu;
    menu->ready = true;
    menu->options = xcalloc((size_t)opened->choice_count[type] + 1, sizeof *menu->options);
    for (int i = 0; i < opened->choice_count[type]; i++) {
        const struct choice *choice = &opened->choices[type][i];
        double mb;
        if (galvatron_layer_mb(problem, type, &choice->strategy, opened->point,
                               problem->spec.gpipe ? 0 : stage, &mb, NULL) < 0)
            continue;
        menu->options[menu->count++] =
            (struct galvatron_option){choice->seconds, choice->once_s, (int64_t)ceil(mb), i};
    }
    menu->count = galvatron_thin(menu->options, menu->count);
    return menu;
}

/* The layers of a stage as a knapsack. */
struct knapsack {
    struct galvatron_run runs[GALVATRON_TYPES_MAX];
    int types[GALVATRON_TYPES_MAX], count;
    int64_t mb;
};

static struct knapsack make_knapsack(struct opened *opened, int stage, int first, int count)
{
    const struct galvatron_spec *spec = &opened->search->problem->spec;
    struct knapsack out = {.mb = galvatron_budget_mb(spec) - galvatron_reserve_mb(spec) -
                                 opened->ends[stage].mb};
    for (int type = 0, begin = 0; type < spec->type_count; begin += spec->types[type++].count) {
        int end = begin + spec->types[type].count, from = begin > first ? begin : first;
        int to = end < first + count ? end : first + count;
        if (from >= to)
            continue;
        const struct menu *menu = find_menu(opened, stage, type);
        out.types[out.count] = type;
        out.runs[out.count++] = (struct galvatron_run){to - from, menu->count, menu->options};
    }
    return out;
}

/* What a second that is done once per step counts in seconds of a micro-batch,
 * beyond what of it is hidden. */
struct once {
    double weight, free_s;
};

/* Fill a stage with these layers; false: they do not fit. *out receives the
 * whole stage, and numbers (optional) the choice of each layer. */
static bool fill_stage(struct opened *opened, int stage, int first, int count, struct once once,
                       struct galvatron_cost *out, int *numbers)
{
    struct knapsack knapsack = make_knapsack(opened, stage, first, count);
    struct galvatron_stage of = {knapsack.runs, knapsack.count, knapsack.mb, once.weight,
                                 once.free_s};
    int *own = numbers ? numbers : xcalloc((size_t)count + 1, sizeof *own), at = 0;
    bool fits = isfinite(galvatron_fill(&of, own));
    *out = opened->ends[stage];
    for (int r = 0; r < knapsack.count && fits; r++)
        for (int n = 0; n < knapsack.runs[r].count; n++) {
            const struct choice *choice = &opened->choices[knapsack.types[r]][own[at++]];
            out->seconds += choice->seconds;
            out->reduced_s += choice->seconds + choice->once_s;
            out->layers_s += choice->seconds + choice->once_s;
        }
    if (!numbers)
        free(own);
    return fits;
}

/* The weights that are tried. A single stage has its own: every micro-batch
 * takes its seconds. */
static int list_weights(const struct opened *opened, double out[WEIGHTS])
{
    double once = 1 / (double)opened->micro_batches;
    memcpy(out, (double[WEIGHTS]){once, 0, 1}, WEIGHTS * sizeof *out);
    return opened->point->pp == 1 ? 1 : WEIGHTS;
}

/* What of a stage's reductions is hidden: by the formula behind embedding and
 * head and all stages before; simulated behind the backward passes of those. */
static double hidden_s(const struct opened *opened, int stage, double before_s)
{
    return opened->search->goal == GALVATRON_FORMULA ? opened->ends[stage].seconds + before_s
                                                     : before_s * 2 / 3;
}

/* The time of stages that are filled by the goal's measure. */
static double measure(const struct opened *opened, const struct galvatron_cost *stages)
{
    return opened->search->goal == GALVATRON_FORMULA
               ? galvatron_formula(stages, opened->point->pp, opened->micro_batches)
               : galvatron_neutral(stages, opened->point->pp, opened->micro_batches);
}

/* A bound from below of the plans of this division. */
static double bound_division(struct opened *opened, const int *division)
{
    int pp = opened->point->pp;
    struct galvatron_cost *stages = xcalloc((size_t)pp, sizeof *stages);
    double bound_s = 0, weights[WEIGHTS],
           weight = list_weights(opened, weights) > 1 ? 0 : weights[0];
    for (int i = 0, layer = 0; i < pp && isfinite(bound_s); layer += division[i++]) {
        struct knapsack knapsack = make_knapsack(opened, i, layer, division[i]);
        bound_s = galvatron_fill_bound(&(struct galvatron_stage){
            knapsack.runs, knapsack.count, knapsack.mb, weight, hidden_s(opened, i, 0)});
        stages[i].seconds = stages[i].reduced_s = opened->ends[i].seconds + bound_s;
        if (pp == 1)
            stages[i].reduced_s += opened->ends[i].reduced_s - opened->ends[i].seconds;
    }
    if (isfinite(bound_s))
        bound_s = measure(opened, stages);
    free(stages);
    return bound_s;
}

/* A bound from below of the plans of all divisions: every layer on the last
 * stage, which has the fewest samples in flight, with the memory of all stages
 * together. */
static double bound_divisions(struct opened *opened)
{
    int pp = opened->point->pp;
    struct knapsack knapsack = make_knapsack(opened, pp - 1, 0, opened->search->layers);
    double sum = 0, m = (double)opened->micro_batches;
    for (int i = 0; i < pp; i++) {
        sum += opened->ends[i].seconds;
        if (i < pp - 1)
            knapsack.mb += make_knapsack(opened, i, 0, 0).mb;
    }
    sum += galvatron_fill_bound(
        &(struct galvatron_stage){knapsack.runs, knapsack.count, knapsack.mb, 0, 0});
    return bound_pipeline(sum, m, pp);
}

/* The plan with this division and a weight for every stage becomes the best. */
static void take_plan(struct opened *opened, const int *division, const struct once *once,
                      double step_s)
{
    struct search *search = opened->search;
    const struct galvatron_point *point = opened->point;
    int *numbers = xcalloc((size_t)search->layers, sizeof *numbers), layer = 0;
    if (!search->best.strategies)
        search->best.strategies = xcalloc((size_t)search->layers, sizeof *search->best.strategies);
    search->best.point = *point;
    search->best.layers = search->layers;
    search->best_s = step_s;
    memcpy(search->best.division, division, (size_t)point->pp * sizeof *division);
    for (int i = 0; i < point->pp; i++) {
        struct galvatron_cost cost;
        fill_stage(opened, i, layer, division[i], once[i], &cost, numbers + layer);
        layer += division[i];
    }
    for (int l = 0; l < search->layers; l++)
        search->best.strategies[l] =
            opened->choices[galvatron_type_of(&search->problem->spec, l)][numbers[l]].strategy;
    free(numbers);
}

/* Try a division with all weights of the first stage and of the others. */
static void try_division(struct opened *opened, const int *division)
{
    int pp = opened->point->pp, layer = 0;
    double weights[WEIGHTS], before_s = 0;
    int count = list_weights(opened, weights);
    struct galvatron_cost *filled = xcalloc((size_t)(pp * WEIGHTS), sizeof *filled);
    struct galvatron_cost *stages = xcalloc((size_t)pp, sizeof *stages);
    struct once *all = xcalloc((size_t)(pp * WEIGHTS), sizeof *all);
    struct once *once = xcalloc((size_t)pp, sizeof *once);
    bool fits = bound_division(opened, division) < opened->search->best_s;
    for (int i = 0; i < pp && fits; layer += division[i++]) {
        for (int w = 0; w < count && fits; w++) {
            all[i * WEIGHTS + w] = (struct once){weights[w], hidden_s(opened, i, before_s)};
            fits = fill_stage(opened, i, layer, division[i], all[i * WEIGHTS + w],
                              &filled[i * WEIGHTS + w], NULL);
        }
        before_s += filled[i * WEIGHTS].seconds;
    }
    double best_s = INFINITY;
    int *chosen = xcalloc((size_t)pp, sizeof *chosen), best = 0;
    for (int combination = 0; combination < (pp > 1 ? count * count : 1) && fits; combination++) {
        for (int i = 0; i < pp; i++)
            stages[i] = filled[i * WEIGHTS + (i == 0 ? combination % count : combination / count)];
        double step_s = measure(opened, stages);
        if (step_s < best_s) {
            best_s = step_s;
            best = combination;
        }
    }
    for (int i = 0; i < pp && fits; i++) {
        chosen[i] = i == 0 ? best % count : best / count;
        stages[i] = filled[i * WEIGHTS + chosen[i]];
    }
    /* Then stage by stage, where that may lead to the best plan. */
    for (bool better = fits && best_s < NEAR * opened->search->best_s; better;) {
        better = false;
        for (int i = 0; i < pp; i++)
            for (int w = 0; w < count; w++) {
                stages[i] = filled[i * WEIGHTS + w];
                double step_s = w == chosen[i] ? best_s : measure(opened, stages);
                if (step_s < best_s) {
                    best_s = step_s;
                    chosen[i] = w;
                    better = true;
                }
                stages[i] = filled[i * WEIGHTS + chosen[i]];
            }
    }
    for (int i = 0; i < pp; i++)
        once[i] = all[i * WEIGHTS + chosen[i]];
    if (fits && best_s < opened->search->best_s)
        take_plan(opened, division, once, best_s);
    free(chosen);
    free(once);
    free(all);
    free(stages);
    free(filled);
}

/* ---- divisions that are free ---- */

/* A stage with these layers, where what is done once counts on the first one,
 * which ends last. */
static struct filled stage_at(struct opened *opened, int stage, int first, int count)
{
    size_t layers = (size_t)opened->search->layers;
    /* Where all layers are alike, only their number counts. */
    size_t row = opened->search->problem->spec.type_count == 1
                     ? (size_t)stage
                     : (size_t)stage * layers + (size_t)first;
    struct filled *known =
        opened->filled ? &opened->filled[row * layers + (size_t)count - 1] : NULL;
    if (known && known->state != 0)
        return *known;
    struct galvatron_cost cost;
    struct once once = {stage == 0 ? 1 / (double)opened->micro_batches : 0, 0};
    bool fits = fill_stage(opened, stage, first, count, once, &cost, NULL);
    struct filled filled = {fits ? 1 : -1, fits ? cost.seconds : INFINITY,
                            fits ? cost.reduced_s - cost.seconds : 0};
    if (known)
        *known = filled;
    return filled;
}

/* Deal out layers so that no stage takes longer than `most`: from the front as
 * many as possible to each stage, or from the back. false: it cannot be done.
 */
static bool deal(struct opened *opened, double most, bool back, int *division)
{
    int pp = opened->point->pp, left = opened->search->layers;
    for (int k = 0; k < pp; k++) {
        int stage = back ? pp - 1 - k : k, count = 0, behind = pp - 1 - k;
        while (left - count > behind) {
            int first = back ? left - count - 1 : opened->search->layers - left;
            if (stage_at(opened, stage, first, count + 1).seconds > most)
                break;
            count++;
        }
        if (count == 0)
            return false;
        division[stage] = count;
        left -= count;
    }
    return left == 0;
}

/* The sum of the stages and m - 1 of the longest: what a step takes about. */
static double rough_seconds(struct opened *opened, const int *division)
{
    double sum = 0, most = 0;
    for (int i = 0, layer = 0; i < opened->point->pp; layer += division[i++]) {
        double seconds = stage_at(opened, i, layer, division[i]).seconds;
        sum += seconds;
        most = fmax(most, seconds);
    }
    return sum + (double)(opened->micro_batches - 1) * most;
}

/* Simulated. */
static double simulated_seconds(struct opened *opened, const int *division)
{
    int pp = opened->point->pp;
    struct galvatron_cost *stages = xcalloc((size_t)pp, sizeof *stages);
    double step_s = 0;
    for (int i = 0, layer = 0; i < pp && isfinite(step_s); layer += division[i++]) {
        struct filled filled = stage_at(opened, i, layer, division[i]);
        stages[i].seconds = step_s = filled.seconds;
        stages[i].reduced_s = filled.seconds + filled.once_s;
    }
    if (isfinite(step_s))
        step_s = galvatron_neutral(stages, pp, opened->micro_batches);
    free(stages);
    return step_s;
}

/* Move a layer over one boundary after another, as long as a step gets shorter.
 */
static void climb(struct opened *opened, int *division)
{
    int pp = opened->point->pp;
    double step_s = simulated_seconds(opened, division);
    for (int round = 0; round < CLIMBS_MAX && isfinite(step_s); round++) {
        bool better = false;
        for (int move = 0; move < 2 * (pp - 1); move++) {
            int from = move / 2 + (move & 1), to = move / 2 + !(move & 1);
            if (division[from] == 1)
                continue;
            division[from]--;
            division[to]++;
            double moved_s = rough_seconds(opened, division) < 1.5 * step_s
                                 ? simulated_seconds(opened, division)
                                 : INFINITY;
            if (moved_s < step_s) {
                step_s = moved_s;
                better = true;
            } else {
                division[from]++;
                division[to]--;
            }
        }
        if (!better)
            return;
    }
}

/* The least `most` with which layers can be dealt out, to a thousandth; 0: with
 * none. */
static double balance(struct opened *opened, int *division)
{
    double low = 0, high = 0;
    for (int type = 0; type < opened->search->problem->spec.type_count; type++)
        for (int i = 0; i < opened->choice_count[type]; i++)
            high = fmax(high, opened->choices[type][i].seconds);
    high *= opened->search->layers;
    for (int i = 0; i < opened->point->pp; i++)
        high += opened->ends[i].seconds;
    if (!deal(opened, high, false, division))
        return 0;
    while (high - low > 1e-3 * high) {
        double middle = (low + high) / 2;
        *(deal(opened, middle, false, division) ? &high : &low) = middle;
    }
    return high;
}

/* How many divisions there are; DIVISIONS_MAX + 1: more than that. */
static int count_divisions(int layers, int pp)
{
    double count = 1;
    for (int i = 1; i < pp && count <= DIVISIONS_MAX; i++)
        count = count * (layers - i) / i;
    return count > DIVISIONS_MAX ? DIVISIONS_MAX + 1 : (int)(count + 0.5);
}

/* All divisions of what is left over the stages from this one on. */
static void try_all(struct opened *opened, int stage, int left, int *division)
{
    int behind = opened->point->pp - 1 - stage;
    for (int count = behind ? 1 : left; count <= left - behind; count++) {
        division[stage] = count;
        if (behind)
            try_all(opened, stage + 1, left - count, division);
        else
            try_division(opened, division);
    }
}

static void try_divisions(struct opened *opened)
{
    struct search *search = opened->search;
    int division[GALVATRON_STAGES_MAX], pp = opened->point->pp;
    size_t layers = (size_t)search->layers;
    if (bound_divisions(opened) >= search->best_s)
        return;
    size_t entries = (size_t)pp * layers * (search->problem->spec.type_count == 1 ? 1 : layers);
    if (entries <= FILLED_MAX) /* else they are filled anew each time */
        opened->filled = xcalloc(entries, sizeof *opened->filled);
    if (count_divisions(search->layers, pp) <= DIVISIONS_MAX) {
        try_all(opened, 0, search->layers, division);
        return;
    }
    double most = balance(opened, division);
    for (int start = 0; start < 3; start++) {
        bool dealt = start < 2 ? most > 0 && deal(opened, most, start == 1, division)
                               : galvatron_divide(search->problem, opened->point, division,
                                                  &search->reason) == 0;
        if (!dealt)
            continue;
        climb(opened, division);
        try_division(opened, division);
    }
}

static void open_point(struct search *search, const struct galvatron_point *point)
{
    struct opened opened;
    int division[GALVATRON_STAGES_MAX];
    if (opened_init(&opened, search, point) == 0) {
        if (search->goal == GALVATRON_NEUTRAL && point->pp > 1)
            try_divisions(&opened);
        else if (galvatron_divide(search->problem, point, division, &search->reason) == 0)
            try_division(&opened, division);
    }
    opened_finish(&opened);
}

/* What the fullest device of a point's plan needs at least, as that project
 * divides layers. */
static int64_t least_mb(struct search *search, const struct galvatron_point *point)
{
    const struct galvatron_spec *spec = &search->problem->spec;
    int division[GALVATRON_STAGES_MAX], layer = 0;
    int64_t most = INT64_MAX;
    struct opened opened;
    if (opened_init(&opened, search, point) == 0 &&
        galvatron_divide(search->problem, point, division, &search->reason) == 0)
        most = 0;
    for (int i = 0; i < point->pp && most < INT64_MAX; i++) {
        int64_t mb = opened.ends[i].mb;
        for (int end = layer + division[i]; layer < end && mb < INT64_MAX; layer++) {
            const struct menu *menu = find_menu(&opened, i, galvatron_type_of(spec, layer));
            mb = menu->count ? mb + menu->options[0].mb : INT64_MAX;
        }
        most = mb > most ? mb : most;
    }
    opened_finish(&opened);
    return most;
}

/* Why there is no plan. */
static int explain_none(struct search *search, const struct candidate_points *points,
                        struct error *err)
{
    const struct galvatron_spec *spec = &search->problem->spec;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < points->count; i++) {
        int64_t mb = least_mb(search, &points->items[i].point);
        least = mb < least ? mb : least;
    }
    if (least < INT64_MAX)
        return error_set(err, -ENOSPC,
                         "no plan of Galvatron's space on %d devices fits by its accounting: it "
                         "takes %lld MB of each, and of %lld it uses %lld",
                         galvatron_devices(spec), (long long)least,
                         (long long)galvatron_budget_mb(spec),
                         (long long)(galvatron_budget_mb(spec) - galvatron_reserve_mb(spec)));
    return error_set(err, -EINVAL, "no plan of Galvatron's space is possible on %d devices: %s",
                     galvatron_devices(spec),
                     search->reason.text[0] ? search->reason.text
                                            : "no number of replicas divides the batch");
}

int galvatron_search(const struct galvatron_problem *problem, enum galvatron_goal goal,
                     const atomic_bool *stop, struct galvatron_plan *out, struct error *err)
{
    struct search search = {.problem = problem,
                            .goal = goal,
                            .stop = stop,
                            .layers = galvatron_layers(&problem->spec),
                            .best_s = INFINITY};
    struct candidate_points points = {0};
    bool stopped = false;
    *out = search.best;
    if (problem->spec.batch < 1)
        return error_set(err, -EINVAL,
                         "nothing says the batch: write batch_asked beside the "
                         "spec, or global_bsz "
                         "into it");
    if (goal == GALVATRON_NEUTRAL &&
        galvatron_search(problem, GALVATRON_FORMULA, stop, &search.best, NULL) == 0) {
        struct galvatron_verdict *verdict = xcalloc(1, sizeof *verdict);
        galvatron_judge(problem, &search.best, verdict, NULL);
        search.best_s = verdict->neutral_s;
        free(verdict);
    }
    list_points(&search, &points);
    if (points.count > 1)
        qsort(points.items, points.count, sizeof *points.items, by_bound);
    for (size_t i = 0; i < points.count && points.items[i].bound_s < search.best_s && !stopped;
         i++) {
        open_point(&search, &points.items[i].point);
        stopped = stop && atomic_load(stop);
    }
    int rc = 0;
    if (stopped)
        rc = error_set(err, -ECANCELED, "the search was stopped");
    else if (!search.best.strategies)
        rc = explain_none(&search, &points, err);
    if (rc < 0)
        galvatron_plan_finish(&search.best);
    free(points.items);
    *out = search.best;
    return rc;
}
