/* test_plan_queue.c - searches on their own threads: who comes first, who is withdrawn, and that a
 * queue ends while searches run. Searches are held up by the clock that they ask for the time. */
#include "coordinator/planning/queue.h"
#include "tests/coordinator/planning_scene.h"
#include "tests/support/suite.h"

#include <poll.h>
#include <semaphore.h>
#include <stddef.h>

static sem_t begun, allowed;
static int askers[8];

/* The first question of a search: once when it begins. */
static uint64_t held_up(void)
{
    sem_post(&begun);
    sem_wait(&allowed);
    return 0;
}

struct queue_scene {
    struct scene scene;
    struct planning_queue *queue;
};

static void open_queue(struct queue_scene *here)
{
    sem_init(&begun, 0, 0);
    sem_init(&allowed, 0, 0);
    scene_open(&here->scene, "plan: {search: uniform}\n");
    int rc = planning_queue_create(&here->queue, &here->scene.err);
    ck_assert_msg(rc == 0, "%s", here->scene.err.text);
}

static void close_queue(struct queue_scene *here)
{
    planning_queue_destroy(here->queue);
    planning_scene_close(&here->scene);
    sem_destroy(&begun);
    sem_destroy(&allowed);
}

static void add(struct queue_scene *here, enum planning_kind kind, int *asker, bool hold)
{
    struct planning_task *task = scene_task(&here->scene);
    if (hold)
        task->clock_cb = held_up;
    planning_queue_add(here->queue, kind, task, asker);
}

/* Waits for the next answer. */
static void expect(struct queue_scene *here, const int *asker)
{
    struct planning_answer answer;
    struct pollfd ready = {.fd = planning_queue_fd(here->queue), .events = POLLIN};
    while (!planning_queue_take(here->queue, &answer))
        ck_assert_int_eq(poll(&ready, 1, -1), 1);
    ck_assert_ptr_eq(answer.asker, asker);
    ck_assert_msg(answer.rc == 0, "%s", answer.err.text);
    ck_assert_ptr_nonnull(answer.planning.plan);
    planning_finish(&answer.planning);
}

static void expect_nothing(struct queue_scene *here)
{
    struct planning_answer answer;
    struct pollfd ready = {.fd = planning_queue_fd(here->queue), .events = POLLIN};
    ck_assert(!planning_queue_take(here->queue, &answer));
    ck_assert_int_eq(poll(&ready, 1, 0), 0);
}

START_TEST(jobs_do_not_wait_for_questions)
{
    struct queue_scene here;
    open_queue(&here);
    add(&here, PLANNING_QUESTION, &askers[0], true);
    sem_wait(&begun);
    add(&here, PLANNING_QUESTION, &askers[1], false); /* one at a time */
    add(&here, PLANNING_JOB, &askers[2], false);
    add(&here, PLANNING_JOB, &askers[3], false);
    expect(&here, &askers[2]);
    expect(&here, &askers[3]);
    expect_nothing(&here);
    sem_post(&allowed); /* when it begins, and when it ends */
    sem_post(&allowed);
    expect(&here, &askers[0]);
    expect(&here, &askers[1]);
    expect_nothing(&here);
    close_queue(&here);
}
END_TEST

START_TEST(what_is_withdrawn_never_comes)
{
    struct queue_scene here;
    open_queue(&here);
    add(&here, PLANNING_QUESTION, &askers[0], true); /* runs */
    sem_wait(&begun);
    add(&here, PLANNING_QUESTION, &askers[1], false); /* waits */
    add(&here, PLANNING_QUESTION, &askers[2], false);
    planning_queue_withdraw(here.queue, &askers[0]);
    planning_queue_withdraw(here.queue, &askers[1]);
    planning_queue_withdraw(here.queue, &askers[5]); /* of nobody */
    sem_post(&allowed); /* it was stopped: it does not ask for the time again */
    expect(&here, &askers[2]);
    expect_nothing(&here);
    add(&here, PLANNING_JOB, &askers[3], false);
    expect(&here, &askers[3]);
    add(&here, PLANNING_JOB, &askers[4], false);
    planning_queue_withdraw(here.queue, &askers[3]); /* too late, and nothing comes of it */
    expect(&here, &askers[4]);
    close_queue(&here);
}
END_TEST

START_TEST(a_queue_ends_while_searches_run)
{
    struct queue_scene here;
    open_queue(&here);
    add(&here, PLANNING_JOB, &askers[0], true);
    add(&here, PLANNING_JOB, &askers[1], true);
    add(&here, PLANNING_JOB, &askers[2], true);
    sem_wait(&begun);
    sem_wait(&begun);
    for (int i = 0; i < 6; i++)
        sem_post(&allowed);
    close_queue(&here);
}
END_TEST

SUITE(plan_queue)
{
    TCase *tcase = tcase_create("plan queue");
    tcase_add_test(tcase, jobs_do_not_wait_for_questions);
    tcase_add_test(tcase, what_is_withdrawn_never_comes);
    tcase_add_test(tcase, a_queue_ends_while_searches_run);
    return suite_run("plan_queue", tcase, NULL);
}
