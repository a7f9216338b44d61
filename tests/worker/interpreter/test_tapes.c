/* test_tapes.c - stretches of a step that are recorded and played, on the emulated device: they do
 * what their instructions do one by one, in few launches, and where the device cannot keep them
 * training goes on without. What waits for the device is made before the first step. */
#include "tests/support/suite.h"
#include "tests/worker/interpreter/small_families.h"
#include "worker/interpreter/arena.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

extern int emulated_launches; /* of kernels and graphs */
extern int emulated_spoiled;  /* so many of the next recordings fail */
extern int emulated_plans;    /* of attention: to make one waits for the device */
extern int emulated_graphs;   /* attentions that were computed by a plan */
extern int emulated_choices;  /* algorithms of products that were asked for */
extern int emulated_loads;    /* of a product's code: each waits for the device */
extern bool emulated_refuses_bias;

static const struct device *cuda;
static struct graph *graphs[FAMILIES];
static int launches[FAMILIES_STEPS]; /* of each step, where one rank runs */

static void setup(void)
{
    cuda = families_cuda();
    families_build(ELEMENT_F32, graphs);
}

static void teardown(void)
{
    families_finish(graphs);
}

/* Steps whose instructions are timed are issued one by one. */
static int time_all(void *context, int rank, struct interpreter *in, int done, struct error *err)
{
    (void)context;
    (void)rank;
    (void)done;
    (void)err;
    if (in)
        interpreter_time(in, true);
    return 0;
}

static void count_launches(void *context, int rank, int step)
{
    (void)context;
    (void)rank;
    if (step > 0)
        launches[step - 1] = emulated_launches - launches[step - 1];
    if (step < FAMILIES_STEPS)
        launches[step] = emulated_launches;
}

static void run(int model, const struct plan *plan, bool one_by_one, struct engine_result *result)
{
    const struct engine_options options = {.device = cuda,
                                           .steps = FAMILIES_STEPS,
                                           .ignored = FAMILIES_IGNORED,
                                           .poison = true,
                                           .before_step =
                                               plan_ranks(plan) == 1 ? count_launches : NULL,
                                           .hook = one_by_one ? time_all : NULL};
    struct error err = {""};
    int rc = engine_run(graphs[model], plan, &options, result, &err);
    ck_assert_msg(rc == 0, "%s: %s", families[model].family, err.text);
}

static void check_same(int model, const struct plan *plan, const char *name)
{
    struct engine_result played, issued;
    run(model, plan, true, &issued);
    run(model, plan, false, &played);
    const char *differs = engine_differs(&played, &issued, graphs[model], FAMILIES_STEPS);
    ck_assert_msg(!differs, "%s under %s: %s differs", families[model].family, name, differs);
    engine_result_finish(&played);
    engine_result_finish(&issued);
}

START_TEST(what_is_played_does_what_is_issued)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    int model = _i % FAMILIES;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    struct plan *plan = engine_plan_random(graphs[model], seed, 4, 8);
    check_same(model, plan, name);
    plan_destroy(plan);
}
END_TEST

START_TEST(a_step_on_tape_takes_few_launches)
{
    struct engine_result result;
    struct plan *plan = engine_plan_one(graphs[_i], 1, 4);
    run(_i, plan, false, &result);
    int first = launches[0], last = launches[FAMILIES_STEPS - 1];
    engine_result_finish(&result);
    run(_i, plan, true, &result);
    ck_assert_int_eq(launches[FAMILIES_STEPS - 1], launches[0]);
    ck_assert_msg(8 * last < launches[0], "%s: %d launches one by one, %d at last",
                  families[_i].family, launches[0], last);
    /* Of a stretch that is not recorded yet, a residual and the norm of it are one; sums of squares
     * are two, and so many are the parameters that one by one they would be most of all. */
    ck_assert_msg(3 * first < 2 * launches[0], "%s: %d launches one by one, %d at first",
                  families[_i].family, launches[0], first);
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

START_TEST(what_cannot_be_kept_is_issued_one_by_one)
{
    struct plan *plan = engine_plan_one(graphs[_i], 2, 2);
    emulated_spoiled = 1;
    check_same(_i, plan, "a recording that fails");
    ck_assert_int_eq(emulated_spoiled, 0);
    ck_assert_int_eq(launches[FAMILIES_STEPS - 1], launches[0]);
    plan_destroy(plan);
}
END_TEST

/* ---- what is done before the first step ---- */

struct done {
    int plans, graphs, choices, loads;
};

/* What is done once all ranks are prepared. */
struct keeping {
    pthread_barrier_t prepared;
    struct done done;
};

static struct done done_now(void)
{
    return (struct done){emulated_plans, emulated_graphs, emulated_choices, emulated_loads};
}

static void keep_done(void *context, int rank, int step)
{
    struct keeping *keeping = context;
    if (step > 0)
        return;
    pthread_barrier_wait(&keeping->prepared);
    if (rank == 0)
        keeping->done = done_now();
    pthread_barrier_wait(&keeping->prepared);
}

/* Train in two steps, and evaluate; returns what was done before the first. */
static struct done run_kept(const struct graph *graph, const struct plan *plan)
{
    struct keeping keeping = {0};
    const struct engine_options options = {
        .device = cuda, .steps = 2, .poison = true, .context = &keeping, .before_step = keep_done};
    struct engine_result result;
    struct error err = {""};
    pthread_barrier_init(&keeping.prepared, NULL, (unsigned)plan_ranks(plan));
    int rc = engine_run(graph, plan, &options, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    pthread_barrier_destroy(&keeping.prepared);
    engine_result_finish(&result);
    return keeping.done;
}

/* Before the first step, of what no step has written. */
static int expect_poison(void *context, int rank, struct interpreter *in, int done,
                         struct error *err)
{
    (void)context;
    (void)rank;
    if (!in || done > 0)
        return 0;
    const struct program *program = interpreter_program(in);
    int rc = 0;
    for (size_t i = 0; i < program->buffer_count && rc == 0; i++)
        if (program->buffers[i].region != REGION_STATE)
            rc = interpreter_fetch(in, (int)i, err);
    for (int region = 0; region < REGIONS && rc == 0; region++)
        if (region != REGION_STATE && arena_touched(interpreter_arena(in), region) > 0)
            rc = error_set(err, -EEXIST, "region %d holds what kernels have prepared with", region);
    return rc;
}

START_TEST(what_kernels_prepare_with_is_poisoned)
{
    const struct engine_options options = {
        .device = cuda, .steps = 1, .poison = true, .hook = expect_poison};
    struct engine_result result;
    struct error err = {""};
    struct plan *plan = engine_plan_one(graphs[_i], 2, 2);
    ck_assert_msg(engine_run(graphs[_i], plan, &options, &result, &err) == 0, "%s", err.text);
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

START_TEST(attention_is_planned_before_the_first_step)
{
    const struct job_model config = {
        .family = "gpt", .layers = 1, .hidden = 64, .heads = 2, .seq = 16, .vocab = 36, .ffn = 64};
    struct error err = {""};
    struct graph *graph;
    ck_assert_msg(model_build(&config, ELEMENT_BF16, &graph, &err) == 0, "%s", err.text);
    struct plan *plan = engine_plan_one(graph, 2, 2);
    struct done before = done_now(), prepared = run_kept(graph, plan);
    ck_assert_int_eq(prepared.plans - before.plans, 2); /* forward, backward */
    ck_assert_int_eq(prepared.graphs - before.graphs, 2);
    ck_assert_int_eq(emulated_plans, prepared.plans);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

static void check_products(int model, enum element element, const char *name)
{
    struct graph *own[FAMILIES];
    families_build(element, own);
    struct plan *plan = engine_plan_random(own[model], test_seed() + (uint64_t)model, 4, 8);
    struct done before = done_now(), prepared = run_kept(own[model], plan), after = done_now();
    ck_assert_int_gt(prepared.choices, before.choices);
    ck_assert_msg(after.choices == prepared.choices, "%s, %s: %d products were chosen in a step",
                  families[model].family, name, after.choices - prepared.choices);
    ck_assert_msg(after.loads == prepared.loads, "%s, %s: code of %d products in a step",
                  families[model].family, name, after.loads - prepared.loads);
    plan_destroy(plan);
    families_finish(own);
}

START_TEST(products_are_chosen_and_loaded_before_the_first_step)
{
    check_products(_i, ELEMENT_F32, "f32");
    check_products(_i, ELEMENT_BF16, "bf16");
    emulated_refuses_bias = true;
    check_products(_i, ELEMENT_BF16, "bf16, biases apart");
    emulated_refuses_bias = false;
}
END_TEST

SUITE(tapes)
{
    TCase *tcase = tcase_create("tapes");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, what_is_played_does_what_is_issued, 0, test_share(8));
    tcase_add_loop_test(tcase, a_step_on_tape_takes_few_launches, 0, FAMILIES);
    tcase_add_loop_test(tcase, what_cannot_be_kept_is_issued_one_by_one, 0, FAMILIES);
    tcase_add_test(tcase, attention_is_planned_before_the_first_step);
    tcase_add_loop_test(tcase, what_kernels_prepare_with_is_poisoned, 0, FAMILIES);
    tcase_add_loop_test(tcase, products_are_chosen_and_loaded_before_the_first_step, 0, FAMILIES);
    return suite_run("tapes", tcase, NULL);
}
