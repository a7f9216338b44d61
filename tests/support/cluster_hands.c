/* cluster_hands.c - the hands of a simulated coordinator: its store, its orders, its restarts. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/support/cluster_internal.h"

void sim_start(struct cluster *cluster)
{
    cluster->membership = membership_create(&MEMBERSHIP_CONFIG_DEFAULT);
    cluster->jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
}

static void store_job(struct cluster *cluster, const struct job *job)
{
    size_t i = 0;
    while (i < cluster->stored_count && strcmp(cluster->stored[i]->id, job->id) != 0)
        i++;
    if (i == cluster->stored_count) {
        cluster->stored = grow(cluster->stored, cluster->stored_count, &cluster->stored_capacity,
                               sizeof(*cluster->stored));
        cluster->stored_count++;
    } else {
        ck_assert_msg(!job_ended(cluster->stored[i]) || cluster->stored[i]->state == job->state,
                      SIM_AT "%s was %s and is %s", SIM_WHERE(cluster), job->id,
                      job_state_name(cluster->stored[i]->state), job_state_name(job->state));
        ck_assert_uint_le(cluster->stored[i]->epoch, job->epoch);
        job_destroy(cluster->stored[i]);
    }
    cluster->stored[i] = job_copy(job);
}

static struct sim_worker *sim_worker_named(struct cluster *cluster, const char *name)
{
    for (size_t i = 0; i < SIM_WORKERS; i++)
        if (strcmp(cluster->workers[i].name, name) == 0)
            return &cluster->workers[i];
    ck_abort_msg(SIM_AT "no worker %s", SIM_WHERE(cluster), name);
    return NULL;
}

/* The executor of a rank, new when its worker lives and has none; NULL when it is gone. */
static struct sim_executor *executor_of(struct cluster *cluster, const struct job *job,
                                        unsigned rank)
{
    const struct device_ref *device = &job->ranks[rank].device;
    if (sim_worker_named(cluster, device->worker)->instance != device->instance)
        return NULL;
    for (size_t i = 0; i < cluster->executor_count; i++) {
        struct sim_executor *executor = &cluster->executors[i];
        if (strcmp(executor->job, job->id) == 0 && executor->epoch == job->epoch &&
            executor->rank == rank)
            return executor;
    }
    cluster->executors = grow(cluster->executors, cluster->executor_count,
                              &cluster->executor_capacity, sizeof *cluster->executors);
    struct sim_executor *executor = &cluster->executors[cluster->executor_count++];
    *executor = (struct sim_executor){.epoch = job->epoch, .rank = rank, .device = *device};
    memcpy(executor->job, job->id, sizeof executor->job);
    return executor;
}

void sim_drop_executor(struct cluster *cluster, size_t index)
{
    cluster->executors[index] = cluster->executors[--cluster->executor_count];
}

void sim_drop_executors(struct cluster *cluster, uint64_t instance)
{
    for (size_t i = cluster->executor_count; i-- > 0;)
        if (cluster->executors[i].device.instance == instance)
            sim_drop_executor(cluster, i);
}

static void hold(struct cluster *cluster, const struct job *job)
{
    struct error err = {""};
    struct device_ref refs[SIM_DEVICES];
    size_t count = job_devices(job, refs);
    int rc = membership_hold(cluster->membership, job->id, refs, count, &err);
    ck_assert_msg(rc == 0, SIM_AT "%s cannot hold: %s", SIM_WHERE(cluster), job->id, err.text);
}

static void instruct(struct cluster *cluster, const struct job *job, enum job_action_kind kind)
{
    for (unsigned rank = 0; rank < job->rank_count; rank++) {
        if (job->ranks[rank].state == JOB_RANK_EXITED || job->ranks[rank].state == JOB_RANK_LOST)
            continue;
        struct sim_executor *executor = executor_of(cluster, job, rank);
        if (!executor)
            continue;
        executor->going = executor->going || kind == JOB_ACTION_GO;
        executor->stopping = executor->stopping || kind == JOB_ACTION_STOP;
    }
}

static void carry_out_one(struct cluster *cluster, const struct job_action *action)
{
    const struct job *job = jobs_find(cluster->jobs, action->job);
    switch (action->kind) {
    case JOB_ACTION_STORE:
        store_job(cluster, job);
        break;
    case JOB_ACTION_HOLD:
        hold(cluster, job);
        break;
    case JOB_ACTION_RELEASE:
        ck_assert_int_eq(membership_hold(cluster->membership, job->id, NULL, 0, NULL), 0);
        break;
    case JOB_ACTION_PLAN:
        cluster->plans = grow(cluster->plans, cluster->plan_count, &cluster->plan_capacity,
                              sizeof *cluster->plans);
        cluster->plans[cluster->plan_count++] = *action;
        break;
    case JOB_ACTION_ASSIGN:
    case JOB_ACTION_GO:
    case JOB_ACTION_STOP:
        instruct(cluster, job, action->kind);
        break;
    }
}

/* False when the coordinator died on the way. */
static bool carry_out(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->actions.count; i++) {
        if (!cluster->well && sim_chance(cluster, 1))
            return false;
        carry_out_one(cluster, &cluster->actions.items[i]);
    }
    jobs_actions_clear(&cluster->actions);
    return true;
}

/* Workers are stored as they are now, before the jobs hear of it. */
static void hear_events(struct cluster *cluster)
{
    for (size_t i = 0; i < cluster->events.count; i++) {
        const struct membership_event *event = &cluster->events.items[i];
        struct job_event said = {.words = event->reason};
        said.worker.name = event->worker;
        said.worker.instance = event->instance;
        struct sim_worker *worker = sim_worker_named(cluster, event->worker);
        const struct worker *now = membership_find(cluster->membership, event->worker);
        worker_destroy(worker->stored);
        worker->stored = now ? worker_copy(now) : NULL;
        if (event->kind != MEMBERSHIP_JOINED && event->kind != MEMBERSHIP_LOST)
            continue;
        said.kind =
            event->kind == MEMBERSHIP_JOINED ? JOB_EVENT_WORKER_JOINED : JOB_EVENT_WORKER_LOST;
        ck_assert_int_eq(jobs_apply(cluster->jobs, &said, cluster->now_ms, &cluster->actions, NULL),
                         0);
    }
    membership_events_clear(&cluster->events);
}

static bool schedule(struct cluster *cluster)
{
    struct device_view *views;
    size_t count = membership_devices(cluster->membership, &views);
    jobs_schedule(cluster->jobs, views, count, cluster->now_ms, &cluster->actions);
    sim_check_fifo(cluster, views, count);
    free(views);
    return carry_out(cluster);
}

void sim_restart(struct cluster *cluster)
{
    cluster->crashes++;
    membership_destroy(cluster->membership);
    jobs_destroy(cluster->jobs);
    membership_events_clear(&cluster->events);
    jobs_actions_clear(&cluster->actions);
    cluster->plan_count = 0;
    sim_start(cluster);
    for (size_t i = 0; i < SIM_WORKERS; i++) {
        struct sim_worker *worker = &cluster->workers[i];
        if (worker->stored)
            ck_assert_int_eq(
                membership_restore(cluster->membership, worker->stored, cluster->now_ms, NULL), 0);
    }
    for (size_t i = 0; i < cluster->stored_count; i++)
        ck_assert_int_eq(jobs_restore(cluster->jobs, cluster->stored[i], &cluster->actions, NULL),
                         0);
    for (size_t i = 0; i < cluster->stored_count; i++) {
        const struct job *job = cluster->stored[i];
        for (size_t r = 0; job->holding && r < job->rank_count; r++) {
            const struct device_ref *device = &job->ranks[r].device;
            struct job_event event = {.kind = JOB_EVENT_WORKER_LOST, .words = "unknown"};
            event.worker.name = device->worker;
            event.worker.instance = device->instance;
            const struct worker *worker = membership_find(cluster->membership, device->worker);
            if (!worker || worker->dead || worker->instance != device->instance)
                jobs_apply(cluster->jobs, &event, cluster->now_ms, &cluster->actions, NULL);
        }
    }
}

bool sim_finish_turn(struct cluster *cluster)
{
    bool survived = true;
    hear_events(cluster);
    while (!carry_out(cluster) || !schedule(cluster)) {
        sim_restart(cluster);
        survived = false;
    }
    return survived;
}

bool sim_deliver(struct cluster *cluster, const struct job_event *event)
{
    struct error err = {""};
    int rc = jobs_apply(cluster->jobs, event, cluster->now_ms, &cluster->actions, &err);
    ck_assert_msg(rc == 0 || rc == -ESTALE, SIM_AT "%s", SIM_WHERE(cluster), err.text);
    return sim_finish_turn(cluster);
}
