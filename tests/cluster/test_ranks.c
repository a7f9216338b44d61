/* test_ranks.c - ranks as processes that meet over Gloo train like one rank. The test stands
 * where the worker and the coordinator stand: it assigns, keeps the epoch's keys and says go. */
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "common/rpc/message.h"
#include "tests/support/engine.h"
#include "tests/support/executors.h"
#include "tests/support/suite.h"

#include <check.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define STEPS 20
#define PAUSES 3
#define PAUSED_STEPS 30
#define RANKS_MAX 4
#define KEYS_MAX 256

struct entry {
    char *key;
    uint8_t *value;
    size_t size;
};

/* A rank that waits for a key. */
struct waiting {
    int rank;
    uint64_t id;
    char *key;
};

struct house {
    struct executor executors[RANKS_MAX];
    bool open[RANKS_MAX];
    int count;
    struct entry entries[KEYS_MAX];
    struct waiting waiting[KEYS_MAX];
    size_t entry_count, waiting_count;
    struct executor_seen seen;
    int victim, after; /* the rank to kill, once there are so many steps; -1: none */
    bool to_pause, pausing;
    int asked, paused; /* pauses; ranks that are in the newest of them */
    uint64_t paused_step;
};

static void command(struct house *house, int rank, Gimbal__ExecutorCommand *message)
{
    channel_write(&house->executors[rank].channel, &message->base, NULL);
}

static void answer(struct house *house, int rank, uint64_t id, const struct entry *entry)
{
    Gimbal__ExecutorRendezvous reply = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    reply.id = id;
    if (entry)
        reply.value = (ProtobufCBinaryData){.len = entry->size, .data = entry->value};
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RENDEZVOUS;
    message.rendezvous = &reply;
    command(house, rank, &message);
}

static const struct entry *find(const struct house *house, const char *key)
{
    for (size_t i = 0; i < house->entry_count; i++)
        if (strcmp(house->entries[i].key, key) == 0)
            return &house->entries[i];
    return NULL;
}

static void put(struct house *house, const Gimbal__ExecutorRendezvous *request)
{
    ck_assert_uint_lt(house->entry_count, KEYS_MAX);
    struct entry *entry = &house->entries[house->entry_count++];
    entry->key = xstrdup(request->key);
    entry->size = request->value.len;
    entry->value = xcalloc(1, entry->size);
    memcpy(entry->value, request->value.data, entry->size);
    for (size_t i = 0; i < house->waiting_count;) {
        struct waiting *waiting = &house->waiting[i];
        if (strcmp(waiting->key, entry->key) != 0) {
            i++;
            continue;
        }
        answer(house, waiting->rank, waiting->id, entry);
        free(waiting->key);
        *waiting = house->waiting[--house->waiting_count];
    }
}

static void rendezvous(struct house *house, int rank, const Gimbal__ExecutorRendezvous *request)
{
    const struct entry *entry = find(house, request->key);
    if (request->put) {
        put(house, request);
        answer(house, rank, request->id, NULL);
    } else if (entry) {
        answer(house, rank, request->id, entry);
    } else {
        ck_assert_uint_lt(house->waiting_count, KEYS_MAX);
        house->waiting[house->waiting_count++] =
            (struct waiting){rank, request->id, xstrdup(request->key)};
    }
}

static void go(struct house *house)
{
    for (int rank = 0; rank < house->count; rank++) {
        Gimbal__Go go = GIMBAL__GO__INIT;
        Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
        message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_GO;
        message.go = &go;
        command(house, rank, &message);
    }
}

static void pause_rank(struct house *house, int rank)
{
    Gimbal__PauseJob pause = GIMBAL__PAUSE_JOB__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    pause.number = (uint64_t)house->asked;
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_PAUSE;
    message.pause = &pause;
    command(house, rank, &message);
}

static void resume_rank(struct house *house, int rank)
{
    Gimbal__ResumeJob resume = GIMBAL__RESUME_JOB__INIT;
    Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
    resume.number = (uint64_t)house->asked;
    message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_RESUME;
    message.resume = &resume;
    command(house, rank, &message);
}

/* One rank hears of a pause, another one each time; the others learn of it from each other. */
static void ask_to_pause(struct house *house)
{
    if (!house->to_pause || house->pausing || house->asked == PAUSES ||
        house->seen.steps < (int)house->paused_step + 2)
        return;
    house->pausing = true;
    house->asked++;
    pause_rank(house, (house->count - house->asked % house->count) % house->count);
}

/* All behind the same step, and none goes on before the last one is there. */
static void take_paused(struct house *house, const Gimbal__PausedRequest *paused)
{
    ck_assert_uint_eq(paused->number, (uint64_t)house->asked);
    ck_assert(house->paused == 0 || paused->step == house->paused_step);
    house->paused_step = paused->step;
    ck_assert_int_le(house->seen.steps, (int)paused->step);
    if (++house->paused < house->count)
        return;
    house->paused = 0;
    house->pausing = false;
    for (int rank = 0; rank < house->count; rank++) {
        pause_rank(house, rank); /* those who have not heard hear of it late */
        resume_rank(house, rank);
    }
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(getdelim(&text, &size, '\0', file), 0);
    fclose(file);
    return text;
}

/* One of the cores that this process may use: a rank on each core, not one rank on all. */
static const char *one_core(int rank)
{
    static char text[16];
    cpu_set_t all;
    sched_getaffinity(0, sizeof all, &all);
    int skip = rank % CPU_COUNT(&all), core = 0;
    while (!CPU_ISSET((size_t)core, &all) || skip-- > 0)
        core++;
    snprintf(text, sizeof text, "%d", core);
    return text;
}

static void assign(struct house *house, const struct executor_job *job, const struct plan *plan,
                   uint64_t hash_offset)
{
    struct graph *graph = executor_job_graph();
    char *yaml = read_whole(job->job), *json = plan_encode(plan, graph);
    for (int rank = 0; rank < house->count; rank++) {
        Gimbal__Plan wire = GIMBAL__PLAN__INIT;
        Gimbal__Assignment assignment = GIMBAL__ASSIGNMENT__INIT;
        Gimbal__ExecutorCommand message = GIMBAL__EXECUTOR_COMMAND__INIT;
        struct program *program;
        ck_assert_int_eq(lower(graph, plan, rank, &program, NULL), 0);
        wire.json = json;
        assignment.job = (char *)"j-1";
        assignment.epoch = 1;
        assignment.rank = (uint32_t)rank;
        assignment.rank_count = (uint32_t)house->count;
        assignment.job_yaml = yaml;
        assignment.plan = &wire;
        assignment.program_hash = program->hash + hash_offset;
        message.command_case = GIMBAL__EXECUTOR_COMMAND__COMMAND_ASSIGNMENT;
        message.assignment = &assignment;
        executor_start(&house->executors[rank], EXECUTOR,
                       (const char *[]){"--devices", one_core(rank), NULL});
        house->open[rank] = true;
        command(house, rank, &message);
        program_destroy(program);
    }
    free(yaml);
    free(json);
    graph_destroy(graph);
}

static void take_event(struct house *house, int rank, const Gimbal__ExecutorEvent *event)
{
    executor_see(&house->seen, event);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS)
        rendezvous(house, rank, event->rendezvous);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_READY &&
        house->seen.ready == house->count)
        go(house);
    if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_PAUSED)
        take_paused(house, event->paused);
    ask_to_pause(house);
    if (house->victim >= 0 && house->seen.steps == house->after) {
        kill(house->executors[house->victim].pid, SIGKILL);
        house->victim = -1;
    }
}

/* All that has come; false when there will not be more. */
static bool take_events(struct house *house, int rank)
{
    ProtobufCMessage *message;
    int rc;
    while ((rc = channel_read(&house->executors[rank].channel, &gimbal__executor_event__descriptor,
                              0, &message, NULL)) > 0) {
        take_event(house, rank, (const Gimbal__ExecutorEvent *)message);
        message_free(message);
    }
    return rc == 0;
}

/* Serve all channels until every executor has ended; kill rank `victim` after that many steps
 * (-1: nobody). */
static void serve(struct house *house, int victim, int after)
{
    house->victim = victim;
    house->after = after;
    for (int open = house->count; open > 0;) {
        struct pollfd fds[RANKS_MAX];
        for (int i = 0; i < house->count; i++)
            fds[i] = (struct pollfd){.fd = house->open[i] ? house->executors[i].channel.fd : -1,
                                     .events = POLLIN};
        ck_assert_int_gt(poll(fds, (nfds_t)house->count, EXECUTOR_DEADLINE_MS), 0);
        for (int i = 0; i < house->count; i++) {
            if (!fds[i].revents || take_events(house, i))
                continue;
            house->open[i] = false;
            open--;
        }
    }
}

static void house_finish(struct house *house, bool clean)
{
    for (int i = 0; i < house->count; i++) {
        int status = executor_finish(&house->executors[i]);
        ck_assert(!clean || status == 0);
    }
    for (size_t i = 0; i < house->entry_count; i++) {
        free(house->entries[i].key);
        free(house->entries[i].value);
    }
    for (size_t i = 0; i < house->waiting_count; i++)
        free(house->waiting[i].key);
}

/* Losses of one rank, as threads of one process have them. */
static struct executor_seen train_alone(const struct executor_job *job)
{
    struct executor executor;
    struct executor_seen seen = {0};
    struct graph *graph = executor_job_graph();
    struct plan *plan = engine_plan_one(graph, 1, 8);
    executor_job_plan(job, plan);
    executor_start(&executor, EXECUTOR,
                   (const char *[]){"--local", "1", "--job", job->job, "--plan", job->plan,
                                    "--devices", one_core(0), NULL});
    executor_see_all(&executor, &seen);
    ck_assert_int_eq(executor_finish(&executor), 0);
    plan_destroy(plan);
    graph_destroy(graph);
    return seen;
}

static const struct {
    int stages, axes[2], axis_count;
    const char *roles[2];
    const char *schedule;
} plans[] = {
    {1, {2, 2}, 2, {"tensor", "batch"}, "1f1b"},
    {2, {2}, 1, {"tensor"}, "gpipe"},
    {2, {2}, 1, {"batch"}, "1f1b"},
};

START_TEST(processes_over_gloo_train_like_one_rank)
{
    struct executor_job job;
    executor_job_make(&job, STEPS);
    struct executor_seen alone = train_alone(&job);
    struct house house = {.count = 4};
    struct graph *graph = executor_job_graph();
    struct plan *plan = engine_plan(graph, plans[_i].stages, plans[_i].axes, plans[_i].axis_count,
                                    plans[_i].roles, 2, 4, plans[_i].schedule);
    assign(&house, &job, plan, 0);
    serve(&house, -1, 0);
    house_finish(&house, true);
    ck_assert_int_eq(house.seen.done, 4);
    ck_assert_int_eq(house.seen.steps, STEPS);
    for (int i = 0; i < STEPS; i++)
        ck_assert_double_le(fabs(house.seen.loss[i] - alone.loss[i]) / alone.loss[i], 1e-5);
    ck_assert_double_le(fabs(house.seen.evaluation - alone.evaluation) / alone.evaluation, 1e-5);
    ck_assert_uint_eq(house.seen.sample, 40);
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

static struct house train(const struct executor_job *job, const struct plan *plan, int steps,
                          bool to_pause)
{
    struct house house = {.count = plan_ranks(plan), .to_pause = to_pause};
    assign(&house, job, plan, 0);
    serve(&house, -1, 0);
    house_finish(&house, true);
    ck_assert_int_eq(house.seen.steps, steps);
    return house;
}

START_TEST(a_pause_is_behind_the_same_step_for_all_and_changes_no_bit)
{
    struct executor_job job;
    struct graph *graph = executor_job_graph();
    struct plan *plan = _i == 0 ? engine_plan_one(graph, 1, 8)
                                : engine_plan(graph, plans[_i - 1].stages, plans[_i - 1].axes,
                                              plans[_i - 1].axis_count, plans[_i - 1].roles, 2, 4,
                                              plans[_i - 1].schedule);
    int steps = _i == 0 ? 8 * PAUSED_STEPS : PAUSED_STEPS; /* one rank is done the soonest */
    executor_job_make(&job, steps);
    struct house straight = train(&job, plan, steps, false);
    struct house paused = train(&job, plan, steps, true);
    ck_assert_int_eq(paused.asked, PAUSES);
    ck_assert_int_eq(paused.seen.done, paused.count);
    for (int i = 0; i < steps; i++)
        ck_assert_msg(paused.seen.loss[i] == straight.seen.loss[i], "step %d: %.17g is not %.17g",
                      i + 1, paused.seen.loss[i], straight.seen.loss[i]);
    ck_assert(paused.seen.evaluation == straight.seen.evaluation);
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

START_TEST(another_program_is_refused_in_words)
{
    struct executor_job job;
    struct house house = {.count = 1};
    struct graph *graph = executor_job_graph();
    struct plan *plan = engine_plan_one(graph, 1, 8);
    executor_job_make(&job, STEPS);
    assign(&house, &job, plan, 1);
    serve(&house, -1, 0);
    house_finish(&house, false);
    ck_assert_int_eq(house.seen.stopped, 1);
    ck_assert_int_eq(house.seen.done, 0);
    ck_assert_ptr_nonnull(strstr(house.seen.reason, "different versions"));
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

START_TEST(a_killed_rank_ends_the_others_in_words)
{
    struct executor_job job;
    struct house house = {.count = 4};
    struct graph *graph = executor_job_graph();
    struct plan *plan = engine_plan(graph, plans[_i].stages, plans[_i].axes, plans[_i].axis_count,
                                    plans[_i].roles, 2, 4, plans[_i].schedule);
    executor_job_make(&job, 200);
    assign(&house, &job, plan, 0);
    serve(&house, 3, 5);
    house_finish(&house, false);
    ck_assert_int_eq(house.seen.stopped, 3);
    ck_assert_int_eq(house.seen.done, 0);
    ck_assert_ptr_nonnull(strstr(house.seen.reason, "rank"));
    ck_assert_ptr_nonnull(strstr(house.seen.reason, "step"));
    plan_destroy(plan);
    graph_destroy(graph);
    executor_job_clean(&job);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("ranks");
    int count = (int)(sizeof plans / sizeof *plans);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, processes_over_gloo_train_like_one_rank, 0, count);
    tcase_add_loop_test(tcase, a_pause_is_behind_the_same_step_for_all_and_changes_no_bit, 0,
                        1 + count);
    tcase_add_test(tcase, another_program_is_refused_in_words);
    tcase_add_loop_test(tcase, a_killed_rank_ends_the_others_in_words, 0, count);
    return suite_run("ranks", tcase, NULL);
}
