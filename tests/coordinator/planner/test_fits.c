/* test_fits.c - a plan fits if every rank's device holds what the rank takes, to the byte: ranks of
 * a stage have unlike shares where a dim does not divide, and devices of a stage unlike memory. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/program/lower.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/searches/exact.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

#define INSTANCES 100
#define PLANS 4 /* of an instance */
#define PLENTY (UINT64_C(1) << 40)

/* Every device gets as much memory as its rank takes, or as the rank that takes most. */
static void fill(struct planner_device *devices, const uint64_t *bytes, int count, bool most)
{
    uint64_t largest = 0;
    for (int i = 0; i < count; i++)
        largest = bytes[i] > largest ? bytes[i] : largest;
    for (int i = 0; i < count; i++)
        devices[i].memory_bytes = most ? largest : bytes[i];
}

static void weigh(const struct planner_request *request, const struct plan *plan, uint64_t *bytes)
{
    for (int rank = 0; rank < plan_ranks(plan); rank++) {
        struct program *program;
        ck_assert_int_eq(lower(request->graph, plan, rank, &program, NULL), 0);
        bytes[rank] = program_bytes(program);
        program_destroy(program);
    }
}

/* By its parts. */
static bool fits(const struct planner_request *request, const struct plan *plan)
{
    struct costs costs;
    double step_s, bound_s;
    bool does;
    ck_assert_int_eq(costs_init(&costs, request, NULL), 0);
    ck_assert_int_eq(evaluate_plan(&costs, plan, &step_s, &bound_s, &does, NULL), 0);
    costs_finish(&costs);
    return does;
}

/* 3 samples on 2 x 2 equal devices: roles of the two axes are batch and hidden. */
static void open_two_by_two(struct drawn *drawn)
{
    static const char text[] =
        "apiVersion: gimbal/v1\n"
        "name: two-by-two\n"
        "model: {family: gpt, layers: 1, hidden: 24, heads: 12, seq: 12, vocab: 36}\n"
        "data: {tokens: [corpus.bin]}\n"
        "devices: {min: 4, max: 4}\n"
        "train: {steps: 3, global_batch: 3, lr: 0.001}\n"
        "plan: {pin: {pp: 1, micro_batches: 1}, forbid: {roles: [tensor, tensor_seq, ulysses, "
        "context], zero: [1, 2, 3], recompute: [selective, full]}}\n";
    const struct hardware_link link = {1e-6, 1e-9};
    struct error err = {0};
    *drawn = (struct drawn){.devices = DRAWN_DEVICES_MAX};
    int rc = job_config_parse(text, strlen(text), "job", &drawn->job, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_int_eq(planner_graph(drawn->job, &drawn->graph, NULL), 0);
    drawn->profiles[0] = profile_analytic(1e10, 1e10, 0.5, link, link);
    for (int i = 0; i < DRAWN_DEVICES_MAX; i++)
        drawn->machines[i] = (struct planner_device){"d", "a", PLENTY, &drawn->profiles[0]};
    drawn->request =
        (struct planner_request){drawn->graph, drawn->job, drawn->machines, DRAWN_DEVICES_MAX};
}

/* The best by exact; the result is the caller's. */
static const struct candidate *search(struct drawn *drawn, struct planner_result *result)
{
    const struct candidate *best = NULL;
    struct error err = {0};
    *result = (struct planner_result){0};
    int rc = exact_run(&drawn->request, &hunt_limits_none, result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    for (size_t i = 0; i < result->count; i++) {
        const struct candidate *one = &result->candidates[i];
        if (one->fits &&
            (!best || one->plan->predicted.step_time_s < best->plan->predicted.step_time_s))
            best = one;
    }
    return best;
}

START_TEST(three_samples_on_two_by_two_devices_that_are_just_large_enough)
{
    struct drawn drawn;
    struct planner_result plenty, scarce;
    uint64_t bytes[DRAWN_DEVICES_MAX];
    open_two_by_two(&drawn);
    const struct candidate *best = search(&drawn, &plenty);
    ck_assert_ptr_nonnull(best);
    weigh(&drawn.request, best->plan, bytes);
    ck_assert_uint_ne(bytes[0], bytes[DRAWN_DEVICES_MAX - 1]);
    fill(drawn.machines, bytes, DRAWN_DEVICES_MAX, false);
    const struct candidate *again = search(&drawn, &scarce);
    ck_assert_ptr_nonnull(again);
    ck_assert_double_eq(again->plan->predicted.step_time_s, best->plan->predicted.step_time_s);
    candidates_finish(&plenty);
    candidates_finish(&scarce);
    drawn_finish(&drawn);
}
END_TEST

struct visit {
    struct drawn *drawn;
    int every, seen;
};

/* Just enough memory is enough, and a byte less on any device is not. */
static bool check_plan(void *context, const struct plan *plan)
{
    struct visit *visit = context;
    struct planner_device *devices = visit->drawn->machines;
    uint64_t bytes[DRAWN_DEVICES_MAX];
    int ranks = plan_ranks(plan);
    if (visit->seen++ % visit->every != 0)
        return true;
    weigh(&visit->drawn->request, plan, bytes);
    for (int most = 0; most < 2; most++) {
        int largest =
            (int)random_below(visit->drawn->seed, 8, (uint64_t)visit->seen, (uint64_t)ranks);
        for (int rank = 0; rank < ranks && most; rank++)
            largest = bytes[rank] > bytes[largest] ? rank : largest;
        fill(devices, bytes, ranks, most);
        ck_assert(fits(&visit->drawn->request, plan));
        devices[largest].memory_bytes--;
        ck_assert(!fits(&visit->drawn->request, plan));
    }
    return true;
}

START_TEST(just_enough_memory_on_every_device_is_enough)
{
    struct drawn drawn;
    struct visit visit = {.drawn = &drawn};
    struct costs costs;
    size_t count;
    double plans = 0;
    drawn_init(&drawn, test_seed() + (uint64_t)_i);
    ck_assert_int_eq(costs_init(&costs, &drawn.request, NULL), 0);
    struct space_point *points = space_points(&drawn.request, drawn.devices, drawn.devices, &count);
    for (size_t i = 0; i < count; i++)
        plans += space_count(&costs, &points[i]);
    visit.every = 1 + (int)(plans / PLANS);
    for (size_t i = 0; i < count && plans > 0; i++)
        space_walk(&costs, &points[i], check_plan, &visit);
    free(points);
    costs_finish(&costs);
    drawn_finish(&drawn);
}
END_TEST

/* What fits on these seven devices is not among the points that are looked at first. */
START_TEST(a_search_is_not_given_up_before_it_has_found_what_fits)
{
    static const char text[] = "apiVersion: gimbal/v1\n"
                               "name: seven\n"
                               "model: {family: bert, layers: 3, hidden: 256, heads: 8, seq: 128, "
                               "vocab: 32000}\n"
                               "data: {tokens: [corpus.bin]}\n"
                               "train: {steps: 3, global_batch: 32, lr: 0.001, dtype: bf16}\n";
    static const struct {
        const char *host;
        int speed;
    } made[] = {{"a", 0}, {"a", 0}, {"b", 1}, {"c", 0}, {"c", 0}, {"c", 0}, {"d", 2}};
    const struct hardware_link host = {5e-6, 4e-12}, network = {8e-5, 8e-9};
    struct profile profiles[] = {profile_analytic(2e13, 2e11, 1, host, network),
                                 profile_analytic(2e13, 6e11, 1, host, network),
                                 profile_analytic(3e14, 3e12, 1, host, network)};
    struct planner_device devices[7];
    struct planner_result result = {0};
    struct error err = {0};
    struct job_config *job;
    struct graph *graph;
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job", &job, &err), 0);
    ck_assert_int_eq(planner_graph(job, &graph, &err), 0);
    for (int i = 0; i < 7; i++)
        devices[i] = (struct planner_device){"d", made[i].host, UINT64_C(64) << 20,
                                             &profiles[made[i].speed]};
    struct planner_request request = {graph, job, devices, 7, .any = true};
    int rc = planner_run(&request, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    candidates_finish(&result);
    graph_destroy(graph);
    job_config_destroy(job);
}
END_TEST

SUITE(fits)
{
    TCase *fit = tcase_create("fit");
    tcase_set_timeout(fit, 60);
    tcase_add_test(fit, three_samples_on_two_by_two_devices_that_are_just_large_enough);
    tcase_add_loop_test(fit, just_enough_memory_on_every_device_is_enough, 0,
                        test_share(INSTANCES));
    tcase_add_test(fit, a_search_is_not_given_up_before_it_has_found_what_fits);
    return suite_run("fits", fit, NULL);
}
