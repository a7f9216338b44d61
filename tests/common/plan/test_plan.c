/* test_plan.c - plans written, read, checked and named. What is read may be anybody's text. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/model.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static struct graph *graph;

static void setup(void)
{
    graph = world_graph(4);
}

static void teardown(void)
{
    graph_destroy(graph);
}

static uint64_t hash_of(const struct plan *plan, int rank)
{
    struct program *program;
    struct error err;
    ck_assert_msg(lower(graph, plan, rank, &program, &err) == 0, "%s", err.text);
    uint64_t hash = program_hash(program);
    program_destroy(program);
    return hash;
}

START_TEST(a_plan_that_is_written_and_read_lowers_to_the_same_programs)
{
    struct plan *plan = engine_plan_random(graph, test_seed() + (uint64_t)_i, 8, 8), *read;
    struct error err;
    plan_name(plan);
    char *text = plan_encode(plan, graph);
    ck_assert_msg(plan_decode(text, &read, &err) == 0, "%s", err.text);
    ck_assert_msg(plan_check(read, graph, &err) == 0, "%s", err.text);
    ck_assert_int_eq(plan_ranks(read), plan_ranks(plan));
    for (int rank = 0; rank < plan_ranks(plan); rank++)
        ck_assert_uint_eq(hash_of(read, rank), hash_of(plan, rank));
    ck_assert_str_eq(read->id, plan->id);
    plan_name(read);
    ck_assert_str_eq(read->id, plan->id);
    char *again = plan_encode(read, graph);
    ck_assert_str_eq(again, text);
    free(text);
    free(again);
    plan_destroy(plan);
    plan_destroy(read);
}
END_TEST

/* Two stages: 2 devices with weights, and 1. */
#define HEAD "\"apiVersion\": \"gimbal/v1\", \"kind\": \"Plan\", \"id\": \"p-1\", "
#define COUNTS "\"micro_batches\": 2, \"micro_batch_samples\": 4, \"schedule\": \"1f1b\", "
#define FIRST                                                                                      \
    "{\"axes\": [2], \"layers\": [0, 2], \"weights\": [3, 1], \"devices\": [\"a\", \"b\"]}"
#define SECOND "{\"axes\": [], \"layers\": [2, 4]}"
#define STAGES "\"stages\": [" FIRST ", " SECOND "], "
#define ON_FIRST "{\"stage\": 0, \"roles\": [\"batch\"], \"zero\": 1}"
#define ON_SECOND "{\"stage\": 1, \"roles\": []}"
#define BLOCKS                                                                                     \
    "\"blocks\": [" ON_FIRST ", " ON_FIRST ", " ON_FIRST ", " ON_SECOND ", " ON_SECOND             \
    ", " ON_SECOND "]"

START_TEST(a_plan_needs_no_prediction_to_be_read)
{
    struct plan *plan;
    struct error err;
    int rc = plan_decode("{" HEAD COUNTS STAGES BLOCKS "}", &plan, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_msg(plan_check(plan, graph, &err) == 0, "%s", err.text);
    ck_assert_double_eq(plan->predicted.step_time_s, 0);
    ck_assert_str_eq(plan_device(plan, 1), "b");
    ck_assert_ptr_null(plan_device(plan, 2));
    plan_destroy(plan);
}
END_TEST

/* What is wrong with a text, and the words that say so. */
static const struct {
    const char *part, *instead, *words;
} refused[] = {
    {"{" HEAD, "{" HEAD "]", "plan, line 1"},
    {"\"Plan\"", "\"Plot\"", "kind 'Plot'; wants gimbal/v1, Plan"},
    {"\"stages\"", "\"stage\"", "wants apiVersion, kind, stages and blocks"},
    {"\"p-1\"", "\"p-0123456789abcdef\"", "id has more than 15 bytes"},
    {"\"1f1b\"", "\"zigzag\"", "unknown schedule 'zigzag'; known: 1f1b, gpipe"},
    {"\"1f1b\"", "7", "unknown schedule '(no text)'"},
    {"\"1f1b\"", "\"1f1b\", \"overlap\": 1", "overlap is neither true nor false"},
    {"es\": 2", "es\": 0", "micro_batches is not a whole number from 1 to 65536"},
    {"es\": 2", "es\": -2", "micro_batches is not a whole number from 1 to 65536"},
    {"es\": 2", "es\": 4294967298", "micro_batches is not a whole number from 1 to 65536"},
    {"es\": 4", "es\": 0.5", "micro_batch_samples is not a whole number"},
    {"es\": 4", "es\": 9223372036854775807", "micro_batch_samples is not a whole number"},
    {FIRST ", " SECOND, "", "a plan has 2 to 16384 blocks in stages of at least one"},
    {FIRST, "7", "stages[0]: wants axes and layers"},
    {"[2], ", "[1, 1, 1, 1, 1, 1, 2], ", "stages[0].axes: wants a list of at most 6 sizes"},
    {"[2], ", "[0], ", "stages[0].axes[0] is not a whole number from 1 to 65536"},
    {"[2], ", "[4294967298], ", "stages[0].axes[0] is not a whole number from 1 to 65536"},
    {"[2], ", "[65536, 65536], ", "stages[0].axes[1] is not a whole number from 1 to 1"},
    {"[2, 4]", "[4, 2]", "stages[1].layers: wants [first, end], whole numbers from 0 to 4"},
    {"[2, 4]", "[2, 5]", "stages[1].layers: wants [first, end]"},
    {"[2, 4]", "[2147483647, 2147483647]", "stages[1].layers: wants [first, end]"},
    {"[2, 4]", "[-1, 4]", "stages[1].layers: wants [first, end]"},
    {"[2, 4]", "{}", "stages[1].layers: wants [first, end]"},
    {"[3, 1]", "[3]", "stages[0].weights: wants 2 numbers"},
    {"[3, 1]", "[3, 0]", "stages[0].weights[1] is not a whole number from 1"},
    {"[3, 1]", "[3, 4294967297]", "stages[0].weights[1] is not a whole number from 1"},
    {"[\"a\", \"b\"]", "[\"a\"]", "stages[0].devices: wants 2 names, has 1"},
    {"[\"a\", \"b\"]", "\"ab\"", "stages[0].devices: wants 2 names"},
    {"[\"a\", \"b\"]", "[\"a\", 3]", "stages[0].devices[1] is not a name"},
    {"\"stage\": 1", "\"stage\": 2", "blocks[3].stage is not a whole number from 0 to 1"},
    {"\"stage\": 1", "\"stage\": -1", "blocks[3].stage is not a whole number from 0 to 1"},
    {"[\"batch\"]", "[]", "blocks[0].roles: wants one for each of 1 axes"},
    {"[\"batch\"]", "[\"bach\"]", "blocks[0].roles[0]: unknown role 'bach'; known: batch, tensor,"},
    {"[\"batch\"]", "[1]", "blocks[0].roles[0]: unknown role '(no text)'"},
    {"\"zero\": 1", "\"zero\": 4", "blocks[0].zero is not 0, 1, 2 or 3"},
    {"\"zero\": 1", "\"recompute\": \"all\"", "blocks[0].recompute is 'all'; none, selective and"},
    {"\"zero\": 1", "\"recompute\": 1", "blocks[0].recompute is '(no text)'"},
    {"]}]}", "]}], \"predicted\": {\"bubble\": \"big\"}}", "predicted: what is told there"},
};

START_TEST(a_text_that_is_no_plan_is_refused_in_words)
{
    const char *whole = "{" HEAD COUNTS STAGES BLOCKS "}", *part = refused[_i].part;
    const char *at = strstr(whole, part);
    struct plan *plan = NULL;
    struct error err;
    ck_assert_ptr_nonnull(at);
    char *text =
        xasprintf("%.*s%s%s", (int)(at - whole), whole, refused[_i].instead, at + strlen(part));
    ck_assert_int_eq(plan_decode(text, &plan, &err), -EINVAL);
    ck_assert_ptr_null(plan);
    ck_assert_msg(strstr(err.text, refused[_i].words) != NULL, "%s", err.text);
    free(text);
}
END_TEST

/* The text with one place of it written over or something put in; takes the text. */
static char *disturb(char *text, uint64_t seed, uint64_t change)
{
    static const char *const put[] = {"9", "0", "-", ".", "e", "99999999999", "null", "[]", "\""};
    size_t length = strlen(text), at = random_below(seed, 1, change, length);
    const char *in = put[random_below(seed, 2, change, sizeof put / sizeof *put)];
    bool over = random_below(seed, 3, change, 2) == 0;
    char *disturbed = xasprintf("%.*s%s%s", (int)at, text, in, text + at + over);
    free(text);
    return disturbed;
}

/* A text with something changed either is refused in words or is a plan to be checked, and what
 * passes the check lowers. */
START_TEST(a_disturbed_plan_is_refused_or_lowers)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    struct plan *plan = engine_plan_random(graph, seed, 6, 8);
    char *text = plan_encode(plan, graph);
    plan_destroy(plan);
    for (uint64_t change = random_below(seed, 4, 0, 3); change < 3; change++)
        text = disturb(text, seed, change);
    struct error err = {""};
    int rc = plan_decode(text, &plan, &err);
    if (rc == 0) {
        char line[64];
        ck_assert_ptr_nonnull(plan_print(line, sizeof line, plan));
        rc = plan_check(plan, graph, &err);
        if (rc == 0)
            hash_of(plan, plan_ranks(plan) - 1);
        plan_destroy(plan);
    }
    ck_assert_msg(rc == 0 || err.text[0], "an error without words for %s", text);
    free(text);
}
END_TEST

static struct plan *division(int size, const char *role)
{
    return engine_plan(graph, 1, &size, 1, &role, 1, 8, "1f1b");
}

static void check_refused(struct plan *plan, const char *words)
{
    struct error err = {""};
    ck_assert_int_eq(plan_check(plan, graph, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
    plan_destroy(plan);
}

START_TEST(what_does_not_divide_is_told_with_what_would)
{
    check_refused(division(3, "tensor"),
                  "heads 4 cannot be divided into 3 equal parts; 1, 2, 4 can");
    check_refused(division(5, "tensor"), "block layers.0: heads 4 cannot be divided into 5 equal "
                                         "parts; 1, 2, 4 can");
    check_refused(division(40, "tensor"), "block embed: vocab 37 cannot be divided into 40 parts");
    check_refused(division(7, "ulysses"), "seq 12 cannot be divided into 7 equal parts");
    check_refused(division(5, "hidden"), "hidden 24 cannot be divided into 5 equal parts");
    struct plan *plan = division(3, "batch"); /* samples may be cut anywhere */
    ck_assert_int_eq(plan_check(plan, graph, NULL), 0);
    plan_destroy(plan);
    plan = division(9, "batch"); /* a share may be empty */
    ck_assert_int_eq(plan_check(plan, graph, NULL), 0);
    plan_destroy(plan);
}
END_TEST

/* Lowering carries one tensor from block to block; what reads another one is not let through. */
START_TEST(a_block_that_reads_past_the_one_before_it_is_refused)
{
    struct graph *skipping = world_graph(4);
    const struct block *third = &skipping->blocks[3];
    int first = skipping->blocks[1].output;
    struct node *node = &skipping->nodes[third->node_first];
    struct plan *plan = engine_plan_one(skipping, 1, 4);
    struct program *program;
    struct error err;
    ck_assert_int_eq(plan_check(plan, skipping, &err), 0);
    node->operands[0] = first;
    ck_assert_int_eq(plan_check(plan, skipping, &err), -EINVAL);
    ck_assert_str_eq(err.text, "block layers.2: it reads layers.0.add2; a block reads what it made "
                               "itself, data, and the output of the block before it");
    ck_assert_int_eq(lower(skipping, plan, 0, &program, &err), -EINVAL);
    plan_destroy(plan);
    graph_destroy(skipping);
}
END_TEST

/* Each takes the graph apart in one place. */
static void read_data_alone(struct graph *of)
{
    struct node *node = &of->nodes[of->blocks[2].node_first];
    int tokens = 0, table = of->nodes[0].operands[1];
    while (of->tensors[tokens].kind != TENSOR_DATA || of->tensors[tokens].targets)
        tokens++;
    for (int n = 0; n < of->blocks[2].node_count; n++)
        for (int i = 0; i < node[n].operation->input_count; i++)
            if (node[n].operands[i] == of->blocks[1].output)
                node[n] = (struct node){.name = "embed",
                                        .operation = &operation_embed,
                                        .dims = {"bs", "vh", "bsh"},
                                        .constant = 1,
                                        .block = 2,
                                        .operands = {tokens, table, node[n].operands[2]}};
}

static void compute_nothing(struct graph *of)
{
    of->blocks[2].node_count = 0;
}

static void lose_last(struct graph *of)
{
    of->node_count--;
    of->blocks[of->block_count - 1].node_count--;
}

static const struct {
    void (*spoil)(struct graph *graph);
    const char *words;
} spoiled[] = {
    {read_data_alone, "block layers.1 computes nothing from layers.0.add2, the output of the block "
                      "before it"},
    {compute_nothing, "block layers.1 computes nothing"},
    {lose_last, "a model computes one loss, last of all; this one computes logits last"},
};

START_TEST(a_model_that_is_no_chain_to_a_loss_is_refused)
{
    struct graph *bad = world_graph(3);
    struct plan *plan = engine_plan_one(bad, 1, 4);
    struct error err = {""};
    spoiled[_i].spoil(bad);
    ck_assert_int_eq(plan_check(plan, bad, &err), -EINVAL);
    ck_assert_str_eq(err.text, spoiled[_i].words);
    plan_destroy(plan);
    graph_destroy(bad);
}
END_TEST

/* A vocabulary may be a prime; nothing else. */
START_TEST(a_prime_is_refused_at_once)
{
    struct job_model config = {.family = "gpt",
                               .layers = 1,
                               .hidden = 8,
                               .heads = 2,
                               .seq = 8,
                               .vocab = 16777213,
                               .ffn = 2147483647};
    struct graph *prime;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &prime, NULL), 0);
    struct plan *plan =
        engine_plan(prime, 1, (int[]){2}, 1, (const char *[]){"tensor"}, 1, 2, "1f1b");
    struct error err;
    ck_assert_int_eq(plan_check(plan, prime, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "ffn 2147483647 cannot be divided into 2"));
    plan_destroy(plan);
    graph_destroy(prime);
}
END_TEST

START_TEST(a_chain_with_a_gap_is_refused)
{
    struct plan *plan = engine_plan(graph, 2, NULL, 0, NULL, 2, 4, "1f1b");
    plan->stages[1].block_first++;
    check_refused(plan, "stage 1 begins with block 4, expected 3");
    plan = engine_plan(graph, 2, NULL, 0, NULL, 2, 4, "1f1b");
    plan->stages[1].block_count = INT_MAX;
    check_refused(plan, "stage 1 ends after the model's 6 blocks");
    plan = engine_plan(graph, 2, NULL, 0, NULL, 2, 4, "1f1b");
    plan->stages[0].block_count = 0;
    check_refused(plan, "stage 0 has no blocks");
    plan = engine_plan(graph, 2, NULL, 0, NULL, 2, 4, "1f1b");
    plan->blocks[4].stage = 0;
    check_refused(plan, "block 4 is in stage 1's range but names stage 0");
    plan = division(2, "batch");
    plan->blocks[2].roles[0] = NULL;
    check_refused(plan, "block layers.1 has no role for axis 0");
    plan = division(2, "batch");
    plan->blocks[2].zero = 4;
    check_refused(plan, "block layers.1: zero 4 is not offered; 0, 1, 2 and 3 are");
}
END_TEST

START_TEST(what_would_overflow_is_refused)
{
    struct plan *plan = division(2, "batch");
    plan->micro_batches = PLAN_MICRO_BATCHES_MAX + 1;
    check_refused(plan, "65537 micro-batches are too many");
    plan = division(2, "batch");
    plan->micro_batches = 2;
    plan->micro_batch_samples = INT64_MAX / 2;
    check_refused(plan, "a step has at most 1000000000 samples");
    check_refused(division(PLAN_RANKS_MAX + 1, "batch"), "for more than 65536 devices");
    check_refused(division(0, "batch"), "stage 0, axis 0: size 0 is below 1");
    plan = division(2, "batch");
    plan->stages[0].weights = xcalloc(2, sizeof(int));
    plan->stages[0].mesh.weights = plan->stages[0].weights;
    plan->stages[0].weights[0] = plan->stages[0].weights[1] = INT_MAX;
    check_refused(plan, "the weights of stage 0 add up to 4294967294");

    struct job_model huge = {.family = "gpt",
                             .layers = 1,
                             .hidden = 1048576,
                             .heads = 1,
                             .seq = 16777216,
                             .vocab = 16777216};
    struct graph *large;
    struct error err;
    ck_assert_int_eq(model_build(&huge, ELEMENT_F32, &large, NULL), 0);
    plan = engine_plan_one(large, 1, PLAN_SAMPLES_MAX);
    ck_assert_int_eq(plan_check(plan, large, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "block embed: a tensor (bs) of more than"));
    plan_destroy(plan);
    graph_destroy(large);
}
END_TEST

START_TEST(equal_weights_are_as_none)
{
    struct plan *plain = division(3, "batch"), *weighted = plan_copy(plain);
    struct plan_stage *stage = &weighted->stages[0];
    stage->weights = xcalloc(3, sizeof *stage->weights);
    for (int i = 0; i < 3; i++)
        stage->weights[i] = 7;
    stage->mesh.weights = stage->weights;
    for (int rank = 0; rank < 3; rank++)
        ck_assert_uint_eq(hash_of(plain, rank), hash_of(weighted, rank));
    stage->weights[0] = 1;
    ck_assert_uint_ne(hash_of(plain, 0), hash_of(weighted, 0));
    plan_destroy(plain);
    plan_destroy(weighted);
}
END_TEST

START_TEST(a_name_is_of_the_content_alone)
{
    struct plan *plan = division(2, "batch"), *copy;
    plan_name(plan);
    ck_assert_str_eq(plan->id, "p-fba7e5");
    copy = plan_copy(plan);
    copy->predicted.step_time_s = 1;
    plan_name(copy);
    ck_assert_str_eq(copy->id, plan->id);
    copy->blocks[1].zero = 1;
    plan_name(copy);
    ck_assert_str_ne(copy->id, plan->id);
    plan_destroy(copy);
    plan_destroy(plan);
}
END_TEST

static int by_name(const void *first, const void *second)
{
    const struct plan *const *a = first, *const *b = second;
    return strcmp((*a)->id, (*b)->id);
}

/* Of so many plans some have one name. */
#define NAMED 12000

START_TEST(plans_of_one_name_may_be_two)
{
    struct plan **plans = xcalloc(NAMED, sizeof *plans);
    int shared = 0;
    for (int i = 0; i < NAMED; i++) {
        plans[i] = division(2, "batch");
        plans[i]->micro_batches = 1 + i % 120;
        plans[i]->micro_batch_samples = 2 + i / 120;
        plan_name(plans[i]);
    }
    qsort(plans, NAMED, sizeof *plans, by_name);
    for (int i = 1; i < NAMED; i++) {
        shared += strcmp(plans[i]->id, plans[i - 1]->id) == 0;
        ck_assert(!plan_same(plans[i], plans[i - 1]));
    }
    ck_assert_int_gt(shared, 0);
    for (int i = 0; i < NAMED; i++)
        plan_destroy(plans[i]);
    free(plans);
}
END_TEST

START_TEST(a_plan_is_the_same_by_its_content_alone)
{
    struct plan *plan = engine_plan_random(graph, test_seed() + (uint64_t)_i, 8, 8), *other;
    char *text = plan_encode(plan, graph);
    ck_assert_int_eq(plan_decode(text, &other, NULL), 0);
    other->predicted.step_time_s = 1;
    plan_name(other);
    ck_assert(plan_same(plan, other));
    other->blocks[_i % other->block_count].zero ^= 1;
    ck_assert(!plan_same(plan, other));
    other->blocks[_i % other->block_count].zero ^= 1;
    other->stages[0].devices = xcalloc((size_t)plan_ranks(other), sizeof(char *));
    for (int rank = 0; rank < mesh_count(&other->stages[0].mesh); rank++)
        other->stages[0].devices[rank] = xstrdup("a/0");
    ck_assert(!plan_same(plan, other));
    free(text);
    plan_destroy(plan);
    plan_destroy(other);
}
END_TEST

START_TEST(a_plan_prints_as_one_line)
{
    char line[64], small[8];
    struct plan *plan =
        engine_plan(graph, 2, (int[]){2, 3}, 2, (const char *[]){"tensor", "batch"}, 4, 2, "gpipe");
    ck_assert_str_eq(plan_print(line, sizeof line, plan), "pp2·dp3·tp2 m4 gpipe");
    ck_assert_uint_lt(strlen(plan_print(small, sizeof small, plan)), sizeof small);
    plan_destroy(plan);
}
END_TEST

/* The lowest free slot, by trying each. */
START_TEST(the_first_schedule_needs_the_fewest_slots)
{
    struct event events[2 * 24];
    for (int stages = 1; stages <= 9; stages++)
        for (int stage = 0; stage < stages; stage++)
            for (int count = 1; count <= 24; count++) {
                int least = schedule_events(schedules[0], stage, stages, count, events);
                for (int i = 1; schedules[i]; i++)
                    ck_assert_int_le(least,
                                     schedule_events(schedules[i], stage, stages, count, events));
            }
}
END_TEST

START_TEST(slots_are_the_lowest_that_are_free)
{
    const struct schedule *schedule = schedules[_i % 2];
    int stages = 1 + _i / 2 % 4, count = 1 + _i / 8, stage = stages - 1 - _i % stages;
    struct event *events = xcalloc(2 * (size_t)count, sizeof *events);
    int *holder = xcalloc((size_t)count, sizeof *holder), most = 0; /* slot -> micro-batch + 1 */
    int slots = schedule_events(schedule, stage, stages, count, events);
    for (int i = 0; i < 2 * count; i++) {
        bool forward = events[i].direction == FORWARD;
        int wanted = forward ? 0 : events[i].micro_batch + 1, slot = 0;
        while (holder[slot] != wanted)
            slot++;
        ck_assert_int_eq(events[i].slot, slot);
        holder[slot] = forward ? events[i].micro_batch + 1 : 0;
        most = slot + 1 > most ? slot + 1 : most;
    }
    ck_assert_int_eq(slots, most);
    ck_assert_int_eq(schedule->in_flight(stage, stages, count), slots);
    ck_assert_int_ge(slots, schedule->in_flight(stages - 1, stages, count));
    free(holder);
    free(events);
}
END_TEST

SUITE(plan)
{
    TCase *text = tcase_create("text"), *check = tcase_create("check");
    tcase_add_unchecked_fixture(text, setup, teardown);
    tcase_add_unchecked_fixture(check, setup, teardown);
    tcase_set_timeout(text, 60);
    tcase_add_loop_test(text, a_plan_that_is_written_and_read_lowers_to_the_same_programs, 0,
                        test_share(12));
    tcase_add_test(text, a_plan_needs_no_prediction_to_be_read);
    tcase_add_loop_test(text, a_text_that_is_no_plan_is_refused_in_words, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_loop_test(text, a_disturbed_plan_is_refused_or_lowers, 0, test_share(200));
    tcase_add_test(check, what_does_not_divide_is_told_with_what_would);
    tcase_add_test(check, a_block_that_reads_past_the_one_before_it_is_refused);
    tcase_add_loop_test(check, a_model_that_is_no_chain_to_a_loss_is_refused, 0,
                        (int)(sizeof spoiled / sizeof *spoiled));
    tcase_add_test(check, a_prime_is_refused_at_once);
    tcase_add_test(check, a_chain_with_a_gap_is_refused);
    tcase_add_test(check, what_would_overflow_is_refused);
    tcase_add_test(check, equal_weights_are_as_none);
    tcase_add_test(check, a_name_is_of_the_content_alone);
    tcase_add_test(check, plans_of_one_name_may_be_two);
    tcase_add_loop_test(check, a_plan_is_the_same_by_its_content_alone, 0, 20);
    tcase_add_test(check, a_plan_prints_as_one_line);
    tcase_add_test(check, the_first_schedule_needs_the_fewest_slots);
    tcase_add_loop_test(check, slots_are_the_lowest_that_are_free, 0, 64);
    return suite_run("plan", text, check, NULL);
}
