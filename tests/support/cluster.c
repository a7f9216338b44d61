/* cluster.c - the simulated cluster: random happenings, and the hands that carry out actions. */
#include "tests/support/cluster.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/cluster_internal.h"

uint64_t cluster_draw(struct cluster *cluster, uint64_t bound)
{
    return random_below(cluster->seed, 0, cluster->draws++, bound);
}

static bool chance(struct cluster *cluster, uint64_t percent)
{
    return cluster_draw(cluster, 100) < percent;
}

static void start_coordinator(struct cluster *cluster)
{
    cluster->membership = membership_create(&MEMBERSHIP_CONFIG_DEFAULT);
    cluster->jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
}

struct cluster *cluster_create(uint64_t seed)
{
    struct cluster *cluster = xcalloc(1, sizeof *cluster);
    cluster->seed = seed;
    cluster->next_instance = 1;
    for (unsigned i = 0; i < SIM_WORKERS; i++) {
        struct sim_worker *worker = &cluster->workers[i];
        snprintf(worker->name, sizeof worker->name, "w%u", i);
        worker->devices = 1 + (unsigned)cluster_draw(cluster, 3);
        worker->kind = i == 0 ? HARDWARE_GPU : HARDWARE_CPU;
    }
    start_coordinator(cluster);
    return cluster;
}

void cluster_destroy(struct cluster *cluster)
{
    membership_destroy(cluster->membership);
    jobs_destroy(cluster->jobs);
    membership_events_finish(&cluster->events);
    jobs_actions_finish(&cluster->actions);
    for (size_t i = 0; i < cluster->stored_count; i++)
        job_destroy(cluster->stored[i]);
    for (size_t i = 0; i < SIM_WORKERS; i++)
        worker_destroy(cluster->workers[i].stored);
    free(cluster->stored);
    free(cluster->executors);
    free(cluster->plans);
    free(cluster);
}

/* --- The store ----------------------------------------------------------------------------- */

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

/* --- Executors ----------------------------------------------------------------------------- */

static struct sim_worker *worker_named(struct cluster *cluster, const char *name)
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
    if (worker_named(cluster, device->worker)->instance != device->instance)
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

static void drop_executor(struct cluster *cluster, size_t index)
{
    cluster->executors[index] = cluster->executors[--cluster->executor_count];
}

static void drop_executors_of(struct cluster *cluster, uint64_t instance)
{
    for (size_t i = cluster->executor_count; i-- > 0;)
        if (cluster->executors[i].device.instance == instance)
            drop_executor(cluster, i);
}

/* --- Carrying out ---------------------------------------------------------------------------- */

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
        if (!cluster->well && chance(cluster, 1))
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
        struct sim_worker *worker = worker_named(cluster, event->worker);
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
    cluster_check_fifo(cluster, views, count);
    free(views);
    return carry_out(cluster);
}

/* What a coordinator does first: take over workers and jobs, and tell the jobs which of their
 * workers are unknown. */
static void restart_coordinator(struct cluster *cluster)
{
    cluster->crashes++;
    membership_destroy(cluster->membership);
    jobs_destroy(cluster->jobs);
    membership_events_clear(&cluster->events);
    jobs_actions_clear(&cluster->actions);
    cluster->plan_count = 0;
    start_coordinator(cluster);
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

/* Carry out what there is and schedule, as often as the coordinator dies of it. */
static bool finish_turn(struct cluster *cluster)
{
    bool survived = true;
    hear_events(cluster);
    while (!carry_out(cluster) || !schedule(cluster)) {
        restart_coordinator(cluster);
        survived = false;
    }
    return survived;
}

/* Deliver a message; true when it was acknowledged, so that the sender need not repeat it. */
static bool deliver(struct cluster *cluster, const struct job_event *event)
{
    struct error err = {""};
    int rc = jobs_apply(cluster->jobs, event, cluster->now_ms, &cluster->actions, &err);
    ck_assert_msg(rc == 0 || rc == -ESTALE, SIM_AT "%s", SIM_WHERE(cluster), err.text);
    return finish_turn(cluster);
}

/* --- Happenings ------------------------------------------------------------------------------ */

static void report(struct cluster *cluster, struct sim_worker *worker)
{
    struct hardware_report *made = hardware_report_create(worker->name, worker->name, "CPU", "0");
    for (unsigned i = 0; i < worker->devices; i++)
        hardware_report_add_device(made, &(struct hardware_device){.kind = worker->kind,
                                                                   .name = "d",
                                                                   .cpuset = "0",
                                                                   .cores = 1,
                                                                   .memory_bytes = 1 << 30});
    int rc = membership_report(cluster->membership, worker->instance, made, cluster->now_ms,
                               &cluster->events, NULL);
    hardware_report_destroy(made);
    if (rc == -ESTALE) { /* it is told that it was given up: it ends its executors and itself */
        drop_executors_of(cluster, worker->instance);
        worker->instance = 0;
    }
    finish_turn(cluster);
}

static void start_worker(struct cluster *cluster, struct sim_worker *worker)
{
    drop_executors_of(cluster, worker->instance);
    worker->instance = cluster->next_instance++;
    worker->silent = false;
    report(cluster, worker);
}

static void kill_worker(struct cluster *cluster, struct sim_worker *worker)
{
    drop_executors_of(cluster, worker->instance);
    membership_disconnect(cluster->membership, worker->name, worker->instance, cluster->now_ms,
                          &cluster->events);
    worker->instance = 0;
    finish_turn(cluster);
}

static void beat(struct cluster *cluster, struct sim_worker *worker)
{
    if (worker->instance == 0 || worker->silent)
        return;
    if (membership_heartbeat(cluster->membership, worker->name, worker->instance, cluster->now_ms,
                             &cluster->events, NULL) < 0)
        report(cluster, worker);
    else
        finish_turn(cluster);
}

static void disturb_worker(struct cluster *cluster)
{
    struct sim_worker *worker = &cluster->workers[cluster_draw(cluster, SIM_WORKERS)];
    uint64_t draw = cluster_draw(cluster, 12);
    if (worker->instance == 0 || draw == 0)
        start_worker(cluster, worker);
    else if (draw == 1)
        kill_worker(cluster, worker);
    else if (draw == 2)
        worker->silent = !worker->silent;
    else if (draw == 3)
        membership_drain(cluster->membership, worker->name, "test", &cluster->events, NULL);
    else if (draw <= 5)
        membership_undrain(cluster->membership, worker->name, &cluster->events, NULL);
    finish_turn(cluster);
}

static void pass_time(struct cluster *cluster)
{
    cluster->now_ms += cluster_draw(cluster, 1500);
    for (size_t i = 0; i < SIM_WORKERS; i++)
        beat(cluster, &cluster->workers[i]);
    membership_expire(cluster->membership, cluster->now_ms, &cluster->events);
    finish_turn(cluster);
}

static void submit(struct cluster *cluster)
{
    const struct job *job;
    struct job_submission submission = {.key = "", .name = "gpt", .user = "ada", .text = "t"};
    submission.devices_min = 1 + (unsigned)cluster_draw(cluster, 6);
    submission.devices_max = submission.devices_min + (unsigned)cluster_draw(cluster, 6);
    submission.kind = (enum job_kind)cluster_draw(cluster, 3);
    ck_assert_int_eq(
        jobs_submit(cluster->jobs, &submission, cluster->now_ms, &job, &cluster->actions, NULL), 0);
    finish_turn(cluster);
}

static void cancel(struct cluster *cluster)
{
    if (jobs_count(cluster->jobs) == 0)
        return;
    const struct job *job =
        jobs_at(cluster->jobs, cluster_draw(cluster, jobs_count(cluster->jobs)));
    deliver(cluster, &(struct job_event){.kind = JOB_EVENT_CANCEL, .job = job->id, .words = "ada"});
}

/* The planner answers: a plan on some of the devices in another order, more devices, or no. */
static void answer_plan(struct cluster *cluster, size_t index)
{
    struct job_action asked = cluster->plans[index];
    cluster->plans[index] = cluster->plans[--cluster->plan_count];
    const struct job *job = jobs_find(cluster->jobs, asked.job);
    struct device_ref refs[SIM_DEVICES];
    size_t count = 0;
    for (; count < job->rank_count; count++)
        refs[count] = job->ranks[count].device;
    for (size_t i = count; i > 1; i--) {
        size_t other = cluster_draw(cluster, i);
        struct device_ref moved = refs[i - 1];
        refs[i - 1] = refs[other];
        refs[other] = moved;
    }
    if (count > job->devices_min && chance(cluster, 30))
        count--;
    struct job_event event = {.kind = JOB_EVENT_PLANNED, .job = asked.job, .epoch = asked.epoch};
    event.plan.id = "p-1";
    event.plan.devices = refs;
    event.plan.device_count = count;
    if (chance(cluster, 15)) {
        event.kind = JOB_EVENT_UNFIT;
        event.devices_needed = (unsigned)job->rank_count + (unsigned)cluster_draw(cluster, 4);
    } else if (chance(cluster, 5)) {
        event.kind = JOB_EVENT_REFUSED;
    }
    deliver(cluster, &event);
}

/* Tell that an executor has exited, until it is acknowledged. */
static void tell_exit(struct cluster *cluster, size_t index)
{
    struct sim_executor executor = cluster->executors[index];
    struct job_event event = {.kind = JOB_EVENT_EXITED,
                              .job = executor.job,
                              .epoch = executor.epoch,
                              .rank = executor.rank,
                              .status = executor.status};
    if (!deliver(cluster, &event))
        return;
    for (size_t i = cluster->executor_count; i-- > 0;)
        if (strcmp(cluster->executors[i].job, executor.job) == 0 &&
            cluster->executors[i].epoch == executor.epoch &&
            cluster->executors[i].rank == executor.rank)
            drop_executor(cluster, i);
}

/* One executor takes its next step; a bad one fails instead. */
static void move_executor(struct cluster *cluster, size_t index, bool bad)
{
    struct sim_executor *executor = &cluster->executors[index];
    if (!executor->exited &&
        (executor->stopping || bad || (executor->going && chance(cluster, 30)))) {
        executor->exited = true;
        executor->status = executor->stopping ? 143 : bad ? 1 : 0;
    }
    if (executor->exited) {
        tell_exit(cluster, index);
        return;
    }
    char id[JOB_ID_SIZE];
    memcpy(id, executor->job, sizeof id);
    struct job_event event = {.kind = executor->going ? JOB_EVENT_PROGRESS : JOB_EVENT_READY,
                              .job = id,
                              .epoch = executor->epoch,
                              .rank = executor->rank};
    if (executor->going)
        event.progress.step = cluster->now_ms;
    if (!deliver(cluster, &event))
        return;
    cluster->last = event; /* may come once more, late */
    memcpy(cluster->last_job, id, sizeof id);
    cluster->last.job = cluster->last_job;
}

static void repeat_message(struct cluster *cluster)
{
    if (!cluster->last.job)
        return;
    struct job_event event = cluster->last;
    event.epoch -= (uint32_t)cluster_draw(cluster, 2);
    struct error err = {""};
    int rc = jobs_apply(cluster->jobs, &event, cluster->now_ms, &cluster->actions, &err);
    ck_assert_msg(rc == 0 || rc == -ESTALE || rc == -EINVAL, SIM_AT "%s", SIM_WHERE(cluster),
                  err.text);
    finish_turn(cluster);
}

void cluster_step(struct cluster *cluster)
{
    cluster->step++;
    uint64_t draw = cluster_draw(cluster, 100);
    if (draw < 8)
        disturb_worker(cluster);
    else if (draw < 22)
        pass_time(cluster);
    else if (draw < 30)
        submit(cluster);
    else if (draw < 32)
        cancel(cluster);
    else if (draw < 45 && cluster->plan_count)
        answer_plan(cluster, cluster_draw(cluster, cluster->plan_count));
    else if (draw < 96 && cluster->executor_count)
        move_executor(cluster, cluster_draw(cluster, cluster->executor_count), chance(cluster, 2));
    else if (draw < 99)
        repeat_message(cluster);
    else
        restart_coordinator(cluster), finish_turn(cluster);
    cluster_check(cluster);
}

static bool settled(const struct cluster *cluster)
{
    for (size_t i = 0; i < jobs_count(cluster->jobs); i++) {
        const struct job *job = jobs_at(cluster->jobs, i);
        bool waits = job->state == JOB_PENDING && (job->reason == JOB_REASON_NO_DEVICES ||
                                                   job->reason == JOB_REASON_TOO_FEW_DEVICES ||
                                                   job->reason == JOB_REASON_INFEASIBLE_MEMORY);
        if (!waits && !job_ended(job))
            return false;
    }
    return true;
}

void cluster_settle(struct cluster *cluster)
{
    cluster->well = true;
    for (size_t i = 0; i < SIM_WORKERS; i++) {
        struct sim_worker *worker = &cluster->workers[i];
        worker->silent = false;
        if (worker->instance == 0)
            start_worker(cluster, worker);
        membership_undrain(cluster->membership, worker->name, &cluster->events, NULL);
        finish_turn(cluster);
    }
    for (int round = 0; round < 2000 && (!settled(cluster) || cluster->executor_count); round++) {
        cluster->step++;
        pass_time(cluster);
        for (size_t i = 0; i < SIM_WORKERS; i++)
            if (cluster->workers[i].instance == 0)
                start_worker(cluster, &cluster->workers[i]);
        while (cluster->plan_count)
            answer_plan(cluster, 0);
        for (size_t i = cluster->executor_count; i-- > 0;)
            if (i < cluster->executor_count)
                move_executor(cluster, i, false);
        cluster_check(cluster);
    }
    ck_assert_msg(settled(cluster), SIM_AT "some job neither ends nor waits", SIM_WHERE(cluster));
    ck_assert_msg(cluster->executor_count == 0, SIM_AT "executors are left", SIM_WHERE(cluster));
}

void cluster_ended(const struct cluster *cluster, unsigned *done, unsigned *failed,
                   unsigned *cancelled)
{
    for (size_t i = 0; i < jobs_count(cluster->jobs); i++) {
        enum job_state state = jobs_at(cluster->jobs, i)->state;
        *done += state == JOB_DONE ? 1 : 0;
        *failed += state == JOB_FAILED ? 1 : 0;
        *cancelled += state == JOB_CANCELLED ? 1 : 0;
    }
}

uint64_t cluster_crashes(const struct cluster *cluster)
{
    return cluster->crashes;
}
