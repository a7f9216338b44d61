/* test_galvatron_space.c - no plan of Galvatron's space is better than the one that is found for
 * it: against plans drawn by chance, and against all of a small space. */
#include "common/base/random.h"
#include "common/models/model.h"
#include "coordinator/planner/galvatron/space.h"
#include "tests/coordinator/planner/galvatron_figures.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SPACES 40
#define PLANS 300 /* of a space */
#define WALKED 30

/* A model that divides by 4, on two stages or one. */
static struct graph *make_graph(int layers)
{
    struct graph *graph;
    struct job_model config = {
        .family = "gpt", .layers = layers, .hidden = 48, .heads = 4, .seq = 16, .vocab = 64};
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    return graph;
}

struct draw {
    uint64_t seed, next;
};

static int below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 3, draw->next++, (uint64_t)bound);
}

static void draw_block(struct draw *draw, struct plan *plan, int block, bool end)
{
    static const int zeros[] = {0, 2, 3};
    struct plan_block *of = &plan->blocks[block];
    int axes = plan->stages[of->stage].mesh.axes, tensor = below(draw, axes + 1);
    bool first = end || below(draw, 2);
    for (int axis = 0; axis < axes; axis++)
        of->roles[axis] =
            role_find((first ? axis < tensor : axis >= axes - tensor) ? "tensor" : "batch");
    of->zero = end || tensor == axes ? 0 : zeros[below(draw, 3)];
    of->recompute = !end && below(draw, 2) ? RECOMPUTE_FULL : RECOMPUTE_NONE;
}

/* On four devices, of `layers` layers in even runs. */
static struct plan *draw_plan(struct draw *draw, int layers, int batch)
{
    int most = layers < 4 ? 2 : 3, log = below(draw, most), stages = 1 << log;
    struct plan *plan = plan_create(stages, layers + 2);
    for (int b = 0, stage = 0; b < layers + 2; b++) {
        while (stage < stages - 1 && b > (stage + 1) * (layers / stages))
            stage++;
        plan->blocks[b].stage = stage;
        if (plan->stages[stage].block_count++ == 0)
            plan->stages[stage].block_first = b;
    }
    for (int i = 0; i < stages; i++)
        for (int axes = 0; axes < 2 - log; axes++)
            plan->stages[i].mesh.size[plan->stages[i].mesh.axes++] = 2;
    do
        plan->micro_batches = 1 + below(draw, batch);
    while (batch % plan->micro_batches);
    plan->micro_batch_samples = batch / plan->micro_batches;
    plan->schedule = schedule_find("1f1b");
    for (int b = 0; b <= layers; b++)
        draw_block(draw, plan, b, b == 0);
    /* The head is divided as the embedding is. */
    memcpy(plan->blocks[layers + 1].roles, plan->blocks[0].roles, sizeof plan->blocks[0].roles);
    return plan;
}

/* In their space every device has a sample of each micro-batch. */
static bool has_samples(const struct plan *plan)
{
    for (int b = 0; b < plan->block_count; b++) {
        const struct mesh *mesh = &plan->stages[plan->blocks[b].stage].mesh;
        int64_t batch = 1;
        for (int axis = 0; axis < mesh->axes; axis++)
            if (plan->blocks[b].roles[axis] == role_find("batch"))
                batch *= mesh->size[axis];
        if (batch > plan->micro_batch_samples)
            return false;
    }
    return true;
}

START_TEST(no_plan_of_their_space_is_better)
{
    struct draw draw = {test_seed() + (uint64_t)_i, 0};
    struct galvatron_problem drawn = problem;
    struct error err = {0};
    int layers = 2 + below(&draw, 4), batch = 4 * (1 + below(&draw, 2));
    double step_s = INFINITY;
    bool fits;
    struct graph *graph = make_graph(layers);
    drawn.layers = layers;
    drawn.memory_bytes = (uint64_t)((1150 + below(&draw, 900)) * MB);
    struct plan *best = galvatron_best(&drawn, graph, 4, batch, &err);
    if (best) {
        ck_assert_int_eq(plan_check(best, graph, NULL), 0);
        ck_assert_int_eq(galvatron_judge(&drawn, best, NULL, &step_s, &fits, NULL), 0);
        ck_assert(fits);
        ck_assert_double_eq_tol(step_s, best->predicted.formula_s, EXACT * step_s);
    }
    for (int i = 0; i < PLANS; i++) {
        struct plan *plan = draw_plan(&draw, layers, batch);
        double other_s;
        if (plan_check(plan, graph, NULL) == 0 && has_samples(plan)) {
            int rc = galvatron_judge(&drawn, plan, NULL, &other_s, &fits, &err);
            ck_assert_msg(rc == 0, "%s", err.text);
            if (fits)
                ck_assert_double_le(step_s, other_s * (1 + EXACT));
        }
        plan_destroy(plan);
    }
    plan_destroy(best);
    graph_destroy(graph);
}
END_TEST

/* Everything that a stage of two devices may do with its one layer. */
static const struct {
    const char *role;
    int zero;
    enum recompute recompute;
} ways[] = {{"batch", 0, RECOMPUTE_NONE}, {"batch", 2, RECOMPUTE_NONE},
            {"batch", 3, RECOMPUTE_NONE}, {"tensor", 0, RECOMPUTE_NONE},
            {"batch", 0, RECOMPUTE_FULL}, {"batch", 2, RECOMPUTE_FULL},
            {"batch", 3, RECOMPUTE_FULL}, {"tensor", 0, RECOMPUTE_FULL}};
#define WAYS ((int)(sizeof ways / sizeof *ways))
#define LINE 4 /* stages, and layers */

static void set_way(struct plan *plan, int block, int way)
{
    plan->blocks[block].roles[0] = role_find(ways[way].role);
    plan->blocks[block].zero = ways[way].zero;
    plan->blocks[block].recompute = ways[way].recompute;
}

static struct plan *make_line(int micro_batches, int64_t samples)
{
    struct plan *plan = plan_create(LINE, LINE + 2);
    plan->schedule = schedule_find("1f1b");
    plan->micro_batches = micro_batches;
    plan->micro_batch_samples = samples;
    for (int b = 0; b < LINE + 2; b++) {
        int stage = b == 0 ? 0 : b > LINE ? LINE - 1 : b - 1;
        plan->blocks[b].stage = stage;
        if (plan->stages[stage].block_count++ == 0)
            plan->stages[stage].block_first = b;
        plan->stages[stage].mesh = (struct mesh){.axes = 1, .size = {2}};
    }
    return plan;
}

/* The shortest of the line's plans that fit, by trying all; infinity: none. */
static double walk_line(const struct galvatron_problem *of, int micro_batches, int64_t samples)
{
    double best_s = INFINITY, step_s;
    struct plan *plan = make_line(micro_batches, samples);
    for (int number = 0; number < 2 * WAYS * WAYS * WAYS * WAYS; number++) {
        bool legal = true, fits;
        for (int b = 1, rest = number / 2; b <= LINE; b++, rest /= WAYS) {
            set_way(plan, b, rest % WAYS);
            legal = legal && (strcmp(ways[rest % WAYS].role, "tensor") == 0 || samples >= 2);
        }
        int end = number % 2 ? 3 : 0; /* tensor or batch, of embedding and head */
        set_way(plan, 0, end);
        set_way(plan, LINE + 1, end);
        if (!legal || (end == 0 && samples < 2))
            continue;
        ck_assert_int_eq(galvatron_judge(of, plan, NULL, &step_s, &fits, NULL), 0);
        if (fits)
            best_s = fmin(best_s, step_s);
    }
    plan_destroy(plan);
    return best_s;
}

static double between(struct draw *draw, double low, double high)
{
    return low + (high - low) * random_uniform(draw->seed, 3, draw->next++);
}

/* Nothing was measured of one stage, nor of two: the line is all there is. */
static struct galvatron_profile draw_profile(struct draw *draw)
{
    struct galvatron_profile drawn = profile;
    double rate = between(draw, .3, 1.5); /* collectives take as long as layers */
    drawn.allreduce_gb_s[1][1] = rate;
    drawn.parameter_mb = rate * between(draw, 2, 40); /* and reductions as long as some stages */
    drawn.layer.items[0].ms = between(draw, .5, 2);
    drawn.layer.count = 1; /* so data parallelism computes no slower than tensor's */
    drawn.overlap = between(draw, 1, 1.5);
    drawn.activation_mb[0] = between(draw, 50, 200);
    drawn.activation_mb[1] = between(draw, 30, 100);
    drawn.first = drawn.last = (struct galvatron_other){{4, 2}, {4, 2}};
    drawn.p2p_gb_s[1] = 0;
    memset(&drawn.alone, 0, sizeof drawn.alone);
    return drawn;
}

START_TEST(of_four_stages_the_best_is_found)
{
    struct draw draw = {test_seed() + 1000 + (uint64_t)_i, 0};
    struct galvatron_profile drawn = draw_profile(&draw);
    struct galvatron_problem of = problem;
    double step_s = INFINITY, line_s = INFINITY;
    bool fits;
    struct graph *graph = make_graph(LINE);
    of.profile = &drawn;
    of.layers = LINE;
    of.memory_bytes = (uint64_t)(between(&draw, 1300, 4000) * MB);
    for (int m = 1; m <= 2; m++)
        line_s = fmin(line_s, walk_line(&of, m, 2 / m));
    struct plan *best = galvatron_best(&of, graph, 8, 2, NULL);
    if (best)
        ck_assert_int_eq(galvatron_judge(&of, best, NULL, &step_s, &fits, NULL), 0);
    ck_assert_int_eq(best != NULL, isfinite(line_s));
    if (best)
        ck_assert_double_eq_tol(step_s, line_s, EXACT * line_s);
    plan_destroy(best);
    graph_destroy(graph);
}
END_TEST

/* Of 25 GiB their formula uses 20480 MB; of 26 GiB 21299. */
START_TEST(plans_of_their_space_leave_the_fifth_too)
{
    struct galvatron_profile large = profile;
    struct galvatron_problem of = problem;
    struct error err = {0};
    struct graph *graph = make_graph(2);
    large.activation_mb[0] = 9600; /* 20716 MB with two of them */
    of.profile = &large;
    for (uint64_t gib = 25; gib <= 26; gib++) {
        of.memory_bytes = gib << 30;
        struct plan *best = galvatron_best(&of, graph, 1, 1, &err);
        ck_assert_ptr_nonnull(best);
        bool recomputes = best->blocks[1].recompute != best->blocks[2].recompute;
        ck_assert_int_eq(recomputes, gib == 25);
        plan_destroy(best);
    }
    large.alone.activation_mb[0] = 19456; /* 20580 MB with no layers */
    of.memory_bytes = 25ull << 30;
    struct graph *bare = make_graph(1);
    of.layers = 1;
    large.parameter_mb = large.activation_mb[0] = large.checkpoint_mb = 1e-6;
    ck_assert_ptr_null(galvatron_best(&of, bare, 1, 1, &err));
    ck_assert_ptr_nonnull(strstr(err.text, "fits by its formula"));
    graph_destroy(bare);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_number_of_devices_that_they_do_not_divide_is_refused)
{
    struct error err = {0};
    struct graph *graph = make_graph(2);
    ck_assert_ptr_null(galvatron_best(&problem, graph, 3, 4, &err));
    ck_assert_str_eq(err.text, "Galvatron divides powers of two, and there are 3 devices");
    graph_destroy(graph);
}
END_TEST

SUITE(galvatron_space)
{
    TCase *space = tcase_create("space");
    tcase_set_timeout(space, 60);
    tcase_add_loop_test(space, no_plan_of_their_space_is_better, 0, test_share(SPACES));
    tcase_add_loop_test(space, of_four_stages_the_best_is_found, 0, test_share(WALKED));
    tcase_add_test(space, plans_of_their_space_leave_the_fifth_too);
    tcase_add_test(space, a_number_of_devices_that_they_do_not_divide_is_refused);
    return suite_run("galvatron_space", space, NULL);
}
