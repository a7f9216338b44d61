/* test_extend.c - a sequence evaluated window by window has the logits of one evaluated as a whole,
 * for every causal family, on the plain device and on the processor. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/small_families.h"
#include "worker/kernels/call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED 7
#define CAUSAL (FAMILIES - 1) /* the last one is not */
#define CASES (CAUSAL * 4)

static void fill(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out)
{
    (void)context;
    (void)kind;
    (void)first;
    for (int64_t place = box->low[1]; place < box->high[1]; place++)
        *out++ = tensor->targets ? -1 : (int32_t)random_below(SEED, 1, (uint64_t)place, 36);
}

static double no_targets(const void *context, enum program_kind kind, uint64_t first,
                         uint64_t samples)
{
    (void)context;
    (void)kind;
    (void)first;
    (void)samples;
    return 1;
}

/* A model that has drawn its weights. */
struct scene {
    struct graph *graph;
    struct plan *plan;
    struct program *program;
    struct interpreter *in;
    struct view logits;
};

static const struct feed feed = {NULL, fill, no_targets};

static struct scene open_scene(int family, const struct device *device, enum element element)
{
    const struct interpreter_config config = {.device = device, .feed = &feed, .poison = true};
    struct scene scene;
    struct error err = {""};
    ck_assert_int_eq(model_build(&families[family], element, &scene.graph, &err), 0);
    scene.plan = engine_plan_one(scene.graph, 1, 1);
    ck_assert_int_eq(lower(scene.graph, scene.plan, 0, &scene.program, &err), 0);
    int rc = interpreter_prepare(scene.program, &config, &scene.in, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    interpreter_initialize(scene.in, SEED);
    for (size_t n = 0; n < scene.graph->node_count; n++)
        if (scene.graph->nodes[n].operation->is_loss) {
            int buffer = program_find_output(scene.program, scene.graph->nodes[n].operands[0],
                                             &scene.logits.box);
            scene.logits.data = interpreter_buffer(scene.in, buffer);
        }
    scene.logits.element = element;
    return scene;
}

static void close_scene(struct scene *scene)
{
    interpreter_release(scene->in);
    program_destroy(scene->program);
    plan_destroy(scene->plan);
    graph_destroy(scene->graph);
}

/* Evaluate positions up to `high` in windows of random lengths. */
static void extend(struct scene *scene, uint64_t stream, int64_t high)
{
    struct error err = {""};
    for (int64_t low = 0, end; low < high; low = end) {
        end = low + 1 + (int64_t)random_below(test_seed(), stream, (uint64_t)low, 4);
        end = end < high ? end : high;
        int rc = interpreter_extend(scene->in, low, end, &err);
        ck_assert_msg(rc == 0, "%s", err.text);
    }
}

START_TEST(windows_have_the_logits_of_the_whole)
{
    const struct device *device = _i % 2 ? &device_cpu : &device_plain;
    enum element element = _i / 2 % 2 ? ELEMENT_BF16 : ELEMENT_F32;
    int family = _i / 4;
    struct error err = {""};
    struct step_result result;
    struct scene whole = open_scene(family, device, element);
    struct scene parts = open_scene(family, device, element);
    int rc = interpreter_run(whole.in, PROGRAM_EVALUATE, 0, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    int64_t seq = families[family].seq, vocab = families[family].vocab;
    extend(&parts, 1, seq / 2);
    extend(&parts, 2, seq); /* from the beginning again, as when a context was full */
    double limit = element == ELEMENT_F32 ? 1e-5 : 2e-2;
    for (int64_t i = 0; i < seq * vocab; i++) {
        double right = get(&whole.logits, i), there = get(&parts.logits, i);
        ck_assert_msg(fabs(there - right) <= limit, "%s: logit %d of position %d is %g, not %g",
                      families[family].family, (int)(i % vocab), (int)(i / vocab), there, right);
    }
    close_scene(&whole);
    close_scene(&parts);
}
END_TEST

SUITE(extend)
{
    TCase *tcase = tcase_create("extend");
    tcase_add_loop_test(tcase, windows_have_the_logits_of_the_whole, 0, CASES);
    return suite_run("extend", tcase, NULL);
}
