/* test_explain.c - what is explained adds up to what was predicted; and what is wished for is what
 * is planned with. */
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/explain.h"
#include "coordinator/planner/wish.h"
#include "tests/coordinator/planner/instances.h"
#include "tests/support/suite.h"

#include "tests/support/counts.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double total(const struct explain_seconds *seconds)
{
    return seconds->compute + seconds->host + seconds->network;
}

/* Of one stage, all that is told of it. */
struct sums {
    double micro_batch_s, bytes_sent;
    uint64_t bytes;
};

static void add(struct sums *sums, const struct explained *it)
{
    sums->micro_batch_s += total(&it->forward) + total(&it->backward);
    sums->bytes_sent += it->host_bytes + it->network_bytes;
    sums->bytes += it->state_bytes + it->saved_bytes;
}

static void check_stage(const struct planner_request *request, const struct plan *plan,
                        const struct explanation *explanation, int stage)
{
    struct sums sums = {.bytes = explanation->other_bytes[stage]};
    struct program *program;
    struct error err;
    add(&sums, &explanation->rest[stage]);
    for (int b = 0; b < plan->block_count; b++)
        if (plan->blocks[b].stage == stage)
            add(&sums, &explanation->blocks[b]);
    ck_assert_int_eq(lower(request->graph, plan, explanation->ranks[stage], &program, &err), 0);
    ck_assert_double_eq_tol(sums.micro_batch_s, plan->stages[stage].time_s,
                            1e-9 * plan->stages[stage].time_s);
    ck_assert_double_eq(sums.bytes_sent, (double)count_words(program) * ELEMENT_BYTES);
    /* Buffers do not overlap, and lie aligned: the reservation is a little larger. */
    ck_assert_uint_le(sums.bytes, program_bytes(program));
    ck_assert_uint_le(program_bytes(program) - sums.bytes,
                      64 * (program->buffer_count * (uint64_t)program->slots + 4));
    program_destroy(program);
}

START_TEST(what_is_explained_adds_up_to_what_was_predicted)
{
    struct drawn drawn;
    struct planner_result result;
    drawn_init(&drawn, test_seed() + (uint64_t)_i);
    free(drawn.job->plan.search);
    drawn.job->plan.search = xstrdup("uniform");
    int rc = planner_run(&drawn.request, &result, NULL);
    ck_assert(rc == 0 || rc == -ENOSPC || rc == -EINVAL);
    for (size_t i = 0; i < result.count && i < 6; i++) {
        struct plan *plan = result.candidates[i].plan;
        struct explanation explanation;
        ck_assert_int_eq(explain_plan(&drawn.request, plan, &explanation, NULL), 0);
        for (int stage = 0; stage < plan->stage_count; stage++)
            check_stage(&drawn.request, plan, &explanation, stage);
        explanation_finish(&explanation);
    }
    candidates_finish(&result);
    drawn_finish(&drawn);
}
END_TEST

/* The three cases of the formula, whatever the order of the sizes. */
START_TEST(the_least_of_a_product_is_as_worked_out)
{
    /* 4 <= 64 / 8: (512 + 256) / 4 + 32 - (512 + 256 + 32) / 4, three quarters of the smallest. */
    ck_assert_double_eq_tol(matmul_bound(64, 8, 4, 4), 24, 1e-9);
    /* 4 <= 16 x 16 / 16: 256 / 4 + 2 sqrt(16 x 16 x 16 / 4) - (256 + 64 + 64) / 4. */
    ck_assert_double_eq_tol(matmul_bound(16, 4, 16, 4), 64 + 64 - 96, 1e-9);
    /* 3 (512 / 8)^(2/3) - 3 x 64 / 8. */
    ck_assert_double_eq_tol(matmul_bound(8, 8, 8, 8), 48 - 24, 1e-9);
    ck_assert_double_eq_tol(matmul_bound(4, 64, 8, 4), matmul_bound(64, 8, 4, 4), 1e-9);
    ck_assert_double_eq(matmul_bound(64, 8, 4, 1), 0);
}
END_TEST

START_TEST(the_largest_part_is_the_bound)
{
    ck_assert_str_eq(explain_bound(&(struct explain_seconds){3, 2, 1}), "compute");
    ck_assert_str_eq(explain_bound(&(struct explain_seconds){1, 3, 2}), "host links");
    ck_assert_str_eq(explain_bound(&(struct explain_seconds){1, 2, 3}), "network");
}
END_TEST

static const struct hardware_link link = {1e-6, 1e-9};

START_TEST(wishes_change_devices_and_nothing_else)
{
    struct profile profile = profile_analytic(1e9, 1e9, 1, link, link);
    const struct planner_device devices[] = {
        {"a/0", "a", 100, &profile}, {"b/0", "b", 100, &profile}, {"b/1", "b", 100, &profile}};
    struct wished wished;
    struct error err;
    wished_init(&wished, devices, 3);
    ck_assert_int_eq(wished_link(&wished, "b", 2, &err), 0);
    ck_assert_ptr_eq(wished.devices[0].profile, &profile);
    ck_assert_ptr_eq(wished.devices[1].profile, wished.devices[2].profile); /* alike as before */
    ck_assert_double_eq(wished.devices[1].profile->network.seconds_per_byte, 0.5e-9);
    ck_assert_double_eq(wished.devices[1].profile->host.seconds_per_byte, 1e-9);
    ck_assert_double_eq(profile.network.seconds_per_byte, 1e-9);
    ck_assert_int_eq(wished_link(&wished, "host", 4, &err), 0);
    ck_assert_double_eq(wished.devices[0].profile->host.seconds_per_byte, 0.25e-9);
    ck_assert_int_eq(wished_add(&wished, 3, &err), 0);
    ck_assert_uint_eq(wished.count, 6);
    ck_assert_str_eq(wished.devices[4].name, "added-0/1");
    ck_assert_str_eq(wished.devices[4].host, wished.devices[3].host);
    ck_assert_str_eq(wished.devices[5].name, "added-1/0");
    wished_memory(&wished, 7);
    ck_assert_uint_eq(wished.devices[5].memory_bytes, 7);
    ck_assert_uint_eq(devices[0].memory_bytes, 100);
    ck_assert_int_eq(wished_link(&wished, "c", 2, &err), -EINVAL);
    ck_assert_str_eq(err.text, "link 'c' is neither host nor network, nor the name of a node");
    wished_finish(&wished);
}
END_TEST

START_TEST(nothing_is_added_over_a_network_that_nobody_told_of)
{
    struct profile profile = profile_analytic(1e9, 1e9, 1, link, (struct hardware_link){0, 0});
    const struct planner_device device = {"a/0", "a", 100, &profile};
    struct wished wished;
    struct error err;
    wished_init(&wished, &device, 1);
    ck_assert_int_eq(wished_add(&wished, 1, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "write links.network"));
    wished_finish(&wished);
}
END_TEST

START_TEST(pins_are_written_as_in_a_table)
{
    struct job_plan plan = {0};
    struct error err;
    ck_assert_int_eq(wish_pin(&plan, "tp=8", &err), 0);
    ck_assert_int_eq(wish_pin(&plan, "zero=2", &err), 0);
    ck_assert_int_eq(plan.pin.tp, 8);
    ck_assert_uint_eq(plan.forbid.zero, 0xb);
    static const char *const wrong[] = {"tp", "tp=", "tp=0", "tp=8x", "zero=4", "sp=2", "t=1", ""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(wish_pin(&plan, wrong[i], &err), -EINVAL);
    ck_assert_int_eq(plan.pin.tp, 8);
}
END_TEST

SUITE(explain)
{
    TCase *explain = tcase_create("explain"), *wish = tcase_create("wish");
    tcase_set_timeout(explain, 60);
    tcase_add_loop_test(explain, what_is_explained_adds_up_to_what_was_predicted, 0,
                        test_share(40));
    tcase_add_test(explain, the_least_of_a_product_is_as_worked_out);
    tcase_add_test(explain, the_largest_part_is_the_bound);
    tcase_add_test(wish, wishes_change_devices_and_nothing_else);
    tcase_add_test(wish, nothing_is_added_over_a_network_that_nobody_told_of);
    tcase_add_test(wish, pins_are_written_as_in_a_table);
    return suite_run("explain", explain, wish, NULL);
}
