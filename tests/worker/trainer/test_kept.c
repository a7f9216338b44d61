/* test_kept.c - nodes are lost one after the other, each before the job has got over the one
 * before: what the others keep from epoch to epoch is all that there was. Ranks are threads. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/trainer/trainer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODES 3
#define STEPS 2 /* that the first epoch finishes */

static char path[] = "/tmp/gimbal-kept-XXXXXX";
static struct job_config *job;
static struct graph *graph;
static struct data_source *data;
static struct kept kept[NODES];

/* An epoch over some of the nodes, a stage on each; it ends behind so many steps, or before the
 * first one. */
struct epoch {
    uint64_t number;
    int nodes[NODES], count;
    uint64_t last;
    struct beginning begun[NODES]; /* of each rank */
    uint64_t steps[NODES];
};

struct told {
    struct epoch *epoch;
    int rank;
};

static void setup(void)
{
    const struct update_rule rule = {0};
    char text[512];
    struct error err = {""};
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    for (int i = 0; i < 500; i++)
        ck_assert_int_gt(dprintf(fd, "%d bottles of beer\n", i), 0);
    close(fd);
    snprintf(text, sizeof text,
             "apiVersion: gimbal/v1\nname: bottles\n"
             "model: {family: gpt, layers: 3, hidden: 16, heads: 2, seq: 8}\n"
             "data: {text: ['%s']}\n"
             "train: {steps: 9, global_batch: 4, lr: 3.0e-3}\n"
             "elastic: {copy_every: 1}\n",
             path);
    int rc = job_config_parse(text, strlen(text), "job", &job, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    const struct model_config config = model_config_of(job);
    rc = model_build(&config, &graph, &err);
    if (rc == 0)
        rc = data_open(job, &data, &err);
    for (int node = 0; node < NODES && rc == 0; node++)
        rc = kept_open(&kept[node], -1, &rule, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
}

static void teardown(void)
{
    for (int node = 0; node < NODES; node++)
        kept_close(&kept[node]);
    data_close(data);
    graph_destroy(graph);
    job_config_destroy(job);
    unlink(path);
}

static void on_begun(void *context, int rank, const struct beginning *beginning)
{
    const struct told *told = context;
    told->epoch->begun[rank] = *beginning;
}

static int on_ready(void *context, int rank, uint64_t hash, struct error *err)
{
    const struct told *told = context;
    (void)rank, (void)hash;
    return told->epoch->last > 0 ? 0 : error_set(err, -ECONNRESET, "another rank is lost");
}

static void on_step(void *context, int rank, uint64_t step, const struct step_result *result,
                    double seconds)
{
    const struct told *told = context;
    (void)result, (void)seconds;
    told->epoch->steps[rank] = step;
}

static bool is_over(void *context)
{
    const struct told *told = context;
    return told->epoch->steps[told->rank] >= told->epoch->last;
}

static void train(struct test_rank *rank)
{
    static const char *const names[NODES] = {"a", "b", "c"};
    struct epoch *epoch = rank->argument;
    struct told told = {epoch, rank->rank};
    const struct reporter reporter = {.context = &told,
                                      .begun = on_begun,
                                      .ready = on_ready,
                                      .step = on_step,
                                      .is_over = is_over};
    struct plan *plan = engine_plan(graph, epoch->count, (int[]){1}, 0, NULL, 1, 4, "1f1b");
    const char *nodes[NODES];
    for (int i = 0; i < epoch->count; i++)
        nodes[i] = names[epoch->nodes[i]];
    const struct trainer_config config = {
        .job = job,
        .graph = graph,
        .plan = plan,
        .rank = rank->rank,
        .device = &device_plain,
        .collectives = rank->library,
        .fabric = epoch->count > 1 ? rank->fabric : NULL,
        .program_collectives = rank->library,
        .program_fabric = epoch->count > 1 ? rank->fabric : NULL,
        .data = data,
        .reporter = &reporter,
        .epoch = epoch->number,
        .copy_every = 1,
        .kept = &kept[epoch->nodes[rank->rank]],
        .nodes = nodes,
    };
    struct error err = {""};
    int rc = trainer_run(&config, &err);
    ck_assert_msg(rc == -ECONNRESET || rc == -ECANCELED, "rank %d: %d: %s", rank->rank, rc,
                  err.text);
    plan_destroy(plan);
}

static void run(struct epoch *epoch)
{
    test_ranks_run(&collectives_local, epoch->count, 20, train, epoch);
}

static void check_begun(const struct epoch *epoch)
{
    for (int rank = 0; rank < epoch->count; rank++) {
        ck_assert_int_eq(epoch->begun[rank].source, MOVE_MEMORY);
        ck_assert_uint_eq(epoch->begun[rank].step, STEPS);
    }
}

/* Node c is lost, whose stage only a has a copy of; then a is, with that copy, when it has given
 * its part to b and has not come into a step. */
START_TEST(what_was_moved_is_kept_before_the_first_step)
{
    struct epoch whole = {.number = 1, .nodes = {0, 1, 2}, .count = 3, .last = STEPS};
    struct epoch without_c = {.number = 2, .nodes = {0, 1}, .count = 2};
    struct epoch alone = {.number = 3, .nodes = {1}, .count = 1};
    run(&whole);
    run(&without_c);
    check_begun(&without_c);
    run(&alone);
    check_begun(&alone);
}
END_TEST

/* Only until then: a step that is finished is all that is needed. */
START_TEST(older_states_go_behind_the_first_step)
{
    struct epoch whole = {.number = 1, .nodes = {0, 1, 2}, .count = 3, .last = STEPS};
    struct epoch without_c = {.number = 2, .nodes = {0, 1}, .count = 2, .last = STEPS + 1};
    run(&whole);
    run(&without_c);
    for (int node = 0; node < 2; node++) {
        ck_assert_uint_eq(kept[node].count, 1);
        ck_assert_uint_eq(kept[node].epochs[0].number, 2);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("kept");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_was_moved_is_kept_before_the_first_step);
    tcase_add_test(tcase, older_states_go_behind_the_first_step);
    return suite_run("kept", tcase, NULL);
}
