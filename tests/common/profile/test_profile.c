/* test_profile.c - what instructions cost under a profile, and profiles as text. */
#include "common/base/memory.h"
#include "common/models/model.h"
#include "common/profile/profile.h"
#include "tests/common/program/world.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct profile measured = {
    .rates = {{"fc1", ELEMENT_F32, {1e-6, 2e-6}, {1e-10, 2e-10}, {3e-10, 4e-10}},
              {"norm", ELEMENT_F32, {3e-6, 0}, {0, 4e-9}},
              {"fc1", ELEMENT_BF16, {5e-6, 6e-6}, {3e-12, 4e-12}}},
    .rate_count = 3,
    .seconds_per_flop = 1.5e-11,
    .seconds_per_flop_bf16 = 2e-12,
    .seconds_per_byte = 2.5e-10,
    .overhead_s = 4e-6,
    .host = {1e-5, 1e-9},
    .network = {5e-5, 8e-9},
    .network_cards = 2,
    .overlap = 1.25,
};

/* Four devices, tensor-parallel, in two stages. */
static struct world two_stages_of(enum element element)
{
    struct graph *graph = world_graph(2);
    graph->element_bytes = (int)element_size(element);
    return world_create(
        graph, engine_plan(graph, 2, (int[]){4}, 1, (const char *[]){"tensor"}, 2, 4, "1f1b"));
}

static void check_near(double value, double wanted)
{
    ck_assert_msg(fabs(value - wanted) <= 1e-12 * fabs(wanted), "%g, not %g", value, wanted);
}

static struct world two_stages(void)
{
    return two_stages_of(ELEMENT_F32);
}

/* Calls with every instruction of every rank; returns how many were looked at. */
static int for_each(const struct world *world, enum instruction_kind kind,
                    void (*check)(const struct program *, const struct instruction *))
{
    int count = 0;
    for (int rank = 0; rank < world->ranks; rank++) {
        const struct program *program = world->programs[rank];
        for (size_t i = 0; i < program->instruction_count; i++)
            if (program->instructions[i].kind == kind) {
                check(program, &program->instructions[i]);
                count++;
            }
    }
    return count;
}

static double seconds(const struct program *program, const struct instruction *instruction)
{
    return profile_seconds(&measured, &measured.network, program, instruction);
}

/* In bf16 only the first product was measured on its own. */
static void check_kernel(const struct program *program, const struct instruction *instruction)
{
    const char *name = instruction_name(program, instruction);
    enum direction direction = instruction->kernel.direction;
    bool narrow = program->graph->element_bytes == 2;
    double flops = instruction_flops(program, instruction);
    double bytes = instruction_bytes(program, instruction);
    const struct profile_rate *rate = strcmp(name, "norm") == 0  ? &measured.rates[1]
                                      : strcmp(name, "fc1") != 0 ? NULL
                                      : narrow                   ? &measured.rates[2]
                                                                 : &measured.rates[0];
    if (rate) {
        check_near(seconds(program, instruction), rate->fixed_s[direction] +
                                                      flops * rate->seconds_per_flop[direction] +
                                                      bytes * rate->seconds_per_byte[direction]);
        return;
    }
    double compute = flops * (narrow ? measured.seconds_per_flop_bf16 : measured.seconds_per_flop),
           memory = bytes * measured.seconds_per_byte;
    check_near(seconds(program, instruction),
               measured.overhead_s + (compute > memory ? compute : memory));
}

START_TEST(a_kernel_takes_its_measured_rate_or_the_roofline)
{
    struct world world = two_stages_of((enum element)_i);
    ck_assert_int_gt(for_each(&world, INSTRUCTION_KERNEL, check_kernel), 0);
    world_destroy(&world);
}
END_TEST

static const struct profile likes = {
    .rates = {{"query", ELEMENT_F32, {1e-6, 2e-6}, {1e-10, 2e-10}},
              {"keyvalue", ELEMENT_F32, {3e-6, 4e-6}, {3e-10, 4e-10}},
              {"rmsnorm", ELEMENT_F32, {5e-6, 6e-6}, {5e-10, 6e-10}},
              {"key_norm", ELEMENT_F32, {7e-6, 8e-6}, {7e-10, 8e-10}}},
    .rate_count = 4,
};

static int likes_seen;

/* Of the norms of heads only that of keys was measured itself; the other is a root mean square,
 * too. */
static void check_like(const struct program *program, const struct instruction *instruction)
{
    static const struct {
        const char *name;
        int rate;
    } rows[] = {{"query", 0}, {"keyvalue", 1}, {"query_norm", 2}, {"key_norm", 3}};
    const char *name = instruction_name(program, instruction);
    enum direction direction = instruction->kernel.direction;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct profile_rate *rate = &likes.rates[rows[i].rate];
        if (strcmp(rows[i].name, name) != 0)
            continue;
        check_near(profile_seconds(&likes, NULL, program, instruction),
                   rate->fixed_s[direction] +
                       instruction_flops(program, instruction) * rate->seconds_per_flop[direction]);
        likes_seen++;
    }
}

START_TEST(what_was_not_measured_is_priced_as_its_operation)
{
    static const char *const families[] = {"qwen", "qwen3"};
    struct job_model config = {.family = families[_i],
                               .layers = 1,
                               .hidden = 32,
                               .heads = 4,
                               .seq = 8,
                               .vocab = 40,
                               .kv_heads = 2};
    struct graph *graph;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    struct world world = world_create(graph, engine_plan_one(graph, 1, 4));
    for_each(&world, INSTRUCTION_KERNEL, check_like);
    ck_assert_int_gt(likes_seen, 3);
    world_destroy(&world);
}
END_TEST

/* Of n elements among p: a ring has 2 (p - 1) steps in which each sends n / p, and a tree 2 log p
 * in which each sends all. */
static void check_all_reduce(const struct program *program, const struct instruction *instruction)
{
    const struct group *group = &program->groups[instruction->collective.group];
    double elements = (double)box_count(&program_pieces(program, instruction)->box);
    double p = group->count;
    ck_assert_int_eq(instruction->collective.kind, COLLECTIVE_ALL_REDUCE);
    if (fmod(elements, p) != 0)
        return; /* the loss and the norm: chunks differ by one element */
    double all_s = elements * ELEMENT_BYTES * measured.network.seconds_per_byte;
    check_near(seconds(program, instruction),
               fmin(2 * (p - 1) * (measured.network.latency_s + all_s / p),
                    2 * (ceil(log2(p)) * measured.network.latency_s + all_s)));
}

START_TEST(an_all_reduce_takes_the_steps_and_bytes_of_a_ring_or_a_tree)
{
    struct world world = two_stages();
    ck_assert_int_gt(for_each(&world, INSTRUCTION_COLLECTIVE, check_all_reduce), 0);
    world_destroy(&world);
}
END_TEST

static void check_receive(const struct program *program, const struct instruction *instruction)
{
    double elements = (double)box_count(&program_pieces(program, instruction)->box);
    check_near(seconds(program, instruction),
               measured.network.latency_s +
                   elements * ELEMENT_BYTES * measured.network.seconds_per_byte);
}

static void check_free(const struct program *program, const struct instruction *instruction)
{
    ck_assert_double_eq(seconds(program, instruction), 0);
}

START_TEST(a_message_costs_its_receiver_alone)
{
    struct world world = two_stages();
    ck_assert_int_gt(for_each(&world, INSTRUCTION_RECEIVE, check_receive), 0);
    ck_assert_int_gt(for_each(&world, INSTRUCTION_SEND, check_free), 0);
    ck_assert_int_gt(for_each(&world, INSTRUCTION_WAIT, check_free), 0);
    world_destroy(&world);
}
END_TEST

static void check_link(const struct hardware_link *link, const struct hardware_link *wanted)
{
    ck_assert_double_eq_tol(link->latency_s, wanted->latency_s, 1e-5 * wanted->latency_s);
    ck_assert_double_eq_tol(link->seconds_per_byte, wanted->seconds_per_byte,
                            1e-5 * wanted->seconds_per_byte);
}

START_TEST(a_profile_that_is_written_and_read_is_the_same)
{
    struct profile read;
    struct error err;
    char *text = profile_encode(&measured);
    ck_assert_msg(profile_decode(text, &read, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(read.rate_count, measured.rate_count);
    for (size_t i = 0; i < read.rate_count; i++) {
        const struct profile_rate *rate = &read.rates[i], *wanted = &measured.rates[i];
        ck_assert_str_eq(rate->operation, wanted->operation);
        ck_assert_int_eq(rate->element, wanted->element);
        for (int d = 0; d < DIRECTIONS; d++) {
            ck_assert_double_eq_tol(rate->fixed_s[d], wanted->fixed_s[d], 1e-11);
            ck_assert_double_eq_tol(rate->seconds_per_flop[d], wanted->seconds_per_flop[d], 1e-14);
            ck_assert_double_eq_tol(rate->seconds_per_byte[d], wanted->seconds_per_byte[d], 1e-14);
        }
    }
    ck_assert_double_eq_tol(read.seconds_per_flop, measured.seconds_per_flop, 1e-16);
    ck_assert_double_eq_tol(read.seconds_per_flop_bf16, measured.seconds_per_flop_bf16, 1e-17);
    ck_assert_double_eq_tol(read.seconds_per_byte, measured.seconds_per_byte, 1e-15);
    ck_assert_double_eq_tol(read.overhead_s, measured.overhead_s, 1e-11);
    check_link(&read.host, &measured.host);
    check_link(&read.network, &measured.network);
    ck_assert_double_eq(read.overlap, measured.overlap);
    ck_assert_double_eq(read.network_cards, measured.network_cards);
    char *again = profile_encode(&read);
    ck_assert_str_eq(again, text);
    free(again);
    free(text);
}
END_TEST

START_TEST(peak_rates_are_reached_in_part)
{
    struct profile profile = profile_analytic(1e12, 1e11, 0.5, measured.host, measured.network);
    check_near(profile.seconds_per_flop, 2e-12);
    check_near(profile.seconds_per_byte, 2e-11);
    ck_assert_uint_eq(profile.rate_count, 0);
    ck_assert_double_eq(profile.overlap, PROFILE_OVERLAP);
}
END_TEST

#define LINKS                                                                                      \
    "\"host\": {\"latency_s\": 0, \"seconds_per_byte\": 0}, "                                      \
    "\"network\": {\"latency_s\": 0, \"seconds_per_byte\": 1e-9}"
#define TIMES "\"seconds_per_flop\": 1e-11, \"seconds_per_byte\": 1e-10, \"overhead_s\": 0, "
static const struct {
    const char *text, *words;
} refused[] = {
    {"", "profile: "},
    {"{\"rates\": {}}", "profile: "},
    {"{\"rates\": 3, " TIMES LINKS "}", "profile: rates has to be an object"},
    {"{\"rates\": {}, " TIMES TIMES LINKS "}", "profile: duplicate"},
    {"{\"rates\": {\"fc1\": [1, 2]}, " TIMES LINKS "}", "profile: rates.fc1 is not a fixed time"},
    {"{\"rates\": {\"fc1\": [[0, -1], [0, 0]]}, " TIMES LINKS "}",
     "profile: rates.fc1 is not a fixed time"},
    {"{\"rates\": {\"fc1\": [[0, 1, 0], [0, 0, -1]]}, " TIMES LINKS "}",
     "profile: rates.fc1 is not a fixed time"},
    {"{\"rates\": {\"fc1\": [[0, 1, 0, 0], [0, 0, 0, 0]]}, " TIMES LINKS "}",
     "profile: rates.fc1 is not a fixed time"},
    {"{\"rates\": {\"fc1\": [[0, 1, 0], [0, 0, 0], [0, 0, 0]]}, " TIMES LINKS "}",
     "profile: rates.fc1 is not a fixed time"},
    {"{\"rates\": {\"an operation with a very long name\": [[0, 1], [0, 0]]}, " TIMES LINKS "}",
     "profile: too many or too long names"},
    {"{\"rates\": {}, \"seconds_per_flop\": -1, \"seconds_per_byte\": 0, \"overhead_s\": 0, " LINKS
     "}",
     "profile: seconds_per_flop is -1; it cannot be negative"},
    {"{\"rates\": {}, " TIMES "\"host\": {\"latency_s\": 0, \"seconds_per_byte\": 0}, "
     "\"network\": {\"latency_s\": -2, \"seconds_per_byte\": 0}}",
     "profile: network.latency_s is -2"},
    {"{\"rates\": {}, \"seconds_per_flop\": NaN, \"seconds_per_byte\": 0, \"overhead_s\": 0, " LINKS
     "}",
     "profile: "},
    {"{\"rates\": {}, \"seconds_per_flop\": 1e999, \"seconds_per_byte\": 0, \"overhead_s\": "
     "0, " LINKS "}",
     "profile: "},
    {"{\"rates\": {}, " TIMES LINKS ", \"overlap\": 0.9}",
     "profile: overlap is 0.9; a factor from 1 to 2 is right"},
    {"{\"rates\": {}, " TIMES LINKS ", \"overlap\": true}", "profile: "},
    {"{\"rates\": {}, " TIMES LINKS ", \"bf16\": {\"rates\": {}, \"seconds_per_flop\": -1}}",
     "profile: bf16.seconds_per_flop is -1"},
    {"{\"rates\": {}, " TIMES LINKS ", \"bf16\": {\"rates\": 1, \"seconds_per_flop\": 1}}",
     "profile: rates has to be an object"},
};

START_TEST(a_text_that_is_no_profile_is_refused_in_words)
{
    struct profile profile = {.overhead_s = 7};
    struct error err;
    ck_assert_int_eq(profile_decode(refused[_i].text, &profile, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, refused[_i].words) != NULL, "%s", err.text);
    ck_assert_double_eq(profile.overhead_s, 7); /* written on success only */
}
END_TEST

/* As they were written before there was a time per byte. */
START_TEST(rates_without_a_time_per_byte_are_read)
{
    struct profile profile;
    struct error err;
    int rc = profile_decode(
        "{\"rates\": {\"fc1\": [[1e-6, 1e-10], [2e-6, 2e-10]]}, " TIMES LINKS "}", &profile, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_uint_eq(profile.rate_count, 1);
    ck_assert_double_eq(profile.rates[0].seconds_per_flop[BACKWARD], 2e-10);
    ck_assert_double_eq(profile.rates[0].seconds_per_byte[BACKWARD], 0);
}
END_TEST

START_TEST(a_profile_may_know_no_rates)
{
    struct profile profile;
    struct error err;
    int rc = profile_decode("{\"rates\": {}, " TIMES LINKS "}", &profile, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_uint_eq(profile.rate_count, 0);
    ck_assert_double_eq(profile.overlap, PROFILE_OVERLAP);
}
END_TEST

SUITE(profile)
{
    TCase *price = tcase_create("price"), *text = tcase_create("text");
    tcase_add_loop_test(price, a_kernel_takes_its_measured_rate_or_the_roofline, 0, ELEMENTS);
    tcase_add_loop_test(price, what_was_not_measured_is_priced_as_its_operation, 0, 2);
    tcase_add_test(price, an_all_reduce_takes_the_steps_and_bytes_of_a_ring_or_a_tree);
    tcase_add_test(price, a_message_costs_its_receiver_alone);
    tcase_add_test(price, peak_rates_are_reached_in_part);
    tcase_add_test(text, a_profile_that_is_written_and_read_is_the_same);
    tcase_add_test(text, rates_without_a_time_per_byte_are_read);
    tcase_add_test(text, a_profile_may_know_no_rates);
    tcase_add_loop_test(text, a_text_that_is_no_profile_is_refused_in_words, 0,
                        (int)(sizeof refused / sizeof *refused));
    return suite_run("profile", price, text, NULL);
}
