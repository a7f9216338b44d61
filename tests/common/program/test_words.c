/* test_words.c - what one layer moves under each role is what its paper says.
 *
 * n = batch x seq x hidden of the micro-batch; ffn = 4 hidden. On p devices a unit is the words
 * that one device sends when n words are gathered or scattered: n (p - 1) / p. */
#include "common/models/model.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#define P 4
#define BATCH 4
#define SEQ 16
#define HIDDEN 32
#define VOCAB 48
#define LAYERS 3
#define N ((double)(BATCH * SEQ * HIDDEN))
#define ROWS ((double)(BATCH * SEQ))
#define UNIT (N * (P - 1) / P)

/* Of a layer's weights: 12 h^2 in matrices, 9 h in biases, 4 h in its two norms. */
#define LAYER_WEIGHTS ((double)(12 * HIDDEN * HIDDEN + 13 * HIDDEN))
#define TABLE ((double)(VOCAB * HIDDEN))
#define POSITIONS ((double)(SEQ * HIDDEN))
#define NORM (2.0 * HIDDEN)
#define WEIGHTS (LAYERS * LAYER_WEIGHTS + TABLE + POSITIONS + NORM)

static struct world uniform(const char *role, int zero)
{
    struct job_model config = {.family = "gpt",
                               .layers = LAYERS,
                               .hidden = HIDDEN,
                               .heads = 4,
                               .seq = SEQ,
                               .vocab = VOCAB};
    struct graph *graph;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    struct plan *plan = engine_plan(graph, 1, (int[]){P}, 1, &role, 1, BATCH, "1f1b");
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].zero = zero;
    return world_create(graph, plan);
}

/* Words that a device sends in a section, for one block or (-1) outside all blocks. */
static double words(const struct world *world, enum section section, int block)
{
    int64_t total = 0;
    for (int rank = 0; rank < world->ranks; rank++) {
        const struct program *program = world->programs[rank];
        struct range range = program->sections[section];
        for (int i = range.first; i < range.first + range.count; i++)
            if (program->instructions[i].block == block)
                total += instruction_words(program, &program->instructions[i]);
    }
    return (double)total / world->ranks;
}

/* Collectives of a kind in a section, over all blocks. */
static int collectives(const struct program *program, enum section section, enum collective kind)
{
    struct range range = program->sections[section];
    int count = 0;
    for (int i = range.first; i < range.first + range.count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        count +=
            instruction->kind == INSTRUCTION_COLLECTIVE && instruction->collective.kind == kind;
    }
    return count;
}

/* What a block waits for is one answer, however many tensors it has. */
START_TEST(a_block_s_weights_and_gradients_travel_in_one_call)
{
    const struct {
        int zero;
        enum section gathers, scatters;
        int passes; /* that gather: forward alone, or backward, too */
    } cases[] = {
        {1, SECTION_WEIGHTS, SECTION_REDUCE, 1},
        {2, SECTION_WEIGHTS, SECTION_BACKWARD, 1},
        {3, SECTION_FORWARD, SECTION_BACKWARD, 2},
    };
    struct world world = uniform("batch", cases[_i].zero);
    const struct program *program = world.programs[1];
    const int passes = cases[_i].passes, blocks = passes * (LAYERS + 2),
              layers_of = passes * LAYERS;
    int gathers = collectives(program, cases[_i].gathers, COLLECTIVE_ALL_GATHER);
    if (passes == 2)
        gathers += collectives(program, SECTION_BACKWARD, COLLECTIVE_ALL_GATHER);
    ck_assert_int_le(gathers, blocks);
    ck_assert_int_ge(gathers, layers_of);
    ck_assert_int_le(collectives(program, cases[_i].scatters, COLLECTIVE_REDUCE_SCATTER),
                     LAYERS + 2);
    world_destroy(&world);
}
END_TEST

/* Backward gathers again what forward gathered from a smaller piece: only the piece is saved.
 * hidden exchanges two statistics of batch x seq in each of two norms and directions, each by an
 * all-reduce of 2 (p - 1) / p. */
#define EXCHANGES (2 * 2 * 2 * ROWS * (P - 1) / P)
static const struct {
    const char *role, *source;
    double forward, backward;
} layers[] = {
    {"batch", "nothing inside a layer", 0, 0},
    {"tensor", "Megatron: two all-reduces each way", 4 * UNIT, 4 * UNIT},
    {"tensor_seq", "Korthikanti et al.: the same words; two gathers again", 4 * UNIT, 6 * UNIT},
    {"ulysses", "DeepSpeed-Ulysses: four all-to-alls each way", 4 * UNIT / P, 4 * UNIT / P},
    {"context", "keys and values gathered, their gradients scattered; gathered again", 2 * UNIT,
     4 * UNIT},
    {"hidden", "q, k, v, out, fc1 (4 n) and fc2 scattered; gradients gathered",
     9 * UNIT + EXCHANGES, 9 * UNIT + EXCHANGES},
};

START_TEST(a_layer_moves_what_the_textbook_says)
{
    struct world world = uniform(layers[_i].role, 0);
    int middle = 2;
    double forward = words(&world, SECTION_FORWARD, middle);
    double backward = words(&world, SECTION_BACKWARD, middle);
    ck_assert_msg(forward == layers[_i].forward, "%s (%s): forward %g words, %g in the textbook",
                  layers[_i].role, layers[_i].source, forward, layers[_i].forward);
    ck_assert_msg(backward == layers[_i].backward, "%s (%s): backward %g words, %g in the textbook",
                  layers[_i].role, layers[_i].source, backward, layers[_i].backward);
    world_destroy(&world);
}
END_TEST

static const struct {
    const char *role;
    double partial; /* weights whose gradient is an unfinished sum */
} gradients[] = {
    {"batch", WEIGHTS},
    {"tensor", 0},
    {"tensor_seq", (2 * LAYERS + 1) * NORM},
    {"ulysses", WEIGHTS - POSITIONS},
    {"context", WEIGHTS - POSITIONS},
    {"hidden", 0},
};

START_TEST(weight_gradients_are_reduced_once)
{
    struct world world = uniform(gradients[_i].role, 0);
    double expected = 2 * gradients[_i].partial * (P - 1) / P;
    ck_assert_msg(words(&world, SECTION_REDUCE, -1) == expected, "%s: %g words, not %g",
                  gradients[_i].role, words(&world, SECTION_REDUCE, -1), expected);
    ck_assert(words(&world, SECTION_WEIGHTS, -1) == 0);
    world_destroy(&world);
}
END_TEST

START_TEST(zero_scatters_gradients_and_gathers_weights)
{
    struct world world = uniform(gradients[_i].role, 1);
    double expected = gradients[_i].partial * (P - 1) / P;
    ck_assert_msg(words(&world, SECTION_REDUCE, -1) == expected, "%s: %g words, not %g",
                  gradients[_i].role, words(&world, SECTION_REDUCE, -1), expected);
    ck_assert_msg(words(&world, SECTION_WEIGHTS, -1) == expected, "%s: %g words, not %g",
                  gradients[_i].role, words(&world, SECTION_WEIGHTS, -1), expected);
    world_destroy(&world);
}
END_TEST

START_TEST(embedding_and_head_move_what_the_textbook_says)
{
    /* An all-reduce of the embedding's output; of the gradient of the head's input; three
     * statistics of the loss. tensor_seq: scatter and gather; gathered again in backward. */
    double statistics = 3 * 2 * ROWS * (P - 1) / P;
    struct world world = uniform("tensor", 0);
    ck_assert(words(&world, SECTION_FORWARD, 0) == 2 * UNIT);
    ck_assert(words(&world, SECTION_BACKWARD, 0) == 0);
    ck_assert(words(&world, SECTION_FORWARD, LAYERS + 1) == statistics);
    ck_assert(words(&world, SECTION_BACKWARD, LAYERS + 1) == 2 * UNIT);
    world_destroy(&world);
    world = uniform("tensor_seq", 0);
    ck_assert(words(&world, SECTION_FORWARD, 0) == UNIT);
    ck_assert(words(&world, SECTION_BACKWARD, 0) == UNIT);
    ck_assert(words(&world, SECTION_FORWARD, LAYERS + 1) == UNIT + statistics);
    ck_assert(words(&world, SECTION_BACKWARD, LAYERS + 1) == 2 * UNIT);
    world_destroy(&world);
}
END_TEST

SUITE(words)
{
    TCase *tcase = tcase_create("words");
    tcase_add_loop_test(tcase, a_layer_moves_what_the_textbook_says, 0, 6);
    tcase_add_loop_test(tcase, weight_gradients_are_reduced_once, 0, 6);
    tcase_add_loop_test(tcase, zero_scatters_gradients_and_gathers_weights, 0, 6);
    tcase_add_loop_test(tcase, a_block_s_weights_and_gradients_travel_in_one_call, 0, 3);
    tcase_add_test(tcase, embedding_and_head_move_what_the_textbook_says);
    return suite_run("words", tcase, NULL);
}
