/* test_choose.c - of the plans that were found, the one that takes the least time with the copies
 * of state that it needs is the answer, and what was proved of the fastest holds for it. */
#include "common/program/lower.h"
#include "coordinator/planner/costs/candidates.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/planner.h"
#include "tests/coordinator/planner/clusters.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cluster whose jobs copy, and the answer for it. */
struct scene {
    struct cluster cluster;
    struct planner_result result;
};

static void scene_open(struct scene *scene, uint64_t seed)
{
    *scene = (struct scene){0};
    cluster_init(&scene->cluster, seed, 2, 4);
    scene->cluster.job->elastic.copy_every = 1;
}

/* Whether there is one. */
static bool scene_run(struct scene *scene)
{
    return planner_run(&scene->cluster.request, &scene->result, NULL) == 0;
}

static void scene_close(struct scene *scene)
{
    candidates_finish(&scene->result);
    cluster_finish(&scene->cluster);
}

static int differ; /* answers that are not the fastest plan */

/* Priced here, whether the planner has done so or not. */
static double step_with_copies(const struct planner_request *request, const struct plan *plan)
{
    struct shared_cores used;
    ck_assert_int_eq(shared_cores_order(request, plan, &used, NULL), 0);
    struct planner_request ask = shared_cores_ask(request, &used);
    struct safety safety = safety_of(&ask, plan);
    shared_cores_finish(&used);
    return plan->predicted.step_time_s + safety_seconds(&safety);
}

/* ---- safety, the slow way: from the programs of all ranks, each slice beside all others ---- */

#define RANKS_MAX 8

static bool same_unit(const struct plan *plan, int a, int b, bool single)
{
    return single ? a == b : strcmp(plan_device(plan, a), plan_device(plan, b)) == 0;
}

/* The elements of a box that no rank from `other` on has, of those that are not lost with this one.
 */
static int64_t count_sole(struct program *const *programs, const struct plan *plan, int rank,
                          int tensor, const struct box *box, int other, bool single)
{
    for (; other < plan_ranks(plan); other++)
        for (size_t i = 0; i < programs[other]->parameter_count; i++) {
            struct box common, left[2 * DIMS_MAX];
            const struct parameter *slice = &programs[other]->parameters[i];
            int64_t sole = 0;
            if (same_unit(plan, rank, other, single) || slice->tensor != tensor ||
                !box_overlap(box, &slice->box, &common))
                continue;
            int pieces = box_subtract(box, &common, left);
            for (int piece = 0; piece < pieces; piece++)
                sole += count_sole(programs, plan, rank, tensor, &left[piece], other + 1, single);
            return sole;
        }
    return box_count(box);
}

/* Bytes of a rank's state, and those in slices of which something is nowhere else. */
static void weigh(struct program *const *programs, const struct plan *plan, int rank, bool single,
                  uint64_t *state, uint64_t *sole)
{
    *state = *sole = 0;
    for (size_t i = 0; i < programs[rank]->parameter_count; i++) {
        const struct parameter *parameter = &programs[rank]->parameters[i];
        uint64_t bytes = 3 * sizeof(float) * (uint64_t)box_count(&parameter->box);
        *state += bytes;
        if (count_sole(programs, plan, rank, parameter->tensor, &parameter->box, 0, single) > 0)
            *sole += bytes;
    }
}

/* Each device a node, or all on one. */
static void check_safety(const struct planner_request *request, const struct plan *plan,
                         bool single)
{
    struct program *programs[RANKS_MAX];
    int ranks = plan_ranks(plan);
    uint64_t held[RANKS_MAX] = {0}, most = 0, alone = 0;
    for (int rank = 0; rank < ranks; rank++)
        ck_assert_int_eq(lower(request->graph, plan, rank, &programs[rank], NULL), 0);
    for (int rank = 0; rank < ranks; rank++) {
        uint64_t state, sole;
        weigh(programs, plan, rank, single, &state, &sole);
        held[rank] += 2 * state;
        held[(rank + 1) % ranks] += 2 * sole;
        alone += sole;
    }
    for (int rank = 0; rank < ranks; rank++) {
        most = held[rank] > most ? held[rank] : most;
        program_destroy(programs[rank]);
    }
    struct safety safety = safety_of(request, plan);
    ck_assert_int_eq(safety.single, single || ranks == 1);
    if (ranks == 1 || (alone == 0 && single))
        ck_assert_int_eq(safety.kind, SAFETY_CHECKPOINT);
    else
        ck_assert_int_eq(safety.kind, alone > 0 ? SAFETY_COPIES : SAFETY_REPLICAS);
    if (safety.kind == SAFETY_COPIES)
        ck_assert_uint_eq(safety.copy_bytes, most);
}

/* Tied weights and stages, uneven shares and more ranks than rows. */
START_TEST(what_a_rank_alone_holds_is_what_the_programs_say)
{
    for (uint64_t seed = 0; seed < 16; seed++) {
        struct scene scene;
        scene_open(&scene, test_seed() + seed);
        bool there = scene_run(&scene);
        for (size_t i = 0; there && i < scene.result.count; i++)
            check_safety(&scene.cluster.request, scene.result.candidates[i].plan, false);
        scene_close(&scene);
    }
}
END_TEST

/* Of the plan with ZeRO stages from `least` to `most` only; infinity if it does not fit. */
static double resharded_with_copies(const struct planner_request *request, const struct plan *plan,
                                    int least, int most)
{
    struct plan *other = plan_copy(plan);
    struct planner_result result;
    double step_s = INFINITY;
    for (int i = 0; i < other->block_count; i++) {
        int *zero = &other->blocks[i].zero;
        *zero = *zero < least ? least : *zero > most ? most : *zero;
    }
    if (planner_given(request, other, &result, NULL) == 0)
        step_s = step_with_copies(request, result.best);
    candidates_finish(&result);
    return step_s;
}

static void check_answer(const struct planner_request *request, const struct planner_result *result)
{
    const struct plan *best = result->best;
    double best_s = step_with_copies(request, best), fastest_s = INFINITY;
    ck_assert_ptr_eq(best, result->candidates[0].plan);
    ck_assert_double_eq_tol(best_s, best->predicted.step_time_s + best->predicted.copies_time_s,
                            1e-12);
    ck_assert_double_eq(best->predicted.copies_time_s, safety_seconds(&result->safety));
    for (size_t i = 0; i < result->count && result->candidates[i].fits; i++) {
        const struct plan *plan = result->candidates[i].plan;
        ck_assert_double_ge(step_with_copies(request, plan), best_s);
        if (plan->predicted.step_time_s <= fastest_s) {
            ck_assert_double_ge(resharded_with_copies(request, plan, 0, 0), best_s - 1e-12);
            ck_assert_double_ge(resharded_with_copies(request, plan, 1, 3), best_s - 1e-12);
        }
        fastest_s = fmin(fastest_s, plan->predicted.step_time_s);
        if (plan != best)
            ck_assert_double_eq(plan->predicted.lower_bound_s, 0);
    }
    differ += best->predicted.step_time_s > fastest_s;
    if (best->predicted.lower_bound_s > 0) {
        ck_assert_double_le(best->predicted.lower_bound_s, fastest_s);
        ck_assert_double_eq_tol(best->predicted.gap,
                                best->predicted.step_time_s / best->predicted.lower_bound_s - 1,
                                1e-12);
    }
}

/* Drawn clusters whose devices are nodes. In these, when they were chosen, the fastest plan was not
 * the answer. */
START_TEST(the_answer_is_the_fastest_with_its_copies)
{
    static const uint64_t seeds[] = {1001, 1036, 1102, 1158, 1189, 2018, 2023, 2144, 3060, 3125};
    differ = 0;
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        struct scene scene;
        scene_open(&scene, seeds[i]);
        if (scene_run(&scene))
            check_answer(&scene.cluster.request, &scene.result);
        scene_close(&scene);
    }
    ck_assert_int_gt(differ, 0);
}
END_TEST

/* Of all candidates, those that were added for their copies among them; told of the answer. */
START_TEST(the_frontier_is_that_of_all_candidates)
{
    static const uint64_t seeds[] = {1001, 2018, 2023};
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        struct scene scene;
        size_t count;
        scene_open(&scene, seeds[i]);
        scene.cluster.job->plan.objective = JOB_FRONTIER;
        ck_assert(scene_run(&scene));
        const struct plan **front = tradeoff_find(&scene.result, &count);
        ck_assert_uint_eq((size_t)scene.result.best->predicted.alternative_count, count);
        for (size_t k = 0; k < count; k++)
            ck_assert_str_eq(scene.result.best->predicted.alternatives[k].id, front[k]->id);
        for (size_t k = 1; k < scene.result.count; k++)
            ck_assert_int_eq(scene.result.candidates[k].plan->predicted.alternative_count, 0);
        free(front);
        scene_close(&scene);
    }
}
END_TEST

/* Fewer devices come first, however much is copied. */
START_TEST(an_objective_of_devices_stays_one)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct scene scene;
        scene_open(&scene, 1000 + seed);
        scene.cluster.job->plan.objective = JOB_DEVICES;
        bool there = scene_run(&scene);
        for (size_t i = 0; there && i < scene.result.count && scene.result.candidates[i].fits; i++)
            ck_assert_int_le(plan_ranks(scene.result.best),
                             plan_ranks(scene.result.candidates[i].plan));
        scene_close(&scene);
    }
}
END_TEST

/* Whose loss takes all of it. In host memory nothing else can be lost; in a device's own memory a
 * rank's state is lost with the rank's executor. */
START_TEST(on_one_node_only_states_in_devices_are_copied)
{
    static const char *const names[] = {"a/0", "a/1", "a/2", "a/3", "a/4", "a/5", "a/6", "a/7"};
    int copied = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct scene scene;
        scene_open(&scene, 1000 + seed);
        scene.cluster.job->devices.min = 2;
        for (int i = 0; i < scene.cluster.request.device_count; i++) {
            scene.cluster.devices[i].name = names[i];
            scene.cluster.devices[i].host = "a";
        }
        if (scene_run(&scene)) {
            ck_assert_int_eq(scene.result.safety.kind, SAFETY_CHECKPOINT);
            ck_assert_double_eq(scene.result.best->predicted.copies_time_s, 0);
            for (int i = 0; i < scene.cluster.request.device_count; i++)
                scene.cluster.devices[i].own_memory = true;
            for (size_t i = 0; i < scene.result.count; i++) {
                struct safety safety =
                    safety_of(&scene.cluster.request, scene.result.candidates[i].plan);
                ck_assert(safety.single);
                ck_assert_int_ne(safety.kind, SAFETY_REPLICAS);
                copied += safety.kind == SAFETY_COPIES;
            }
        }
        scene_close(&scene);
    }
    ck_assert_int_gt(copied, 0);
}
END_TEST

/* One byte more or less of host memory. */
START_TEST(copies_that_have_no_room_are_not_made)
{
    int copied = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        struct scene scene;
        scene_open(&scene, 1000 + seed);
        bool there = scene_run(&scene);
        for (size_t i = 0; there && i < scene.result.count; i++) {
            const struct plan *plan = scene.result.candidates[i].plan;
            struct safety safety = safety_of(&scene.cluster.request, plan);
            if (safety.kind != SAFETY_COPIES || plan->stage_count > 1 || plan->blocks[0].zero == 0)
                continue; /* equal shards: all ranks need the same */
            for (int j = 0; j < scene.cluster.request.device_count; j++)
                scene.cluster.devices[j].host_bytes =
                    plan->stages[0].memory_bytes + safety.copy_bytes;
            ck_assert_int_eq(safety_of(&scene.cluster.request, plan).kind, SAFETY_COPIES);
            for (int j = 0; j < scene.cluster.request.device_count; j++)
                scene.cluster.devices[j].host_bytes--;
            struct safety none = safety_of(&scene.cluster.request, plan);
            ck_assert_int_eq(none.kind, SAFETY_CHECKPOINT);
            ck_assert(none.no_room && none.copy_bytes == safety.copy_bytes);
            ck_assert_uint_eq(none.copy_every, 0);
            ck_assert_double_eq(safety_seconds(&none), 0);
            for (int j = 0; j < scene.cluster.request.device_count; j++)
                scene.cluster.devices[j].host_bytes = 0;
            copied++;
        }
        scene_close(&scene);
    }
    ck_assert_int_gt(copied, 0);
}
END_TEST

SUITE(choose)
{
    TCase *tcase = tcase_create("choose");
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, the_answer_is_the_fastest_with_its_copies);
    tcase_add_test(tcase, the_frontier_is_that_of_all_candidates);
    tcase_add_test(tcase, an_objective_of_devices_stays_one);
    tcase_add_test(tcase, on_one_node_only_states_in_devices_are_copied);
    tcase_add_test(tcase, copies_that_have_no_room_are_not_made);
    tcase_add_test(tcase, what_a_rank_alone_holds_is_what_the_programs_say);
    return suite_run("choose", tcase, NULL);
}
