/* test_pricing.c - what leaves a host at one time shares its network cards. */
#include "common/models/model.h"
#include "common/program/lower.h"
#include "coordinator/planner/costs/pricing.h"
#include "tests/support/suite.h"

#include <math.h>
#include <string.h>

#define DEVICES 8

static struct graph *graph;
static struct profile profile;
static struct planner_device machines[DEVICES];
static struct job_config job;
static struct planner_request request;

static void open_request(void)
{
    struct job_model config = {
        .family = "gpt", .layers = 2, .hidden = 32, .heads = 8, .seq = 16, .vocab = 64};
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, NULL), 0);
    /* Without latency times are bytes, and may be divided by each other. */
    const struct hardware_link host = {0, 1e-10}, network = {0, 1e-8};
    profile = profile_analytic(1e9, 2e9, 0.5, host, network);
    for (int i = 0; i < DEVICES; i++)
        machines[i] =
            (struct planner_device){"device", i < DEVICES / 2 ? "a" : "b", 1 << 30, &profile, 0};
    request = (struct planner_request){graph, &job, machines, DEVICES};
}

static void close_request(void)
{
    graph_destroy(graph);
}

/* Of one micro-batch; every stage on as many devices, which are one axis. */
static struct plan *make_plan(int stages)
{
    struct plan *plan = plan_create(stages, (int)graph->block_count);
    int each = plan->block_count / stages;
    plan->schedule = schedule_find("1f1b");
    plan->micro_batches = 1;
    plan->micro_batch_samples = DEVICES;
    for (int i = 0; i < stages; i++) {
        struct plan_stage *stage = &plan->stages[i];
        stage->mesh = (struct mesh){.axes = 1, .size = {DEVICES / stages}};
        stage->block_first = i * each;
        stage->block_count = i + 1 < stages ? each : plan->block_count - i * each;
        for (int b = stage->block_first; b < stage->block_first + stage->block_count; b++) {
            plan->blocks[b].stage = i;
            plan->blocks[b].roles[0] = role_find("batch");
        }
    }
    return plan;
}

/* Of a collective how many ranks meet; of a message 0. */
static int members_of(const struct program *program, const struct instruction *instruction)
{
    return instruction->kind == INSTRUCTION_COLLECTIVE
               ? program->groups[instruction->collective.group].count
               : 0;
}

/* Seconds of what a rank exchanges with other hosts in groups of so many, if hosts have so many
 * cards. */
static double network_seconds(const struct plan *plan, int rank, int members, double cards)
{
    struct pricing pricing = pricing_plain(&request);
    struct program *program;
    struct error err;
    double seconds = 0;
    profile.network_cards = cards;
    int rc = lower(graph, plan, rank, &program, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        bool moves =
            instruction->kind == INSTRUCTION_COLLECTIVE || instruction->kind == INSTRUCTION_RECEIVE;
        if (moves && members_of(program, instruction) == members &&
            !pricing_on_one_host(&pricing, program, instruction))
            seconds += pricing_seconds(&pricing, program, instruction);
    }
    program_destroy(program);
    return seconds;
}

static void expect(struct plan *plan, int rank, int members, double cards, double factor)
{
    double alone = network_seconds(plan, rank, members, 0),
           shared = network_seconds(plan, rank, members, cards);
    ck_assert_double_gt(alone, 0);
    ck_assert_msg(fabs(shared - factor * alone) < 1e-9 * alone,
                  "rank %d, %g cards: %g s, alone %g s: %g times, not %g", rank, cards, shared,
                  alone, shared / alone, factor);
}

START_TEST(groups_beside_each_other_share_the_cards)
{
    /* Four groups of two, each with one device of both hosts. */
    struct plan *plan = make_plan(1);
    plan->stages[0].mesh = (struct mesh){.axes = 2, .size = {DEVICES / 2, 2}};
    for (int b = 0; b < plan->block_count; b++) {
        plan->blocks[b].roles[0] = role_find("tensor");
        plan->blocks[b].roles[1] = role_find("batch");
    }
    for (int rank = 0; rank < DEVICES; rank++) {
        expect(plan, rank, 2, 1, 4);
        expect(plan, rank, 2, 2, 2);
        expect(plan, rank, 2, 4, 1);
        expect(plan, rank, 2, 8, 1);
    }
    plan_destroy(plan);
}
END_TEST

START_TEST(a_ring_through_all_devices_leaves_a_host_once)
{
    struct plan *plan = make_plan(1);
    expect(plan, 3, DEVICES, 1, 1);
    plan_destroy(plan);
}
END_TEST

START_TEST(messages_of_a_stage_share_the_cards)
{
    struct plan *plan = make_plan(2);
    expect(plan, 0, 0, 1, 4); /* gradients come back to all four at once */
    expect(plan, DEVICES - 1, 0, 2, 2);
    plan_destroy(plan);
}
END_TEST

START_TEST(an_all_to_all_leaves_a_host_from_each_of_its_members)
{
    struct plan *plan = make_plan(1);
    plan->blocks[1].roles[0] = role_find("ulysses");
    struct pricing pricing = pricing_plain(&request);
    struct program *program;
    ck_assert_int_eq(lower(graph, plan, 0, &program, NULL), 0);
    int found = 0;
    for (size_t i = 0; i < program->instruction_count; i++) {
        const struct instruction *instruction = &program->instructions[i];
        if (instruction->kind != INSTRUCTION_COLLECTIVE ||
            instruction->collective.kind != COLLECTIVE_ALL_TO_ALL)
            continue;
        profile.network_cards = 0;
        double alone = pricing_seconds(&pricing, program, instruction);
        profile.network_cards = 1;
        double shared = pricing_seconds(&pricing, program, instruction);
        /* Four members send four sevenths of their words to the other host. */
        ck_assert_double_eq_tol(shared / alone, 4.0 * 4 / 7, 1e-9);
        found++;
    }
    ck_assert_int_gt(found, 0);
    program_destroy(program);
    plan_destroy(plan);
}
END_TEST

/* A letter for the host of each device. */
static const struct {
    const char *hosts;
    int share;
} rows[] = {
    {"a", 1},      {"aa", 2},    {"ab", 1},   {"aabb", 2},  {"abcd", 1},
    {"aaabbb", 3}, {"aab", 0},   {"abb", 0},  {"aabbc", 0}, {"aabc", 0},
    {"abbc", 0},   {"aaabb", 0}, {"aaab", 0}, {"abbb", 0},  {"aabbbb", 0},
};

START_TEST(hosts_share_alike_or_not)
{
    char names[8][2] = {""};
    struct planner_device devices[8] = {0};
    int count = (int)strlen(rows[_i].hosts);
    for (int i = 0; i < count; i++) {
        names[i][0] = rows[_i].hosts[i];
        devices[i].host = names[i];
    }
    ck_assert_msg(hosts_share(devices, count) == rows[_i].share, "%s: %d", rows[_i].hosts,
                  hosts_share(devices, count));
}
END_TEST

SUITE(pricing)
{
    TCase *tcase = tcase_create("pricing"), *hosts = tcase_create("hosts");
    tcase_add_unchecked_fixture(tcase, open_request, close_request);
    tcase_add_test(tcase, groups_beside_each_other_share_the_cards);
    tcase_add_test(tcase, a_ring_through_all_devices_leaves_a_host_once);
    tcase_add_test(tcase, messages_of_a_stage_share_the_cards);
    tcase_add_test(tcase, an_all_to_all_leaves_a_host_from_each_of_its_members);
    tcase_add_loop_test(hosts, hosts_share_alike_or_not, 0, sizeof rows / sizeof *rows);
    return suite_run("pricing", tcase, hosts, NULL);
}
