/* test_resident.c - what a plan saves, processes do not have: their resident memory, as the kernel
 * counts it, is smaller by what the reservation is. */
#include "common/program/lower.h"
#include "tests/cluster/house.h"
#include "tests/support/engine.h"
#include "tests/support/suite.h"

#include <check.h>

#define RANKS 2
#define STEPS 4
#define LOOKED 3 /* behind the third step all has been touched */
#define TOLERANCE 0.1

static const struct job_model model = {
    .family = "gpt", .layers = 8, .hidden = 256, .heads = 4, .seq = 128, .vocab = 256};

struct sizes_of {
    double reserved, resident; /* bytes, of rank 0 */
};

static struct sizes_of train(int zero, enum recompute recompute)
{
    struct executor_job job;
    struct program *program;
    struct house house = {.epoch = 1, .looked = LOOKED};
    executor_job_make_of(&job, STEPS, &model);
    struct graph *graph = executor_job_graph(&job);
    struct plan *plan =
        engine_plan(graph, 1, (int[]){RANKS}, 1, (const char *[]){"batch"}, 1, 8, "1f1b");
    for (int b = 0; b < plan->block_count; b++) {
        plan->blocks[b].zero = zero;
        plan->blocks[b].recompute = recompute;
    }
    ck_assert_int_eq(lower(graph, plan, 0, &program, NULL), 0);
    house_assign(&house, &job, plan, 0);
    house_serve(&house, -1, 0);
    house_finish(&house, true);
    ck_assert_int_eq(house.seen.steps, STEPS);
    struct sizes_of sizes = {(double)program_bytes(program), (double)house.resident_bytes[0]};
    program_destroy(program);
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
    return sizes;
}

START_TEST(full_recomputation_and_zero_3_lower_what_is_resident)
{
    struct sizes_of all = train(0, RECOMPUTE_NONE), least = train(3, RECOMPUTE_FULL);
    double reserved = all.reserved - least.reserved, resident = all.resident - least.resident;
    ck_assert_msg(all.resident >= all.reserved, "%g bytes resident of %g reserved", all.resident,
                  all.reserved);
    ck_assert_double_lt(least.reserved, 0.5 * all.reserved);
    ck_assert_msg(resident >= (1 - TOLERANCE) * reserved && resident <= (1 + TOLERANCE) * reserved,
                  "the reservation is smaller by %g bytes, what is resident by %g", reserved,
                  resident);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("resident");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, full_recomputation_and_zero_3_lower_what_is_resident);
    return suite_run("resident", tcase, NULL);
}
