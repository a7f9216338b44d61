/* test_spoiled.c - real processes: the weights of a running job are spoiled, as a bit that flips
 * or a learning rate that is too large would do it, so that no step is finite any more. The job
 * goes back to its newest checkpoint and ends where nobody had disturbed it, or it has failed, in
 * words. */
#include "tests/cluster/pair.h"
#include "tests/support/suite.h"
#include "worker/estate/estate.h"
#include "worker/node/child.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define STEPS 600

static struct command events;

static void setup(void)
{
    pair_start();
}

static void spoil_holding(struct holding *holding)
{
    size_t count;
    const struct share *shares = holding_shares(holding, &count);
    for (size_t i = 0; i < count; i++) {
        float *weights = (float *)(void *)(holding_memory(holding) + shares[i].master);
        for (int64_t j = 0; j < box_count(&shares[i].box); j++)
            weights[j] = NAN;
    }
    holding_close(holding);
}

/* In the memory of the rank on the first node, while it runs. Its jobs make no copies: to open an
 * estate gives back what is not whole, as a copy is not while it is written. */
static void spoil(void)
{
    char path[64];
    struct estate *estate;
    struct error err;
    struct holding *holdings[HOLDINGS_MAX];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)command_child(pair.workers[0].pid),
             INHERITED_STATE);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_msg(fd >= 0, "%s", path);
    ck_assert_int_eq(estate_open(fd, &estate, &err), 0);
    int count = estate_take(estate, holdings, &err);
    ck_assert_int_gt(count, 0);
    for (int i = 0; i < count; i++)
        spoil_holding(holdings[i]);
    estate_close(estate);
}

/* On held-out text, behind the last step. */
static double final_loss(void)
{
    int status = command_finish(&events);
    ck_assert_msg(status == 0, "%d: %s", status, command_last(&events));
    const char *at = strstr(events.out, "\"event\":\"evaluation\"");
    ck_assert_ptr_nonnull(at);
    while (at > events.out && at[-1] != '\n')
        at--;
    json_t *json = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL);
    double loss = json_number_value(json_object_get(json_object_get(json, "more"), "loss"));
    json_decref(json);
    return loss;
}

static void begin(int steps, const char *more)
{
    pair_write_job(steps, "eval: {every: %d, holdout: 0.1}\n%s", steps, more);
    pair_submit(&events);
}

START_TEST(a_spoiled_state_is_left_for_the_newest_checkpoint)
{
    char checkpoints[160];
    snprintf(checkpoints, sizeof checkpoints,
             "checkpoint: {dir: '%s', every: 20}\nelastic: {copy_every: 0}\n", pair.dir);
    begin(STEPS, checkpoints);
    double undisturbed = final_loss();
    begin(STEPS, checkpoints);
    pair_await(&events, "\"event\":\"checkpoint\"");
    spoil();
    pair_await(&events, "had a finite loss and gradient (elastic.max_skipped)");
    pair_await(&events, "\"event\":\"job-replanned\"");
    pair_await(&events, "from the disk");
    ck_assert_double_eq_tol(final_loss(), undisturbed, 1e-6);
}
END_TEST

START_TEST(without_a_checkpoint_the_job_has_failed)
{
    begin(PAIR_ENDLESS, "elastic: {max_skipped: 3, copy_every: 0}\n");
    pair_await(&events, "\"event\":\"step\"");
    spoil();
    ck_assert_int_eq(command_finish(&events), 1);
    ck_assert_msg(strstr(events.err, "there is no listed checkpoint to go back to: no step "
                                     "from ") != NULL,
                  "%s", events.err);
}
END_TEST

START_TEST(a_job_that_wants_it_trains_on)
{
    begin(PAIR_ENDLESS, "elastic: {max_skipped: 0, copy_every: 0}\n");
    pair_await(&events, "\"event\":\"step\"");
    spoil();
    pair_await(&events, "\"loss\":null");
    ck_assert_int_eq(PAIR_GIMBAL("cancel", "j-1"), 0);
    command_finish(&events);
}
END_TEST

SUITE(spoiled)
{
    TCase *tcase = tcase_create("spoiled");
    tcase_add_checked_fixture(tcase, setup, pair_stop);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_spoiled_state_is_left_for_the_newest_checkpoint);
    tcase_add_test(tcase, without_a_checkpoint_the_job_has_failed);
    tcase_add_test(tcase, a_job_that_wants_it_trains_on);
    return suite_run("spoiled", tcase, NULL);
}
