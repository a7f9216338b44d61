/* test_galvatron_search.c - no plan is better than the one that is found: a stage's strategies
 * against all there are, and whole plans against recorded ones and drawn ones. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/planner/galvatron/search.h"
#include "coordinator/planner/galvatron/stage.h"
#include "tests/coordinator/planner/galvatron_recorded.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STAGES 200
#define SPACES 40
#define PLANS 400 /* of a space */
#define CLOSE 1e-8

struct draw {
    uint64_t seed, next;
};

static int below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 3, draw->next++, (uint64_t)bound);
}

static double between(struct draw *draw, double low, double high)
{
    return low + (high - low) * random_uniform(draw->seed, 3, draw->next++);
}

/* ---- stages ---- */

/* The least cost of what is left from this run and layer on, by trying all. */
static double walk(const struct galvatron_stage *stage, int run, int layer, int64_t mb,
                   double once_s)
{
    double best = INFINITY;
    if (mb < 0)
        return INFINITY;
    if (run == stage->run_count)
        return stage->weight * fmax(0, once_s - stage->free_s);
    if (layer == stage->runs[run].count)
        return walk(stage, run + 1, 0, mb, once_s);
    for (int i = 0; i < stage->runs[run].option_count; i++) {
        const struct galvatron_option *of = &stage->runs[run].options[i];
        best =
            fmin(best, of->seconds + walk(stage, run, layer + 1, mb - of->mb, once_s + of->once_s));
    }
    return best;
}

START_TEST(a_stage_is_filled_with_the_least_cost)
{
    struct draw draw = {test_seed() + (uint64_t)_i, 0};
    struct galvatron_option options[2][6];
    struct galvatron_run runs[2];
    struct galvatron_stage stage = {.runs = runs,
                                    .run_count = 1 + below(&draw, 2),
                                    .mb = 20 + below(&draw, 200),
                                    .weight = below(&draw, 3) / 2.0,
                                    .free_s = below(&draw, 12)};
    int numbers[8], layer = 0;
    for (int r = 0; r < stage.run_count; r++) {
        int count = 1 + below(&draw, 6);
        for (int i = 0; i < count; i++)
            options[r][i] = (struct galvatron_option){
                1 + below(&draw, 30) / 8.0, below(&draw, 30) / 8.0, 1 + below(&draw, 60), i};
        runs[r] = (struct galvatron_run){1 + below(&draw, 4), galvatron_thin(options[r], count),
                                         options[r]};
    }
    double best = walk(&stage, 0, 0, stage.mb, 0);
    double bound = galvatron_fill_bound(&stage), found = galvatron_fill(&stage, numbers);
    ck_assert_int_eq(isfinite(found), isfinite(best));
    if (isfinite(best)) {
        double seconds = 0, once_s = 0;
        int64_t used = 0;
        ck_assert_double_le(bound, best * (1 + CLOSE));
        ck_assert_double_eq_tol(found, best, CLOSE * best);
        for (int r = 0; r < stage.run_count; r++)
            for (int l = 0; l < runs[r].count; l++, layer++)
                for (int i = 0; i < runs[r].option_count; i++)
                    if (options[r][i].number == numbers[layer]) {
                        seconds += options[r][i].seconds;
                        once_s += options[r][i].once_s;
                        used += options[r][i].mb;
                    }
        seconds += stage.weight * fmax(0, once_s - stage.free_s);
        ck_assert_double_eq_tol(seconds, best, CLOSE * best);
        ck_assert_int_le(used, stage.mb);
    }
}
END_TEST

/* Thinning keeps every option that no other beats or equals. */
START_TEST(an_option_that_another_beats_is_dropped)
{
    struct galvatron_option options[] = {{2, 1, 10, 0}, {2, 1, 10, 1}, {1, 3, 10, 2},
                                         {3, 3, 9, 3},  {3, 1, 11, 4}, {2, 0, 12, 5}};
    int kept = galvatron_thin(options, 6);
    ck_assert_int_eq(kept, 4);
    static const int expected[] = {3, 2, 0, 5};
    for (int i = 0; i < kept; i++)
        ck_assert_int_eq(options[i].number, expected[i]);
}
END_TEST

/* ---- plans ---- */

/* The answer of a search, judged; false: there is none. */
static bool search(const struct galvatron_problem *problem, enum galvatron_goal goal,
                   struct galvatron_verdict *out)
{
    struct galvatron_plan plan;
    struct error err = {0};
    int rc = galvatron_search(problem, goal, NULL, &plan, &err);
    if (rc < 0) {
        ck_assert_msg(rc == -ENOSPC, "%s", err.text);
        return false;
    }
    rc = galvatron_judge(problem, &plan, out, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert(out->fits);
    for (int i = 0; out->notes[i]; i++)
        ck_assert_msg(strstr(out->notes[i], "uneven") && goal == GALVATRON_NEUTRAL, "%s",
                      out->notes[i]);
    galvatron_plan_finish(&plan);
    return true;
}

/* By their formula in their space, and simulated in the wider one; where the recorded plan is one
 * of theirs, it lies in both. */
START_TEST(no_recorded_plan_is_better)
{
    struct recorded recorded = recorded_read(_i);
    struct galvatron_verdict *verdict = xcalloc(1, sizeof *verdict);
    double formula_s = json_number_value(json_object_get(recorded.figures, "iteration_s"));
    double neutral_s = json_number_value(json_object_get(recorded.figures, "neutral_s"));
    recorded.problem.spec.batch = recorded.plan.point.batch;
    if (recorded_is_theirs(&recorded)) {
        ck_assert(search(&recorded.problem, GALVATRON_FORMULA, verdict));
        ck_assert_double_le(verdict->formula_s, formula_s * (1 + CLOSE));
        ck_assert(search(&recorded.problem, GALVATRON_NEUTRAL, verdict));
        ck_assert_double_le(verdict->neutral_s, neutral_s * (1 + CLOSE));
    } else if (search(&recorded.problem, GALVATRON_FORMULA, verdict)) {
        double simulated_s = verdict->neutral_s;
        ck_assert(search(&recorded.problem, GALVATRON_NEUTRAL, verdict));
        ck_assert_double_le(verdict->neutral_s, simulated_s * (1 + CLOSE));
    }
    free(verdict);
    recorded_finish(&recorded);
}
END_TEST

/* A number of 1, 2, 4, ... that divides `of` and is at most `most`. */
static int draw_degree(struct draw *draw, int of, int most)
{
    int degree = 1;
    while (degree * 2 <= most && of % (degree * 2) == 0 && below(draw, 3))
        degree *= 2;
    return degree;
}

/* A plan of their space, or with any division; false: the draw was none. */
static bool draw_plan(struct draw *draw, const struct galvatron_problem *problem,
                      bool free_division, struct galvatron_plan *out)
{
    const struct galvatron_spec *spec = &problem->spec;
    struct galvatron_point *point = &out->point;
    int devices = galvatron_devices(spec), layers = galvatron_layers(spec);
    *out = (struct galvatron_plan){.layers = layers};
    point->pp = draw_degree(draw, devices, layers);
    int width = devices / point->pp;
    point->min_tp = draw_degree(draw, width, spec->max_tp);
    point->max_tp = spec->max_tp;
    do
        point->vtp = draw_degree(draw, width, spec->max_tp);
    while (point->vtp < point->min_tp);
    point->embed_sdp = below(draw, 2);
    point->vsp = spec->measured_collectives && below(draw, 2);
    point->batch = spec->batch;
    point->chunks = 1 + below(draw, (int)spec->batch);
    int64_t share = point->batch / (width / point->min_tp);
    point->samples = (share + point->chunks - 1) / point->chunks;
    if (point->batch % (width / point->min_tp) != 0 || point->batch % point->chunks != 0 ||
        share == 0 || (share + point->samples - 1) / point->samples != point->chunks ||
        galvatron_divide(problem, point, out->division, NULL) < 0)
        return false;
    for (int moves = free_division && point->pp > 1 ? below(draw, 6) : 0; moves > 0; moves--) {
        int from = below(draw, point->pp), to = below(draw, point->pp);
        out->division[to] += out->division[from] > 1;
        out->division[from] -= out->division[from] > 1;
    }
    out->strategies = xcalloc((size_t)layers, sizeof *out->strategies);
    bool alike = below(draw, 2);
    for (int l = 0; l < layers; l++) {
        struct galvatron_strategy *of = &out->strategies[l];
        do
            of->tp = draw_degree(draw, width, spec->max_tp);
        while (of->tp < point->min_tp);
        of->dp = width / of->tp;
        of->consecutive = of->tp == 1 || of->dp == 1 || below(draw, 2);
        of->zero = of->dp > 1 && below(draw, 2) ? 3 : spec->zero2 ? 2 : 0;
        of->recompute = below(draw, 2);
        of->ulysses = spec->measured_collectives && of->tp > 1 && below(draw, 2);
        if (alike && l > 0)
            *of = out->strategies[0];
    }
    return true;
}

START_TEST(no_plan_that_is_drawn_is_better)
{
    struct draw draw = {test_seed() + (uint64_t)_i, 0};
    struct recorded recorded = recorded_read(_i % 24);
    struct galvatron_problem *problem = &recorded.problem;
    struct galvatron_verdict *theirs = xcalloc(1, sizeof *theirs), *ours = xcalloc(1, sizeof *ours),
                             *other = xcalloc(1, sizeof *other);
    problem->spec.batch = 12 << below(&draw, 2);
    problem->spec.memory_gb = between(&draw, 1.5, 8);
    bool found = search(problem, GALVATRON_FORMULA, theirs);
    bool found_ours = search(problem, GALVATRON_NEUTRAL, ours);
    ck_assert(found_ours || !found);
    for (int i = 0; i < PLANS; i++) {
        struct galvatron_plan plan;
        struct error err;
        bool free_division = i % 2;
        if (!draw_plan(&draw, problem, free_division, &plan))
            continue;
        int rc = galvatron_judge(problem, &plan, other, &err);
        ck_assert_msg(rc == 0 || strstr(err.text, "the profile lacks"), "%s", err.text);
        if (rc == 0 && other->fits && !free_division) {
            ck_assert(found);
            ck_assert_double_le(theirs->formula_s, other->formula_s * (1 + CLOSE));
        }
        if (rc == 0 && other->fits) {
            ck_assert(found_ours);
            ck_assert_double_le(ours->neutral_s, other->neutral_s * 1.001);
        }
        galvatron_plan_finish(&plan);
    }
    free(other);
    free(ours);
    free(theirs);
    recorded_finish(&recorded);
}
END_TEST

/* What would fit does, and a MB less does not. */
START_TEST(the_least_memory_that_is_told_is_enough)
{
    struct recorded recorded = recorded_read(3);
    struct galvatron_problem *problem = &recorded.problem;
    struct galvatron_verdict *verdict = xcalloc(1, sizeof *verdict);
    struct galvatron_plan plan;
    struct error err = {0};
    long long mb = 0;
    problem->spec.batch = 24;
    problem->spec.memory_gb = 1.25;
    ck_assert_int_eq(galvatron_search(problem, GALVATRON_FORMULA, NULL, &plan, &err), -ENOSPC);
    const char *takes = strstr(err.text, "takes ");
    ck_assert_msg(takes &&
                      sscanf(takes, "takes %lld MB of each, and of 1280 it uses 1280", &mb) == 1,
                  "%s", err.text);
    problem->spec.memory_gb = (double)mb / 1024;
    ck_assert(search(problem, GALVATRON_FORMULA, verdict));
    problem->spec.memory_gb = (double)(mb - 1) / 1024;
    ck_assert(!search(problem, GALVATRON_FORMULA, verdict));
    free(verdict);
    recorded_finish(&recorded);
}
END_TEST

START_TEST(a_batch_that_no_replicas_divide_is_told)
{
    struct recorded recorded = recorded_read(0);
    struct galvatron_plan plan;
    struct error err = {0};
    recorded.problem.spec.max_tp = 1;
    recorded.problem.spec.types[0].count = 1;
    recorded.problem.spec.type_count = 1;
    recorded.problem.spec.batch = 3;
    ck_assert_int_eq(galvatron_search(&recorded.problem, GALVATRON_FORMULA, NULL, &plan, &err),
                     -EINVAL);
    ck_assert_msg(strstr(err.text, "no number of replicas divides the batch"), "%s", err.text);
    recorded.problem.spec.batch = 0;
    ck_assert_int_eq(galvatron_search(&recorded.problem, GALVATRON_FORMULA, NULL, &plan, &err),
                     -EINVAL);
    ck_assert_msg(strstr(err.text, "nothing says the batch"), "%s", err.text);
    recorded_finish(&recorded);
}
END_TEST

/* As that project's search divided layers of two types in the plans that it found. */
START_TEST(layers_are_divided_as_they_divide_them)
{
    struct recorded recorded = recorded_read(_i);
    int division[GALVATRON_STAGES_MAX];
    struct error err;
    if (recorded_is_theirs(&recorded)) {
        int rc = galvatron_divide(&recorded.problem, &recorded.plan.point, division, &err);
        ck_assert_msg(rc == 0, "%s", err.text);
        for (int i = 0; i < recorded.plan.point.pp; i++)
            ck_assert_int_eq(division[i], recorded.plan.division[i]);
    }
    recorded_finish(&recorded);
}
END_TEST

SUITE(galvatron_search)
{
    TCase *stage = tcase_create("stage"), *space = tcase_create("space");
    tcase_set_timeout(space, 60);
    tcase_add_loop_test(stage, a_stage_is_filled_with_the_least_cost, 0, test_share(STAGES));
    tcase_add_test(stage, an_option_that_another_beats_is_dropped);
    tcase_add_loop_test(space, no_recorded_plan_is_better, 0, recorded_count());
    tcase_add_loop_test(space, no_plan_that_is_drawn_is_better, 0, test_share(SPACES));
    tcase_add_test(space, the_least_memory_that_is_told_is_enough);
    tcase_add_test(space, a_batch_that_no_replicas_divide_is_told);
    tcase_add_loop_test(space, layers_are_divided_as_they_divide_them, 0, recorded_count());
    return suite_run("galvatron_search", stage, space, NULL);
}
