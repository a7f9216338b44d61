/* test_kept.c - nodes are lost one after the other, each before the job has got over the one
 * before: what the others keep from epoch to epoch is all that there was. And copies are made
 * beside the next step, which is not applied without them. Ranks are threads. */
#include "common/models/model.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "worker/trainer/trainer.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODES 3
#define STEPS 2                   /* that the first epoch finishes */
#define COPY UINT32_C(0xffffff10) /* the tag of copies, in worker/move/move.h */

static char path[] = "/tmp/gimbal-kept-XXXXXX";
static struct job_config *job;
static struct graph *graph;
static struct data_source *data;
static struct kept kept[NODES];

/* An epoch over some of the nodes, a stage on each; it ends behind so many steps, or before the
 * first one, if it is not broken before. */
struct epoch {
    uint64_t number;
    int nodes[NODES], count;
    uint64_t last;
    bool broken;
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
    rc = model_build(&job->model, job->train.dtype, &graph, &err);
    if (rc == 0)
        rc = data_open(job, 0, &data, &err);
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

/* What rank 0 sends to its neighbour, rank 1: the second is the copy of the first step. */
static atomic_int copies_sent;
/* What rank 1 sends to rank 2, and has sent when it had done its first step. */
static int outputs_sent, outputs_of_step;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sent = PTHREAD_COND_INITIALIZER;

static void on_step(void *context, int rank, uint64_t step, const struct step_result *result,
                    double seconds)
{
    const struct told *told = context;
    (void)result, (void)seconds;
    told->epoch->steps[rank] = step;
    pthread_mutex_lock(&lock);
    if (rank == 1 && step == 1)
        outputs_of_step = outputs_sent;
    pthread_mutex_unlock(&lock);
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
    bool ends = rc == -ECONNRESET || rc == -ECANCELED;
    if (epoch->broken && rank->rank == 0)
        ends = rc == -EIO && strstr(err.text, "copy the state of step 1: a broken card");
    ck_assert_msg(ends, "rank %d: %d: %s", rank->rank, rc, err.text);
    plan_destroy(plan);
}

static void run_over(const struct collectives *library, struct epoch *epoch)
{
    test_ranks_run(library, epoch->count, 20, train, epoch);
}

static void run(struct epoch *epoch)
{
    run_over(&collectives_local, epoch);
}

static void check_begun(const struct epoch *epoch, uint64_t step)
{
    for (int rank = 0; rank < epoch->count; rank++) {
        ck_assert_int_eq(epoch->begun[rank].source, MOVE_MEMORY);
        ck_assert_uint_eq(epoch->begun[rank].step, step);
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
    check_begun(&without_c, STEPS);
    run(&alone);
    check_begun(&alone, STEPS);
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

/* ---- copies beside a step ---- */

static bool is_copy_of_first_step(int peer, uint32_t tag)
{
    return tag == COPY && peer == 1 && atomic_fetch_add(&copies_sent, 1) == 1;
}

/* Only once the step behind it is under way. */
static int send_late(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                     const void *source, size_t count, struct fabric_request **out,
                     struct error *err)
{
    bool waits = is_copy_of_first_step(peer, tag);
    pthread_mutex_lock(&lock);
    outputs_sent += tag != COPY && peer == 2;
    pthread_cond_broadcast(&sent);
    while (waits && (outputs_of_step == 0 || outputs_sent == outputs_of_step))
        pthread_cond_wait(&sent, &lock);
    pthread_mutex_unlock(&lock);
    return collectives_local.send(fabric, peer, tag, element, source, count, out, err);
}

static int send_unless_copy(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                            const void *source, size_t count, struct fabric_request **out,
                            struct error *err)
{
    if (is_copy_of_first_step(peer, tag))
        return error_set(err, -EIO, "a broken card");
    return collectives_local.send(fabric, peer, tag, element, source, count, out, err);
}

/* The library with another way to send. */
static struct collectives sending(int (*send)(struct fabric *, int, uint32_t, enum element,
                                              const void *, size_t, struct fabric_request **,
                                              struct error *))
{
    struct collectives library = collectives_local;
    library.send = send;
    atomic_store(&copies_sent, 0);
    outputs_sent = outputs_of_step = 0;
    return library;
}

START_TEST(a_step_runs_beside_the_copies_of_the_one_before)
{
    const struct collectives late = sending(send_late);
    struct epoch whole = {.number = 1, .nodes = {0, 1, 2}, .count = 3, .last = STEPS};
    struct epoch without_c = {.number = 2, .nodes = {0, 1}, .count = 2};
    run_over(&late, &whole);
    ck_assert_int_ge(copies_sent, 3);
    run(&without_c);
    check_begun(&without_c, STEPS);
}
END_TEST

/* Not even those that have theirs. */
START_TEST(no_rank_applies_a_step_before_all_have_their_copies)
{
    const struct collectives broken = sending(send_unless_copy);
    struct epoch whole = {
        .number = 1, .nodes = {0, 1, 2}, .count = 3, .last = STEPS, .broken = true};
    struct epoch again = {.number = 2, .nodes = {0, 1, 2}, .count = 3};
    run_over(&broken, &whole);
    for (int rank = 0; rank < NODES; rank++)
        ck_assert_uint_eq(whole.steps[rank], 1);
    run(&again);
    check_begun(&again, 1);
}
END_TEST

SUITE(kept)
{
    TCase *tcase = tcase_create("kept");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, what_was_moved_is_kept_before_the_first_step);
    tcase_add_test(tcase, older_states_go_behind_the_first_step);
    tcase_add_test(tcase, a_step_runs_beside_the_copies_of_the_one_before);
    tcase_add_test(tcase, no_rank_applies_a_step_before_all_have_their_copies);
    return suite_run("kept", tcase, NULL);
}
