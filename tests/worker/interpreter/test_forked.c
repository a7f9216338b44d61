/* test_forked.c - ranks that are processes, as executors are, train as one rank of plain C does:
 * under every role and random plans, sharing the device over NCCL, or over Gloo where there is
 * none. And what is wrong with one of them is said. */
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "tests/worker/interpreter/small_families.h"
#include "worker/kernels/devices.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int open_fn(int rank, const struct device **device, const struct collectives **collectives,
                    struct error *err);

static struct graph *graphs[FAMILIES];
static struct engine_result ones[FAMILIES];
static open_fn *open_rank;

/* As if each was on a host of its own: NCCL refuses two ranks on one device. */
static int open_cuda(int rank, const struct device **device, const struct collectives **collectives,
                     struct error *err)
{
    const void *library = NULL;
    char host[16];
    snprintf(host, sizeof host, "host-%d", rank);
    setenv("NCCL_HOSTID", host, 1);
    setenv("NCCL_DEBUG", "WARN", 0);
    /* What is loaded later may wait for an exchange, and that for a peer that does the same. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    int rc = device_open("cuda", device, err);
    if (rc == 0)
        rc = module_load((*device)->collectives, "collectives_nccl", &library, err);
    *collectives = library;
    return rc;
}

static int open_plain(int rank, const struct device **device,
                      const struct collectives **collectives, struct error *err)
{
    (void)rank;
    *device = &device_plain;
    *collectives = collectives_find("gloo");
    return *collectives ? 0 : error_set(err, -ENOTSUP, "this build has no Gloo");
}

/* In a process of its own, since whoever has spoken to the device must not fork. */
static int probe(int rank, void *context)
{
    (void)rank;
    (void)context;
    return families_cuda() ? 0 : -ENODEV;
}

static void setup(void)
{
    struct error err = {""};
    open_rank = test_processes_run(1, 60, probe, NULL, &err) == 0 ? open_cuda : open_plain;
    families_build(ELEMENT_F32, graphs);
    families_train(graphs, ones);
}

static void teardown(void)
{
    families_forget(ones);
    families_finish(graphs);
}

/* Takes the plan. */
static void check_plan(int model, struct plan *plan, const char *name)
{
    struct engine_options options = {
        .open = open_rank, .steps = FAMILIES_STEPS, .ignored = FAMILIES_IGNORED, .poison = true};
    struct engine_result result;
    agreement_check(families[model].family, graphs[model], plan, &options, &ones[model], name,
                    &result);
    engine_result_finish(&result);
    plan_destroy(plan);
}

START_TEST(two_processes_train_under_every_role)
{
    int model = _i % FAMILIES;
    const char *name = roles[_i]->name;
    check_plan(model,
               engine_plan(graphs[model], 1, (int[]){2}, 1, &name, 2, FAMILIES_SAMPLES / 2, "1f1b"),
               name);
}
END_TEST

START_TEST(four_processes_train_under_every_role)
{
    int model = (_i + _i / 6) % FAMILIES; /* another one each time that a role comes again */
    const char *names[] = {roles[_i % 6]->name, "batch"};
    check_plan(
        model,
        engine_plan(graphs[model], 1, (int[]){2, 2}, 2, names, 2, FAMILIES_SAMPLES / 2, "1f1b"),
        names[0]);
}
END_TEST

START_TEST(processes_train_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    int model = _i % FAMILIES;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(model, engine_plan_random(graphs[model], seed, 4, FAMILIES_SAMPLES), name);
}
END_TEST

/* ---- one of them fails ---- */

static int open_or_refuse(int rank, const struct device **device,
                          const struct collectives **collectives, struct error *err)
{
    return rank == 1 ? error_set(err, -ENODEV, "rank 1 has no device")
                     : open_plain(rank, device, collectives, err);
}

static int open_or_die(int rank, const struct device **device,
                       const struct collectives **collectives, struct error *err)
{
    if (rank == 1)
        raise(SIGKILL);
    return open_plain(rank, device, collectives, err);
}

static void check_failure(open_fn *open, int right, const char *words)
{
    const char *batch = "batch";
    struct plan *plan = engine_plan(graphs[0], 1, (int[]){2}, 1, &batch, 1, 4, "1f1b");
    struct engine_options options = {.open = open, .steps = 1};
    struct engine_result result;
    struct error err = {""};
    ck_assert_int_eq(engine_run(graphs[0], plan, &options, &result, &err), right);
    ck_assert_msg(strstr(err.text, words), "'%s'", err.text);
    engine_result_finish(&result);
    plan_destroy(plan);
}

START_TEST(what_a_process_says_is_heard)
{
    check_failure(open_or_refuse, -ENODEV, "rank 1 has no device");
}
END_TEST

START_TEST(a_process_that_dies_is_noticed)
{
    check_failure(open_or_die, -ECHILD, "the process of rank 1 was ended by signal 9");
}
END_TEST

static int stop(int rank, void *context)
{
    (void)rank;
    (void)context;
    return raise(SIGSTOP);
}

START_TEST(processes_that_hang_are_killed)
{
    struct error err = {""};
    ck_assert_int_eq(test_processes_run(2, 0.1, stop, NULL, &err), -ETIMEDOUT);
    ck_assert_msg(strstr(err.text, "rank 0 has not ended in time"), "'%s'", err.text);
}
END_TEST

SUITE(forked)
{
    TCase *tcase = tcase_create("forked");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, two_processes_train_under_every_role, 0, 6);
    tcase_add_loop_test(tcase, processes_train_under_random_plans, 0, test_share(4));
    tcase_add_loop_test(tcase, four_processes_train_under_every_role, 0, test_share(6 * FAMILIES));
    tcase_add_test(tcase, what_a_process_says_is_heard);
    tcase_add_test(tcase, a_process_that_dies_is_noticed);
    tcase_add_test(tcase, processes_that_hang_are_killed);
    return suite_run("forked", tcase, NULL);
}
