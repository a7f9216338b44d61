/* test_foreign.c - the engine is general: operations that the tree does not have, defined here
 * alone, train under every vector of roles on two axes as on one rank.
 *
 * rotate: rotary positions (Su et al., arXiv 2104.09864) on q and k, no weights, split as its
 * neighbours are. scale: a root-mean-square norm (Zhang and Sennrich, arXiv 1910.07467) in the
 * place of every layer norm: a weight, and a statistic that is reduced between its phases. look: an
 * attention that sees all keys (Devlin et al., arXiv 1810.04805) in the place of the causal one, by
 * the kernels that every device has. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "tests/worker/interpreter/derivative.h"
#include "worker/interpreter/interpreter.h"
#include "worker/kernels/call.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 4

/* ---- rotate ---- */

static const struct operation rotate = {
    .name = "rotate",
    .input_count = 1,
    .dims = {"bsnd", "bsnd"},
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 1,
};

/* Pairs (2i, 2i + 1) turn by place / 10000^(2i / d); backward turns back. */
static void turn(const struct view *from, const struct view *to, bool add, double sign)
{
    const struct box *box = &from->box;
    int64_t heads = box_length(box, 2), width = box_length(box, 3), at = 0;
    for (int64_t b = box->low[0]; b < box->high[0]; b++)
        for (int64_t place = box->low[1]; place < box->high[1]; place++)
            for (int64_t n = 0; n < heads; n++)
                for (int64_t d = 0; d < width; d += 2, at += 2) {
                    double angle = sign * (double)place * pow(10000, -(double)d / (double)width);
                    double first = get(from, at), second = get(from, at + 1);
                    put(to, at, add, first * cos(angle) - second * sin(angle));
                    put(to, at + 1, add, first * sin(angle) + second * cos(angle));
                }
}

static void rotate_forward(const struct kernel_call *call)
{
    turn(&call->operand[0], &call->operand[1], false, 1);
}

static void rotate_backward(const struct kernel_call *call)
{
    turn(&call->gradient[1], &call->gradient[0], call_accumulates(call, 0), -1);
}

static const struct kernel rotate_kernel = {"rotate", {{rotate_forward}, {rotate_backward}}};

/* ---- scale ---- */

enum { X, W, Y, SQUARES, DOT = 3 };

static const struct operation scale = {
    .name = "scale",
    .input_count = 1,
    .weight_count = 1,
    .dims = {"bsh", "h", "bsh"},
    .saved = 1 << X | 1 << SQUARES,
    .exchange = "h",
    .phases = {2, 2},
    .statistics = {{{"squares", "h", 0, 0, REDUCTION_SUM}}, {{"dot", "h", 0, 0, REDUCTION_SUM}}},
    .statistic_count = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 2,
};

/* 1 / sqrt(mean square + epsilon) of a row, once its squares are whole. */
static double row_factor(const struct kernel_call *call, int64_t row)
{
    const float *squares = call->operand[SQUARES].data;
    return 1 /
           sqrt(squares[row] / (double)sizes_get(&call->node->sizes, 'h') + call->node->epsilon);
}

/* sums[row] = sum of a b (c) over the piece of h that is here. */
static void sum_rows(const struct kernel_call *call, const float *a, const float *b, const float *w,
                     float *sums)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    for (int64_t row = 0; row < rows; row++) {
        double sum = 0;
        for (int64_t i = 0; i < hidden; i++)
            sum += (double)a[row * hidden + i] * b[row * hidden + i] * (w ? w[i] : 1);
        sums[row] = (float)sum;
    }
}

static void scale_squares(const struct kernel_call *call)
{
    sum_rows(call, call->operand[X].data, call->operand[X].data, NULL, call->operand[SQUARES].data);
}

static void scale_output(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    const float *x = call->operand[X].data, *w = call->operand[W].data;
    float *y = call->operand[Y].data;
    for (int64_t at = 0; at < rows * hidden; at++)
        y[at] = (float)(x[at] * row_factor(call, at / hidden) * w[at % hidden]);
}

static void scale_dot(const struct kernel_call *call)
{
    sum_rows(call, call->gradient[Y].data, call->operand[X].data, call->operand[W].data,
             call->gradient[DOT].data);
}

/* dx = r (dy w - x r^2 dot / width), dw = sum of dy x r. */
static void scale_gradients(const struct kernel_call *call)
{
    int64_t rows = call_rows(&call->operand[X].box), hidden = box_length(&call->operand[X].box, 2);
    double width = (double)sizes_get(&call->node->sizes, 'h');
    const float *x = call->operand[X].data, *w = call->operand[W].data,
                *dy = call->gradient[Y].data;
    const float *dot = call->gradient[DOT].data;
    float *dw = call->gradient[W].data;
    for (int64_t at = 0; at < rows * hidden; at++) {
        double r = row_factor(call, at / hidden);
        dw[at % hidden] += (float)(dy[at] * x[at] * r);
        put(&call->gradient[X], at, call_accumulates(call, X),
            r * ((double)dy[at] * w[at % hidden] - x[at] * r * r * dot[at / hidden] / width));
    }
}

static const struct kernel scale_kernel = {
    "scale", {{scale_squares, scale_output}, {scale_dot, scale_gradients}}};

/* ---- look ---- */

static double look_flops(const struct node *node, const struct box *operands)
{
    (void)node;
    return 4.0 * (double)box_count(&operands[0]) * (double)box_length(&operands[1], 1);
}

static uint64_t look_workspace(const struct box *operands, enum direction direction)
{
    (void)direction;
    return 2 * sizeof(float) *
           (uint64_t)(box_length(&operands[0], 1) * box_length(&operands[1], 1));
}

/* By the kernels that every device has: they know it by what it says, not by its name. */
static const struct operation look = {
    .name = "look",
    .kernel = "attention",
    .input_count = 3,
    .dims = {"bsnd", "btnd", "btnd", "bsnd"},
    .keys = 't',
    .saved = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4,
    .phases = {1, 1},
    .statistics = {{{"logsum", "d", 's', 0, REDUCTION_SUM}}},
    .statistic_count = {1, 0},
    .flops = look_flops,
    .backward_flops = 2.5,
    .workspace = look_workspace,
};

/* ---- a device with two rows more ---- */

#define KERNELS_MAX 32

static const struct kernel *kernels[KERNELS_MAX];
static struct device foreign;

static void make_device(void)
{
    int count = 0;
    foreign = device_plain;
    foreign.name = "foreign";
    while (device_plain.kernels[count]) {
        kernels[count] = device_plain.kernels[count];
        count++;
    }
    ck_assert_int_lt(count + 2, KERNELS_MAX);
    kernels[count] = &rotate_kernel;
    kernels[count + 1] = &scale_kernel;
    foreign.kernels = kernels;
}

/* ---- models: a GPT with operations put in or exchanged ---- */

static const char *own_name(const struct graph *graph, int tensor, int block)
{
    return graph->tensors[tensor].name + strlen(graph->blocks[block].name) + 1;
}

/* Operands as they are called in the copy; a weight is made where it is first used. */
static void copy_operands(const struct graph *from, struct graph *to, const struct node *node,
                          int *names, int *operands)
{
    for (int i = 0; i < operation_output(node->operation); i++) {
        int tensor = node->operands[i];
        const struct tensor *t = &from->tensors[tensor];
        if (names[tensor] < 0) {
            graph_sizes_like(to, t);
            names[tensor] = graph_weight(to, own_name(from, tensor, node->block), t->dims,
                                         t->initializer, t->decays);
        }
        operands[i] = names[tensor];
    }
}

/* The layer norms of the copy have no bias: their last operand is left out. */
static struct graph *rewrite(const struct graph *from, bool rotates, bool scales, bool looks)
{
    struct graph *to = graph_create();
    int *names = xcalloc(from->tensor_count, sizeof *names), operands[OPERANDS_MAX];
    for (size_t t = 0; t < from->tensor_count; t++) {
        const struct tensor *tensor = &from->tensors[t];
        graph_sizes_like(to, tensor);
        names[t] = tensor->kind == TENSOR_DATA
                       ? graph_data(to, tensor->name, tensor->dims, tensor->targets)
                       : -1;
    }
    for (size_t b = 0; b < from->block_count; b++) {
        const struct block *block = &from->blocks[b];
        graph_block(to, block->name, block->type);
        for (int n = block->node_first; n < block->node_first + block->node_count; n++) {
            struct node node = from->nodes[n];
            int last = operation_output(node.operation), output = node.operands[last];
            const char *name = own_name(from, output, (int)b);
            bool exchanged = (scales && node.operation == &operation_norm) ||
                             (looks && node.operation == &operation_causal_attention);
            if (exchanged)
                node.operation = node.operation == &operation_norm ? &scale : &look;
            copy_operands(from, to, &node, names, operands);
            names[output] =
                graph_node_along(to, exchanged ? node.operation->name : node.name, node.operation,
                                 exchanged ? node.operation->dims : node.dims, name, operands);
            if (rotates && (strcmp(name, "q") == 0 || strcmp(name, "k") == 0))
                names[output] = graph_node(to, &rotate, name[0] == 'q' ? "q.turned" : "k.turned",
                                           &names[output]);
        }
    }
    free(names);
    return to;
}

static const struct {
    const char *name;
    bool rotates, scales, looks;
} models_tried[] = {{"rotate", true, false, false},
                    {"scale", false, true, false},
                    {"look", false, false, true},
                    {"all", true, true, true}};
enum { ROTATE, SCALE, LOOK, ALL, MODELS };

static struct graph *graphs[MODELS];
static struct engine_result ones[MODELS];
static const struct engine_options options = {.device = &foreign, .steps = STEPS, .ignored = 0.2};

static void setup(void)
{
    struct job_model config = {
        .family = "gpt", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};
    struct graph *graph;
    struct error err = {""};
    make_device();
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, &err), 0);
    for (int i = 0; i < MODELS; i++) {
        graphs[i] =
            rewrite(graph, models_tried[i].rotates, models_tried[i].scales, models_tried[i].looks);
        struct plan *plan = engine_plan_one(graphs[i], 1, 8);
        int rc = engine_run(graphs[i], plan, &options, &ones[i], &err);
        ck_assert_msg(rc == 0, "%s: %s", models_tried[i].name, err.text);
        plan_destroy(plan);
    }
    graph_destroy(graph);
}

static void teardown(void)
{
    for (int i = 0; i < MODELS; i++) {
        engine_result_finish(&ones[i]);
        graph_destroy(graphs[i]);
    }
}

/* Takes the plan. */
static void check_plan(int model, struct plan *plan, const char *name)
{
    struct engine_result result;
    agreement_check(models_tried[model].name, graphs[model], plan, &options, &ones[model], name,
                    &result);
    engine_result_finish(&result);
    plan_destroy(plan);
}

static int role_count(void)
{
    int count = 0;
    while (roles[count])
        count++;
    return count;
}

START_TEST(a_foreign_operation_trains_under_every_vector_of_roles)
{
    const char *names[] = {roles[_i % role_count()]->name, roles[_i / role_count()]->name};
    char name[64];
    snprintf(name, sizeof name, "%s, %s", names[0], names[1]);
    for (int model = 0; model < ALL; model++)
        check_plan(model, engine_plan(graphs[model], 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b"),
                   name);
}
END_TEST

START_TEST(foreign_operations_train_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(ALL, engine_plan_random(graphs[ALL], seed, 8, 8), name);
}
END_TEST

START_TEST(gradients_through_foreign_operations_are_derivatives)
{
    const char *names[] = {"hidden", "context"};
    struct plan *plan = engine_plan(graphs[ALL], 1, (int[]){2, 2}, 2, names, 1, 8, "1f1b");
    derivative_check(graphs[ALL], plan, &foreign, test_seed() + (uint64_t)_i, "all at once");
    plan_destroy(plan);
}
END_TEST

/* A device that knew attention by name would compute it causally, and nobody would say a word. */
START_TEST(a_foreign_attention_is_itself_on_every_device)
{
    struct error err = {""};
    if (devices[_i]->probe(&err) < 0) {
        printf("skip %s: %s\n", devices[_i]->name, err.text);
        return;
    }
    struct engine_options own = options;
    own.device = devices[_i];
    struct plan *plan = engine_plan_one(graphs[LOOK], 1, 8);
    struct engine_result result;
    int rc = engine_run(graphs[LOOK], plan, &own, &result, &err);
    ck_assert_msg(rc == 0, "%s: %s", own.device->name, err.text);
    for (int step = 0; step < STEPS; step++)
        ck_assert_double_eq_tol(result.loss[step], ones[LOOK].loss[step], 1e-5);
    engine_result_finish(&result);
    plan_destroy(plan);
}
END_TEST

/* Positions that were written before would have to be computed again. */
START_TEST(what_looks_ahead_is_not_written_position_by_position)
{
    struct error err = {""};
    ck_assert_int_eq(interpreter_extends(graphs[ROTATE], &err), 0);
    ck_assert_int_eq(interpreter_extends(graphs[LOOK], &err), -EINVAL);
    ck_assert_str_eq(err.text, "look needs all positions at once; a text is written "
                               "position by position");
}
END_TEST

START_TEST(a_foreign_operation_matters)
{
    struct job_model config = {
        .family = "gpt", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};
    struct graph *graph;
    struct engine_result result;
    struct error err;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, &err), 0);
    struct plan *plan = engine_plan_one(graph, 1, 8);
    ck_assert_int_eq(engine_run(graph, plan, &options, &result, &err), 0);
    for (int i = 0; i < MODELS; i++)
        ck_assert_msg(fabs(result.loss[STEPS - 1] - ones[i].loss[STEPS - 1]) > 1e-4,
                      "%s changes nothing", models_tried[i].name);
    engine_result_finish(&result);
    plan_destroy(plan);
    graph_destroy(graph);
}
END_TEST

SUITE(foreign)
{
    int count = 0;
    while (devices[count])
        count++;
    TCase *tcase = tcase_create("foreign");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    suite_add_rows(tcase, a_foreign_operation_trains_under_every_vector_of_roles,
                   role_count() * role_count());
    tcase_add_loop_test(tcase, foreign_operations_train_under_random_plans, 0, test_share(12));
    tcase_add_loop_test(tcase, gradients_through_foreign_operations_are_derivatives, 0,
                        test_share(1));
    tcase_add_loop_test(tcase, a_foreign_attention_is_itself_on_every_device, 0, count);
    tcase_add_test(tcase, what_looks_ahead_is_not_written_position_by_position);
    tcase_add_test(tcase, a_foreign_operation_matters);
    return suite_run("foreign", tcase, NULL);
}
