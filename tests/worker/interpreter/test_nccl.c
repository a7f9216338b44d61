/* test_nccl.c - training under random plans where ranks exchange data by NCCL, issued to their
 * streams: as over the other libraries; and what becomes of the others when one rank leaves, or
 * stays away. Device and NCCL are emulated, ranks are threads. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "tests/worker/interpreter/agreement.h"
#include "worker/collectives/nccl_network.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 4

static const struct job_model config = {
    .family = "gpt", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48};

static struct graph *graph;
static struct engine_result one;

static void setup(void)
{
    struct error err = {""};
    ck_assert_msg(model_build(&config, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    struct plan *plan = engine_plan_one(graph, 1, 8);
    struct engine_options options = {.steps = STEPS, .ignored = 0.2};
    ck_assert_msg(engine_run(graph, plan, &options, &one, &err) == 0, "%s", err.text);
    plan_destroy(plan);
}

static void teardown(void)
{
    engine_result_finish(&one);
    graph_destroy(graph);
}

/* Takes the plan. */
static void check_plan(struct plan *plan, const char *name)
{
    struct engine_options options = {.device = &device_cuda,
                                     .collectives = &collectives_nccl,
                                     .steps = STEPS,
                                     .ignored = 0.2,
                                     .poison = true};
    struct engine_result result;
    agreement_check("gpt", graph, plan, &options, &one, name, &result);
    engine_result_finish(&result);
    plan_destroy(plan);
}

START_TEST(a_model_trains_under_every_role)
{
    const char *names[] = {roles[_i]->name, "batch"};
    check_plan(engine_plan(graph, 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b"), names[0]);
}
END_TEST

START_TEST(a_model_trains_under_random_plans)
{
    uint64_t seed = test_seed() + (uint64_t)_i;
    char name[32];
    snprintf(name, sizeof name, "seed %lu", (unsigned long)seed);
    check_plan(engine_plan_random(graph, seed, 4, 8), name);
}
END_TEST

/* ---- messages that cross ---- */

#define WORDS 8

static void run_crossing(struct test_rank *rank)
{
    const struct accelerator *accelerator = device_cuda.accelerator;
    const float sent[WORDS] = {(float)rank->rank + 1};
    float received[WORDS] = {0};
    int peer = 1 - rank->rank;
    struct fabric_request *request;
    struct device_stream *lane;
    void *memory;
    struct error err = {""};
    for (int from = 0; from < 2; from++)
        ck_assert_int_eq(rank->library->channel(rank->fabric, from, 1 - from, 0, &err), 0);
    ck_assert_int_eq(accelerator->stream_open(&lane, false, &err), 0);
    ck_assert_int_eq(accelerator->reserve(2 * sizeof sent, &memory, &err), 0);
    float *here = memory;
    accelerator->enter(lane);
    accelerator->upload(here, sent, sizeof sent);
    int rc = rank->library->send(rank->fabric, peer, 0, ELEMENT_F32, here, WORDS, &request, &err);
    if (rc == 0)
        rc = rank->library->receive(rank->fabric, peer, 0, ELEMENT_F32, here + WORDS, WORDS, &err);
    accelerator->download(received, here + WORDS, sizeof received);
    if (rc == 0)
        rc = accelerator->finish(&err);
    ck_assert_msg(rc == 0 && rank->library->check(rank->fabric, &err) == 0, "%s", err.text);
    ck_assert(received[0] == (float)peer + 1);
    pthread_barrier_wait(rank->barrier);
    accelerator->enter(NULL);
    accelerator->stream_close(lane);
    accelerator->release(memory);
}

/* Both send before they receive: nobody's host waits until the other has come for the message, not
 * even for the first one, which connects them. */
START_TEST(first_messages_may_cross)
{
    test_ranks_run_on(device_cuda.accelerator, &collectives_nccl, 2, 20, run_crossing, NULL);
}
END_TEST

static void run_exchange(struct test_rank *rank)
{
    const struct accelerator *accelerator = device_cuda.accelerator;
    const size_t counts[2] = {1, 1};
    struct fabric_group *group;
    struct device_stream *lane;
    void *memory;
    struct error err = {""};
    ck_assert_int_eq(rank->library->group(rank->fabric, (int[]){0, 1}, 2, &group, &err), 0);
    ck_assert_int_eq(rank->library->acquaint(group, &err), 0);
    ck_assert_int_eq(accelerator->stream_open(&lane, false, &err), 0);
    ck_assert_int_eq(accelerator->reserve(4 * sizeof(float), &memory, &err), 0);
    float *here = memory;
    accelerator->enter(lane);
    for (int turn = 0; turn < 2; turn++) {
        if (rank->rank == turn)
            ck_assert_int_eq(
                rank->library->all_to_all(group, ELEMENT_F32, here, counts, here + 2, counts, &err),
                0);
        pthread_barrier_wait(rank->barrier);
    }
    ck_assert_int_eq(accelerator->finish(&err), 0);
    accelerator->enter(NULL);
    accelerator->stream_close(lane);
    accelerator->release(memory);
}

/* One issues it, and only then the other. */
START_TEST(members_who_are_acquainted_exchange_without_waiting_for_each_other)
{
    test_ranks_run_on(device_cuda.accelerator, &collectives_nccl, 2, 2, run_exchange, NULL);
}
END_TEST

#define GROUPS_MAX 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fabric_group *acquainted[GROUPS_MAX];
static int acquaintances, exchanges;

static int acquaint_noted(struct fabric_group *group, struct error *err)
{
    pthread_mutex_lock(&lock);
    ck_assert_int_lt(acquaintances, GROUPS_MAX);
    acquainted[acquaintances++] = group;
    pthread_mutex_unlock(&lock);
    return collectives_nccl.acquaint(group, err);
}

static int all_to_all_noted(struct fabric_group *group, enum element element, const void *source,
                            const size_t *sends, void *destination, const size_t *receives,
                            struct error *err)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < acquaintances && acquainted[i] != group)
        i++;
    ck_assert_int_lt(i, acquaintances);
    exchanges++;
    pthread_mutex_unlock(&lock);
    return collectives_nccl.all_to_all(group, element, source, sends, destination, receives, err);
}

START_TEST(who_is_to_exchange_is_acquainted_before)
{
    struct collectives noted = collectives_nccl;
    struct engine_result result;
    struct engine_options options = {
        .device = &device_cuda, .collectives = &noted, .steps = 1, .ignored = 0.2};
    noted.acquaint = acquaint_noted;
    noted.all_to_all = all_to_all_noted;
    for (int role = 0; role < 6; role++) {
        const char *names[] = {roles[role]->name, "batch"};
        struct plan *plan = engine_plan(graph, 1, (int[]){2, 2}, 2, names, 2, 4, "1f1b");
        struct error err = {""};
        acquaintances = 0;
        ck_assert_msg(engine_run(graph, plan, &options, &result, &err) == 0, "%s", err.text);
        engine_result_finish(&result);
        plan_destroy(plan);
    }
    ck_assert_int_gt(exchanges, 0);
}
END_TEST

/* ---- the network ---- */

START_TEST(an_address_has_its_interface)
{
    struct error err = {""};
    char name[16];
    ck_assert_int_eq(nccl_interface_find("127.0.0.1", name, sizeof name, &err), 0);
    ck_assert_str_eq(name, "lo");
    ck_assert_int_eq(nccl_interface_find("192.0.2.1", name, sizeof name, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "192.0.2.1"));
    ck_assert_int_eq(nccl_interface_find("no.such.host.invalid", name, sizeof name, &err), -EINVAL);
    ck_assert_int_eq(nccl_interface_find("127.0.0.1", name, 2, &err), -ENAMETOOLONG);
}
END_TEST

/* ---- one rank is lost ---- */

#define ELEMENTS 100

struct loss {
    void (*lose)(struct test_rank *rank);
    int rc; /* that one of the others has to hear; whoever is later may hear that it has left */
    double seconds;
    atomic_int heard;
};

/* What a rank hears of an exchange that never ends. */
static int exchange(struct test_rank *rank, struct error *err)
{
    const struct accelerator *accelerator = device_cuda.accelerator;
    struct fabric_group *group;
    struct device_stream *lane;
    void *data;
    ck_assert_int_eq(rank->library->group(rank->fabric, (int[]){0, 1, 2}, 3, &group, err), 0);
    pthread_barrier_wait(rank->barrier); /* all have joined */
    if (rank->rank == 2)
        return 0;
    ck_assert_int_eq(accelerator->stream_open(&lane, false, err), 0);
    ck_assert_int_eq(accelerator->reserve(ELEMENTS * sizeof(float), &data, err), 0);
    accelerator->enter(lane);
    int rc = rank->library->all_reduce(group, ELEMENT_F32, data, ELEMENTS, REDUCTION_SUM, err);
    if (rc == 0)
        rc = accelerator->finish(err);
    if (rc == 0)
        rc = rank->library->check(rank->fabric, err);
    accelerator->enter(NULL);
    accelerator->stream_close(lane);
    accelerator->release(data);
    return rc;
}

static void run_losing(struct test_rank *rank)
{
    struct loss *loss = rank->argument;
    struct error err = {""};
    int rc = exchange(rank, &err);
    if (rank->rank == 2)
        loss->lose(rank);
    else
        ck_assert_msg(rc == loss->rc || rc == -ECONNRESET, "rank %d: %d, %s", rank->rank, rc,
                      err.text);
    loss->heard += rank->rank != 2 && rc == loss->rc;
    pthread_barrier_wait(rank->barrier);
}

static void leave(struct test_rank *rank)
{
    rank->library->abort(rank->fabric);
}

static void stay_away(struct test_rank *rank)
{
    (void)rank;
}

/* As when it is killed: the network tells. */
START_TEST(a_rank_that_leaves_is_noticed)
{
    struct loss loss = {leave, -ECONNRESET, 20, 0};
    test_ranks_run_on(device_cuda.accelerator, &collectives_nccl, 3, loss.seconds, run_losing,
                      &loss);
}
END_TEST

/* Nobody tells: the limit does. */
START_TEST(a_rank_that_stays_away_is_waited_for_until_the_limit)
{
    struct loss loss = {stay_away, -ETIMEDOUT, 0.3, 0};
    test_ranks_run_on(device_cuda.accelerator, &collectives_nccl, 3, loss.seconds, run_losing,
                      &loss);
    ck_assert_int_ge(loss.heard, 1);
}
END_TEST

static void abort_before(struct test_rank *rank)
{
    struct fabric_group *group;
    struct error err;
    ck_assert_int_eq(rank->library->group(rank->fabric, (int[]){0, 1, 2}, 3, &group, &err), 0);
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 2)
        rank->library->abort(rank->fabric);
    pthread_barrier_wait(rank->barrier); /* the others do nothing until it has returned */
}

/* What NCCL does then may have to wait for them. */
START_TEST(an_abort_returns_before_the_others_have_heard_of_it)
{
    setenv("EMULATED_QUIET", "1", 1);
    test_ranks_run_on(device_cuda.accelerator, &collectives_nccl, 3, 20, abort_before, NULL);
}
END_TEST

/* A fabric that has failed is over; the same threads make another one, as in the next epoch. */
START_TEST(a_new_fabric_follows_one_that_failed)
{
    struct loss loss = {leave, -ECONNRESET, 20, 0};
    test_ranks_run_on(device_cuda.accelerator, &collectives_nccl, 3, loss.seconds, run_losing,
                      &loss);
    check_plan(engine_plan_random(graph, test_seed(), 4, 8), "after a failure");
}
END_TEST

SUITE(nccl)
{
    TCase *tcase = tcase_create("nccl");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    suite_add_rows(tcase, a_model_trains_under_every_role, 6);
    tcase_add_loop_test(tcase, a_model_trains_under_random_plans, 0, test_share(4));
    tcase_add_test(tcase, first_messages_may_cross);
    tcase_add_test(tcase, members_who_are_acquainted_exchange_without_waiting_for_each_other);
    tcase_add_test(tcase, who_is_to_exchange_is_acquainted_before);
    tcase_add_test(tcase, an_address_has_its_interface);
    tcase_add_test(tcase, a_rank_that_leaves_is_noticed);
    tcase_add_test(tcase, a_rank_that_stays_away_is_waited_for_until_the_limit);
    tcase_add_test(tcase, an_abort_returns_before_the_others_have_heard_of_it);
    tcase_add_test(tcase, a_new_fabric_follows_one_that_failed);
    return suite_run("nccl", tcase, NULL);
}
