/* test_costs.c - what a planner adds up is what the whole program takes: bytes exactly,
 * seconds as the sum of its instructions' prices. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/costs/pricing.h"
#include "coordinator/planner/space/space.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 8
#define PLANS 200
#define NO_SAMPLES_SEED 9430184007252178568u

static struct graph *graph;
static struct job_config job;
static struct profile profiles[2];
#define LIBRARIES 12345 /* bytes of every rank's device that its libraries take */

static struct planner_device machines[RANKS_MAX];
static struct planner_request request;

static void open_request(void)
{
    struct job_model config = {
        .family = "gpt", .layers = 4, .hidden = 48, .heads = 12, .seq = 24, .vocab = 60};
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    struct hardware_link host = {2e-5, 2e-10}, network = {6e-5, 9e-10};
    profiles[0] = profile_analytic(1e11, 2e10, 0.5, host, network);
    profiles[1] = profile_analytic(3e10, 1e10, 0.5, host, network);
    for (int i = 0; i < RANKS_MAX; i++)
        machines[i] = (struct planner_device){"d", i < 3 ? "a" : "b", 1 << 30,
                                              &profiles[i % 5 == 0], LIBRARIES};
    request = (struct planner_request){graph, &job, machines, RANKS_MAX};
}

static double section_seconds(const struct program *program, enum section section)
{
    struct pricing pricing = pricing_plain(&request);
    struct range range = program->sections[section];
    double seconds = 0;
    for (int i = range.first; i < range.first + range.count; i++)
        seconds += pricing_seconds(&pricing, program, &program->instructions[i]);
    return seconds;
}

static void check_rank(struct costs *costs, const struct plan *plan,
                       const struct site *const *sites, int rank)
{
    struct program *program;
    struct stage_cost cost;
    struct error err = {0};
    int stage = plan_rank_stage(plan, rank, &costs->only_rank);
    ck_assert_int_eq(lower(graph, plan, rank, &program, NULL), 0);
    int rc = evaluate_stage(costs, plan, sites, stage, &cost, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_uint_eq(cost.bytes, program_bytes(program) + LIBRARIES);
    /* What goes on beside computing hides behind it in each part: no sum of the whole program. */
    if (plan->overlap) {
        program_destroy(program);
        return;
    }
    double once =
        section_seconds(program, SECTION_WEIGHTS) + section_seconds(program, SECTION_CLEAR) +
        section_seconds(program, SECTION_REDUCE) + section_seconds(program, SECTION_METRICS) +
        section_seconds(program, SECTION_UPDATE);
    double forward = section_seconds(program, SECTION_FORWARD);
    double backward = section_seconds(program, SECTION_BACKWARD);
    ck_assert_double_eq_tol(cost.forward_s, forward, 1e-9 * forward);
    ck_assert_double_eq_tol(cost.backward_s, backward, 1e-9 * backward);
    /* A bucket's words on a ring of three are rounded once, its parts' each. */
    ck_assert_double_eq_tol(cost.once_s, once, 1e-6 * once + 1e-7);
    program_destroy(program);
}

static void check_plan(uint64_t seed, int element_bytes, bool overlap)
{
    open_request();
    graph->element_bytes = element_bytes;
    struct plan *plan = engine_plan_random(graph, seed, RANKS_MAX, 6);
    plan->overlap = job.plan.overlap = overlap;
    const struct site *sites[RANKS_MAX];
    for (int inside = 0; inside < RANKS_MAX; inside++) {
        /* Costs are remembered for the rank that they are asked for. */
        struct costs costs;
        ck_assert_int_eq(costs_init(&costs, &request, NULL), 0);
        evaluate_sites(&costs, plan, sites);
        for (int rank = 0; rank < plan_ranks(plan); rank++) {
            int own;
            plan_rank_stage(plan, rank, &own);
            if (own == inside)
                check_rank(&costs, plan, sites, rank);
        }
        costs_finish(&costs);
    }
    plan_destroy(plan);
    graph_destroy(graph);
}

START_TEST(parts_add_up_to_the_whole_program_of_every_rank)
{
    check_plan(test_seed() + (uint64_t)_i, _i % 4 < 2 ? 4 : 2, _i % 2);
}
END_TEST

/* Its block has nothing of what the next one has: that passes from room to room all the same. */
START_TEST(so_do_those_of_a_rank_without_samples)
{
    check_plan(NO_SAMPLES_SEED, 4, true);
}
END_TEST

static uint64_t hash_with(struct plan *plan, int block, enum recompute recompute)
{
    struct program *program;
    plan->blocks[block].recompute = recompute;
    ck_assert_int_eq(lower(graph, plan, 0, &program, NULL), 0);
    uint64_t hash = program_hash(program);
    program_destroy(program);
    return hash;
}

/* A cost is asked for once of those that are alike. */
START_TEST(recomputations_that_are_alike_make_one_program)
{
    open_request();
    struct plan *plan = engine_plan_random(graph, test_seed() + (uint64_t)_i, RANKS_MAX, 6);
    for (int b = 0; b < plan->block_count; b++) {
        ck_assert_int_eq(recompute_like(graph, b, RECOMPUTE_NONE), RECOMPUTE_NONE);
        for (int recompute = 0; recompute < RECOMPUTES; recompute++) {
            enum recompute like = recompute_like(graph, b, (enum recompute)recompute);
            ck_assert_uint_eq(hash_with(plan, b, (enum recompute)recompute),
                              hash_with(plan, b, like));
        }
    }
    /* Of what embeds tokens nothing is read again. */
    ck_assert_int_eq(recompute_like(graph, 0, RECOMPUTE_FULL), RECOMPUTE_NONE);
    ck_assert_int_eq(recompute_like(graph, 1, RECOMPUTE_FULL), RECOMPUTE_FULL);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

static double draw_between(uint64_t seed, uint64_t at, double low, double high)
{
    return low * pow(high / low, random_uniform(seed, 9, at));
}

/* Of equal devices, with links and an overlap that may make either queue the longer one. */
static struct profile draw_profile(uint64_t seed)
{
    struct hardware_link host = {draw_between(seed, 0, 1e-6, 1e-4),
                                 draw_between(seed, 1, 1e-11, 1e-8)},
                         network = {draw_between(seed, 2, 1e-5, 1e-3),
                                    draw_between(seed, 3, 1e-10, 1e-7)};
    struct profile profile = profile_analytic(draw_between(seed, 4, 1e8, 1e12),
                                              draw_between(seed, 5, 1e8, 1e12), 0.5, host, network);
    profile.overlap = 1 + random_uniform(seed, 9, 6);
    profile.network_cards = 1;
    profile.overhead_s = draw_between(seed, 7, 1e-8, 1e-5);
    return profile;
}

/* Strategies of one block that differ in nothing else: no later recomputation takes less. */
static void check_recomputations(struct costs *costs, const struct site *site, int block,
                                 int64_t samples)
{
    size_t count;
    struct part_cost cost, first = {0};
    struct strategy *strategies = space_strategies(costs, site, block, samples, &count, NULL);
    for (size_t i = 0; i < count; i++) {
        const struct strategy *strategy = &strategies[i];
        if (strategy->zero > 0 ||
            costs_block(costs, site, block, strategy, NULL, samples, &cost, NULL) < 0)
            continue;
        bool again =
            i > 0 && memcmp(strategy->roles, strategy[-1].roles, sizeof strategy->roles) == 0;
        if (!again || strategy->recompute <= strategy[-1].recompute)
            first = cost;
        double seconds = cost.forward_s + cost.backward_s,
               first_s = first.forward_s + first.backward_s;
        ck_assert_msg(seconds >= first_s * (1 - 1e-12), "block %d: %.17g s, without %.17g", block,
                      seconds, first_s);
        ck_assert_double_ge(cost.least_s, first.least_s * (1 - 1e-12));
    }
    free(strategies);
}

/* choices.c counts on it: it does not ask. */
START_TEST(to_recompute_takes_no_less_where_samples_divide)
{
    static const struct mesh meshes[] = {{1, {2}},       {1, {3}}, {2, {2, 2}}, {2, {2, 3}},
                                         {3, {2, 2, 2}}, {1, {4}}, {1, {1}}};
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct costs costs;
    open_request();
    graph->element_bytes = _i % 4 < 2 ? 4 : 2;
    profiles[0] = profiles[1] = draw_profile(seed);
    for (int i = 0; i < RANKS_MAX; i++)
        machines[i].profile = &profiles[0];
    job.plan.overlap = _i % 2;
    ck_assert_int_eq(costs_init(&costs, &request, NULL), 0);
    costs.one_rank = random_below(seed, 9, 8, 2);
    const struct mesh *mesh = &meshes[random_below(seed, 9, 9, sizeof meshes / sizeof *meshes)];
    const struct site *site = sites_add(&costs.sites, 0, mesh);
    int64_t samples = mesh_count(mesh) * (1 + (int64_t)random_below(seed, 9, 10, 3));
    for (int block = 0; block < (int)graph->block_count; block++)
        check_recomputations(&costs, site, block, samples);
    costs_finish(&costs);
    graph_destroy(graph);
}
END_TEST

SUITE(costs)
{
    TCase *sums = tcase_create("sums");
    tcase_add_loop_test(sums, parts_add_up_to_the_whole_program_of_every_rank, 0,
                        test_share(PLANS));
    tcase_add_test(sums, so_do_those_of_a_rank_without_samples);
    tcase_add_loop_test(sums, to_recompute_takes_no_less_where_samples_divide, 0, test_share(60));
    tcase_add_loop_test(sums, recomputations_that_are_alike_make_one_program, 0, test_share(20));
    return suite_run("costs", sums, NULL);
}
