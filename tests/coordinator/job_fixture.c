/* job_fixture.c - see job_fixture.h. */
#include "tests/coordinator/job_fixture.h"

#include <stdio.h>
#include <string.h>

struct jobs *jobs;
struct job_actions actions;
struct error err;

static struct hardware_device hardware[DEVICES_MAX];
struct device_view views[DEVICES_MAX];
static char holders[DEVICES_MAX][HOLDER_SIZE];
size_t view_count;

void jobs_setup(void)
{
    jobs = jobs_create(&JOBS_CONFIG_DEFAULT, 1);
    actions = (struct job_actions){0};
    err.text[0] = '\0';
    view_count = 0;
    restarts_max = 0;
    replans = false;
    origin_step = 0;
}

void jobs_teardown(void)
{
    jobs_destroy(jobs);
    jobs_actions_finish(&actions);
}

void add_worker(const char *name, enum hardware_kind kind, unsigned devices)
{
    for (unsigned i = 0; i < devices; i++) {
        hardware[view_count] = (struct hardware_device){.kind = kind, .index = i};
        struct device_view *view = &views[view_count];
        *view = (struct device_view){
            .host = "host", .device = &hardware[view_count], .grantable = true};
        holders[view_count][0] = '\0';
        view->holder = holders[view_count];
        snprintf(view->ref.worker, sizeof view->ref.worker, "%s", name);
        view->ref.instance = 1;
        view->ref.index = i;
        view_count++;
    }
}

void set_speed(const char *worker, double flops)
{
    for (size_t i = 0; i < view_count; i++)
        if (strcmp(views[i].ref.worker, worker) == 0)
            hardware[i].flops = flops;
}

void carry_out(void)
{
    for (size_t i = 0; i < actions.count; i++) {
        const struct job *job = jobs_find(jobs, actions.items[i].job);
        if (actions.items[i].kind != JOB_ACTION_HOLD && actions.items[i].kind != JOB_ACTION_RELEASE)
            continue;
        struct device_ref refs[DEVICES_MAX];
        size_t count = job_devices(job, refs);
        for (size_t k = 0; k < view_count; k++) {
            if (strcmp(views[k].holder, job->id) == 0)
                holders[k][0] = '\0';
            for (size_t r = 0; r < count; r++)
                if (strcmp(refs[r].worker, views[k].ref.worker) == 0 &&
                    refs[r].index == views[k].ref.index)
                    memcpy(holders[k], job->id, sizeof holders[k]);
        }
    }
}

static const char *action_name(enum job_action_kind kind)
{
    static const char *const names[] = {
        [JOB_ACTION_STORE] = "store", [JOB_ACTION_HOLD] = "hold",
        [JOB_ACTION_PLAN] = "plan",   [JOB_ACTION_ASSIGN] = "assign",
        [JOB_ACTION_GO] = "go",       [JOB_ACTION_PAUSE] = "pause",
        [JOB_ACTION_STOP] = "stop",   [JOB_ACTION_QUIESCE] = "quiesce",
        [JOB_ACTION_DROP] = "drop",   [JOB_ACTION_RELEASE] = "release",
    };
    return names[kind];
}

void actions_are(const char *expected)
{
    char text[1024] = "";
    for (size_t i = 0; i < actions.count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s %s", i ? ", " : "",
                 action_name(actions.items[i].kind), actions.items[i].job);
    }
    carry_out();
    jobs_actions_finish(&actions);
    ck_assert_str_eq(text, expected);
}

unsigned restarts_max;
bool replans;
uint64_t origin_step;

static const struct job *accept(unsigned min, unsigned max, enum job_kind kind, const char *named)
{
    const struct job *job = NULL;
    struct job_submission submission = {.key = "",
                                        .name = "gpt",
                                        .user = "ada",
                                        .text = "name: gpt",
                                        .given = named ? "{}" : NULL,
                                        .named = named,
                                        .devices_min = min,
                                        .devices_max = max,
                                        .kind = kind,
                                        .steps = 100,
                                        .restarts_max = restarts_max,
                                        .replans = replans,
                                        .origin = origin_step ? "/c/step-40.epoch-1" : NULL,
                                        .origin_step = origin_step,
                                        .origin_samples = 8 * origin_step};
    ck_assert_msg(jobs_submit(jobs, &submission, 1000, &job, &actions, &err) == 0, "%s", err.text);
    return job;
}

const struct job *submit(unsigned min, unsigned max, enum job_kind kind)
{
    return accept(min, max, kind, NULL);
}

const struct job *submit_for(const char *named, unsigned count)
{
    return accept(count, count, JOB_ANY, named);
}

void schedule(void)
{
    carry_out();
    jobs_actions_finish(&actions);
    jobs_schedule(jobs, views, view_count, 2000, &actions);
}

int apply(struct job_event event)
{
    return jobs_apply(jobs, &event, 3000, &actions, &err);
}

void must(struct job_event event)
{
    ck_assert_msg(apply(event) == 0, "%s", err.text);
}

void stands(const struct job *job, const char *state, const char *reason, const char *words)
{
    ck_assert_str_eq(job_state_name(job->state), state);
    ck_assert_str_eq(job_reason_name(job->reason), reason);
    ck_assert_str_eq(job->words, words);
}

void ranks_are(const struct job *job, const char *expected)
{
    char text[256] = "";
    for (size_t i = 0; i < job->rank_count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s/%u", i ? " " : "",
                 job->ranks[i].device.worker, job->ranks[i].device.index);
    }
    ck_assert_str_eq(text, expected);
}

struct job_event of(enum job_event_kind kind, const struct job *job)
{
    return (struct job_event){.kind = kind, .job = job->id, .epoch = job->epoch};
}

struct job_event planned(const struct job *job, const struct device_ref *refs, size_t count)
{
    struct job_event event = of(JOB_EVENT_PLANNED, job);
    event.plan.id = "p-1";
    event.plan.devices = refs;
    event.plan.device_count = count;
    return event;
}

struct job_event ready(const struct job *job, unsigned rank)
{
    struct job_event event = of(JOB_EVENT_READY, job);
    event.rank = rank;
    return event;
}

struct job_event exited(const struct job *job, unsigned rank, int status, const char *words)
{
    struct job_event event = of(JOB_EVENT_EXITED, job);
    event.rank = rank;
    event.exited.status = status;
    event.words = words;
    return event;
}

struct job_event cancelled(const struct job *job)
{
    struct job_event event = of(JOB_EVENT_CANCEL, job);
    event.words = "ada";
    return event;
}

struct job_event lost(const char *worker)
{
    struct job_event event = {.kind = JOB_EVENT_WORKER_LOST, .words = "silent for 5.00 s"};
    event.worker.name = worker;
    event.worker.instance = 1;
    return event;
}

void reach(const struct job *job, uint64_t step)
{
    struct job_event event = of(JOB_EVENT_PROGRESS, job);
    event.progress.step = step;
    event.progress.loss = 2.5;
    must(event);
}

const struct job *job_in(enum job_state state)
{
    add_worker("a", HARDWARE_CPU, 1);
    add_worker("b", HARDWARE_CPU, 1);
    const struct job *job = submit(2, 2, JOB_ANY);
    if (state >= JOB_PLANNING)
        schedule();
    struct device_ref refs[] = {views[0].ref, views[1].ref};
    if (state >= JOB_STARTING)
        must(planned(job, refs, 2));
    if (state >= JOB_RUNNING) {
        must(ready(job, 0));
        must(ready(job, 1));
    }
    ck_assert_int_eq(job->state, state);
    carry_out();
    jobs_actions_finish(&actions);
    return job;
}
