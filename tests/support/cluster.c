/* cluster.c - what happens in a simulated cluster, drawn from its seed. */
#include "tests/support/cluster.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/cluster_internal.h"

static uint64_t sim_draw(struct cluster *cluster, uint64_t bound)
{
    return random_below(cluster->seed, 0, cluster->draws++, bound);
}

bool sim_chance(struct cluster *cluster, uint64_t percent)
{
    return sim_draw(cluster, 100) < percent;
}

struct cluster *cluster_create(uint64_t seed)
{
    struct cluster *cluster = xcalloc(1, sizeof *cluster);
    cluster->seed = seed;
    cluster->next_instance = 1;
    for (unsigned i = 0; i < SIM_WORKERS; i++) {
        struct sim_worker *worker = &cluster->workers[i];
        snprintf(worker->name, sizeof worker->name, "w%u", i);
        worker->devices = 1 + (unsigned)sim_draw(cluster, 3);
        worker->kind = i == 0 ? HARDWARE_GPU : HARDWARE_CPU;
    }
    sim_start(cluster);
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
        sim_drop_executors(cluster, worker->instance);
        worker->instance = 0;
    }
    sim_finish_turn(cluster);
}

static void start_worker(struct cluster *cluster, struct sim_worker *worker)
{
    sim_drop_executors(cluster, worker->instance);
    worker->instance = cluster->next_instance++;
    worker->silent = false;
    report(cluster, worker);
}

static void kill_worker(struct cluster *cluster, struct sim_worker *worker)
{
    sim_drop_executors(cluster, worker->instance);
    membership_disconnect(cluster->membership, worker->name, worker->instance, cluster->now_ms,
                          &cluster->events);
    worker->instance = 0;
    sim_finish_turn(cluster);
}

static void beat(struct cluster *cluster, struct sim_worker *worker)
{
    if (worker->instance == 0 || worker->silent)
        return;
    if (membership_heartbeat(cluster->membership, worker->name, worker->instance, cluster->now_ms,
                             &cluster->events, NULL) < 0)
        report(cluster, worker);
    else
        sim_finish_turn(cluster);
}

static void disturb_worker(struct cluster *cluster)
{
    struct sim_worker *worker = &cluster->workers[sim_draw(cluster, SIM_WORKERS)];
    uint64_t draw = sim_draw(cluster, 12);
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
    sim_finish_turn(cluster);
}

static void pass_time(struct cluster *cluster)
{
    cluster->now_ms += sim_draw(cluster, 1500);
    for (size_t i = 0; i < SIM_WORKERS; i++)
        beat(cluster, &cluster->workers[i]);
    membership_expire(cluster->membership, cluster->now_ms, &cluster->events);
    sim_finish_turn(cluster);
}

static void submit(struct cluster *cluster)
{
    const struct job *job;
    struct job_submission submission = {.key = "", .name = "gpt", .user = "ada", .text = "t"};
    submission.devices_min = 1 + (unsigned)sim_draw(cluster, 6);
    submission.devices_max = submission.devices_min + (unsigned)sim_draw(cluster, 6);
    submission.kind = (enum job_kind)sim_draw(cluster, 3);
    ck_assert_int_eq(
        jobs_submit(cluster->jobs, &submission, cluster->now_ms, &job, &cluster->actions, NULL), 0);
    sim_finish_turn(cluster);
}

static void cancel(struct cluster *cluster)
{
    if (jobs_count(cluster->jobs) == 0)
        return;
    const struct job *job = jobs_at(cluster->jobs, sim_draw(cluster, jobs_count(cluster->jobs)));
    sim_deliver(cluster,
                &(struct job_event){.kind = JOB_EVENT_CANCEL, .job = job->id, .words = "ada"});
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
        size_t other = sim_draw(cluster, i);
        struct device_ref moved = refs[i - 1];
        refs[i - 1] = refs[other];
        refs[other] = moved;
    }
    if (count > job->devices_min && sim_chance(cluster, 30))
        count--;
    struct job_event event = {.kind = JOB_EVENT_PLANNED, .job = asked.job, .epoch = asked.epoch};
    event.plan.id = "p-1";
    event.plan.devices = refs;
    event.plan.device_count = count;
    if (sim_chance(cluster, 15)) {
        event.kind = JOB_EVENT_UNFIT;
        event.devices_needed = (unsigned)job->rank_count + (unsigned)sim_draw(cluster, 4);
    } else if (sim_chance(cluster, 5)) {
        event.kind = JOB_EVENT_REFUSED;
    }
    sim_deliver(cluster, &event);
}

/* Tell that an executor has exited, until it is acknowledged. */
static void tell_exit(struct cluster *cluster, size_t index)
{
    struct sim_executor executor = cluster->executors[index];
    struct job_event event = {.kind = JOB_EVENT_EXITED,
                              .job = executor.job,
                              .epoch = executor.epoch,
                              .rank = executor.rank,
                              .exited = {.status = executor.status}};
    if (!sim_deliver(cluster, &event))
        return;
    for (size_t i = cluster->executor_count; i-- > 0;)
        if (strcmp(cluster->executors[i].job, executor.job) == 0 &&
            cluster->executors[i].epoch == executor.epoch &&
            cluster->executors[i].rank == executor.rank)
            sim_drop_executor(cluster, i);
}

/* One executor takes its next step; a bad one fails instead. */
static void move_executor(struct cluster *cluster, size_t index, bool bad)
{
    struct sim_executor *executor = &cluster->executors[index];
    if (!executor->exited &&
        (executor->stopping || bad || (executor->going && sim_chance(cluster, 30)))) {
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
    if (!sim_deliver(cluster, &event))
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
    event.epoch -= (uint32_t)sim_draw(cluster, 2);
    struct error err = {""};
    int rc = jobs_apply(cluster->jobs, &event, cluster->now_ms, &cluster->actions, &err);
    ck_assert_msg(rc == 0 || rc == -ESTALE || rc == -EINVAL, SIM_AT "%s", SIM_WHERE(cluster),
                  err.text);
    sim_finish_turn(cluster);
}

void cluster_step(struct cluster *cluster)
{
    cluster->step++;
    uint64_t draw = sim_draw(cluster, 100);
    if (draw < 8)
        disturb_worker(cluster);
    else if (draw < 22)
        pass_time(cluster);
    else if (draw < 30)
        submit(cluster);
    else if (draw < 32)
        cancel(cluster);
    else if (draw < 45 && cluster->plan_count)
        answer_plan(cluster, sim_draw(cluster, cluster->plan_count));
    else if (draw < 96 && cluster->executor_count)
        move_executor(cluster, sim_draw(cluster, cluster->executor_count), sim_chance(cluster, 2));
    else if (draw < 99)
        repeat_message(cluster);
    else
        sim_restart(cluster), sim_finish_turn(cluster);
    sim_check(cluster);
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
        sim_finish_turn(cluster);
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
        sim_check(cluster);
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
