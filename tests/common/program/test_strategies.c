/* test_strategies.c - what zero and recomputation save, to the byte. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "common/program/lower.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#define HIDDEN 64
#define HEADS 4
#define SEQ 16
#define SAMPLES 4 /* of each rank */
#define BYTES 4
#define PARAMETERS (12 * HIDDEN * HIDDEN + 13 * HIDDEN) /* of a layer */

/* The reservation of rank 0 with so many layers, on `ranks` ranks of data parallelism. */
static struct program *make(int64_t layers, int ranks, int zero, enum recompute recompute,
                            struct graph **graph)
{
    struct job_model config = {.family = "gpt",
                               .layers = layers,
                               .hidden = HIDDEN,
                               .heads = HEADS,
                               .seq = SEQ,
                               .vocab = 64};
    struct program *program;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, graph, NULL), 0);
    struct plan *plan = engine_plan(*graph, 1, &ranks, 1, (const char *[]){"batch"}, 2,
                                    (int64_t)SAMPLES * ranks, "1f1b");
    for (int b = 0; b < plan->block_count; b++) {
        plan->blocks[b].zero = zero;
        plan->blocks[b].recompute = recompute;
    }
    struct error err;
    ck_assert_msg(lower(*graph, plan, 0, &program, &err) == 0, "%s", err.text);
    plan_destroy(plan);
    return program;
}

/* What one layer more adds to state and to a slot. */
static void layer_bytes(int ranks, int zero, enum recompute recompute, int64_t *state,
                        int64_t *saved)
{
    struct graph *graph, *larger_graph;
    struct program *program = make(2, ranks, zero, recompute, &graph);
    struct program *larger = make(3, ranks, zero, recompute, &larger_graph);
    *state = (int64_t)(larger->bytes[REGION_STATE] - program->bytes[REGION_STATE]);
    *saved = (int64_t)(larger->slot_bytes - program->slot_bytes);
    program_destroy(program);
    program_destroy(larger);
    graph_destroy(graph);
    graph_destroy(larger_graph);
}

/* Elements per token of a layer: its input, two norms' outputs, q, k, v, the attention's output,
 * the middle of the residual stream, and both sides of the GELU; per head a row's sum, per norm
 * two statistics. */
START_TEST(recomputation_saves_what_it_makes_again)
{
    static const int64_t elements[RECOMPUTES] = {
        [RECOMPUTE_NONE] = 16 * HIDDEN + HEADS + 4,
        [RECOMPUTE_SELECTIVE] = (16 - 4 - 2) * HIDDEN + HEADS,
        [RECOMPUTE_FULL] = HIDDEN,
    };
    int64_t state, saved;
    layer_bytes(1, 0, (enum recompute)_i, &state, &saved);
    ck_assert_int_eq(saved, elements[_i] * SEQ * SAMPLES * BYTES);
}
END_TEST

/* Parameter, gradient and two moments, 4 bytes each. With d ranks, zero 1 keeps a d-th of
 * each, and whole the gradient before it is reduced and the weight that is gathered for the step;
 * zero 2 only that weight; zero 3 nothing. */
START_TEST(zero_shards_the_state_over_the_ranks)
{
    static const double whole[] = {4, 2, 1, 0}, shards[] = {0, 4, 4, 4};
    const int ranks = 4;
    int64_t state, saved;
    double expected = (whole[_i] + shards[_i] / ranks) * PARAMETERS * BYTES;
    layer_bytes(ranks, _i, RECOMPUTE_NONE, &state, &saved);
    ck_assert_double_le((double)state, expected * 1.02); /* small tensors end on cache lines */
    ck_assert_double_ge((double)state, expected);
}
END_TEST

/* Recomputed and gathered pieces live in one block at a time, however many there are. */
START_TEST(transients_do_not_grow_with_the_layers)
{
    struct graph *graph, *larger_graph;
    struct program *program = make(2, 4, 3, RECOMPUTE_FULL, &graph);
    struct program *larger = make(5, 4, 3, RECOMPUTE_FULL, &larger_graph);
    ck_assert_uint_eq(program->bytes[REGION_TRANSIENT], larger->bytes[REGION_TRANSIENT]);
    program_destroy(program);
    program_destroy(larger);
    graph_destroy(graph);
    graph_destroy(larger_graph);
}
END_TEST

SUITE(strategies)
{
    TCase *tcase = tcase_create("strategies");
    tcase_add_loop_test(tcase, recomputation_saves_what_it_makes_again, 0, RECOMPUTES);
    tcase_add_loop_test(tcase, zero_shards_the_state_over_the_ranks, 0, 4);
    tcase_add_test(tcase, transients_do_not_grow_with_the_layers);
    return suite_run("strategies", tcase, NULL);
}
