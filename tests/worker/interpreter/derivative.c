/* derivative.c - central differences in f32: the step is large enough that the loss changes in
 * digits that it has. So it is large enough for the loss's third derivative to show, too: how much
 * of it does, tells a step of twice the length, which has four times as much. What is left then of
 * the fifth is usually less than that. Where it is not (keys that are normed bend the loss at a
 * tenth of their weights), a step of half the length shows it: it has a sixteenth of the fifth, and
 * all of what is wrong with a gradient. */
#include "tests/worker/interpreter/derivative.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/suite.h"

#include "tests/support/counts.h"
#include <math.h>
#include <stdlib.h>

#define STEP 2e-3
#define STEP_MIN 1e-3
#define LIMIT 1e-2

/* A direction in the space of one weight. */
struct line {
    const struct graph *graph;
    uint64_t seed;
    int tensor;
    int64_t count;
};

static double sign_at(const struct line *line, int64_t index)
{
    return random_below(line->seed, (uint64_t)line->tensor, (uint64_t)index, 2) ? 1 : -1;
}

static double loss_at(const struct line *line, const struct plan *plan, const struct device *device,
                      double step)
{
    const float **offsets = xcalloc(line->graph->tensor_count, sizeof *offsets);
    float *offset = xcalloc((size_t)line->count, sizeof *offset);
    struct engine_options options = {
        .device = device, .steps = 1, .ignored = 0.2, .offsets = offsets};
    struct engine_result result;
    struct error err = {""};
    for (int64_t i = 0; i < line->count; i++)
        offset[i] = (float)(step * sign_at(line, i));
    offsets[line->tensor] = offset;
    int rc = engine_run(line->graph, plan, &options, &result, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    double loss = result.loss[0];
    engine_result_finish(&result);
    free(offset);
    free(offsets);
    return loss;
}

static double difference(const struct line *line, const struct plan *plan,
                         const struct device *device, double step)
{
    return (loss_at(line, plan, device, step) - loss_at(line, plan, device, -step)) / (2 * step);
}

static void check_weight(const struct line *line, const struct plan *plan,
                         const struct device *device, const struct engine_result *result,
                         const char *name)
{
    const float *gradient = result->gradients[line->tensor];
    double along = 0, squares = 0;
    for (int64_t i = 0; i < line->count; i++) {
        along += gradient[i] * sign_at(line, i);
        squares += (double)gradient[i] * gradient[i];
    }
    double numeric = 0, allowed = 0, far = difference(line, plan, device, 2 * STEP);
    bool agree = false;
    for (double step = STEP; step >= STEP_MIN && !agree; step /= 2) {
        double near = difference(line, plan, device, step), bent = (near - far) / 3;
        numeric = near + bent;
        allowed = LIMIT * fmax(sqrt(squares), LIMIT * result->norm[0]) + fabs(bent);
        agree = fabs(numeric - along) <= allowed;
        far = near;
    }
    ck_assert_msg(agree,
                  "%s: along a direction of %s the loss rises by %g, the gradient says %g; %g is "
                  "allowed",
                  name, line->graph->tensors[line->tensor].name, numeric, along, allowed);
}

static int count_uses(const struct graph *graph, int tensor)
{
    int uses = 0;
    for (size_t n = 0; n < graph->node_count; n++)
        for (int i = 0; i < operation_output(graph->nodes[n].operation); i++)
            uses += graph->nodes[n].operands[i] == tensor;
    return uses;
}

/* A third of the weights; in a soak, and of those that are used more than once, all. */
static bool is_drawn(const struct line *line)
{
    return test_soak() || count_uses(line->graph, line->tensor) > 1 ||
           random_below(line->seed, 1000, (uint64_t)line->tensor, 3) == 0;
}

void derivative_check(const struct graph *graph, const struct plan *plan,
                      const struct device *device, uint64_t seed, const char *name)
{
    struct engine_options options = {.device = device, .steps = 1, .ignored = 0.2};
    struct engine_result result;
    struct error err = {""};
    int rc = engine_run(graph, plan, &options, &result, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err.text);
    for (size_t t = 0; t < graph->tensor_count; t++) {
        struct line line = {graph, seed, (int)t, count_tensor(graph, (int)t)};
        if (result.gradients[t] && is_drawn(&line))
            check_weight(&line, plan, device, &result, name);
    }
    engine_result_finish(&result);
}
