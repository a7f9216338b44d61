/* replan.c - one event per replan or restart, with both plans and the duration of each phase. */
#include "coordinator/turn/replan.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "coordinator/planning/planning.h"

#include <stdio.h>
#include <string.h>

static struct replan_side replan_side_of(const struct job *job, const struct planning *planning)
{
    struct replan_side side = {.devices = job_trainers(job),
                               .safety = safety_name(planning->safety.kind)};
    memcpy(side.plan, job->plan, sizeof side.plan);
    if (planning->plan)
        plan_print(side.division, sizeof side.division, planning->plan);
    return side;
}

/* Whether the job is broken. A job with no ranks left to stop waits for devices at once. */
static bool job_is_broken(const struct job *job)
{
    return job->state == JOB_REPLANNING || job->state == JOB_FAILING ||
           (job->state == JOB_PENDING && job->again[0]);
}

/* A job that breaks again before it has finished a step is still in the same replan. */
static void replan_begin(struct replan *replan, const struct job *job,
                         const struct planning *planning, uint64_t now_ms)
{
    if (replan->going)
        return;
    *replan = (struct replan){.going = true,
                              .before = replan_side_of(job, planning),
                              .reason = job->reason,
                              .broke_ms = now_ms,
                              .reached = job->broke_step,
                              .reached_more = job->step_is_old};
    memcpy(replan->cause, job->words, sizeof replan->cause);
}

void replan_follow(struct replan *replan, const struct job *job, const struct planning *planning,
                   uint64_t now_ms)
{
    bool broken = job_is_broken(job);
    if (broken)
        replan_begin(replan, job, planning, now_ms);
    if (!replan->going)
        return;
    /* What broke first may not be the cause, which is known once all ranks have ended. */
    if (job->state == JOB_PENDING && job->broke[0]) {
        memcpy(replan->cause, job->broke, sizeof replan->cause);
        replan->reason = job->broke_reason;
    }
    if (broken && job->step > replan->reached)
        replan->reached = job->step;
    if (job->state == JOB_PENDING) {
        replan->left_ms = now_ms;
        replan->granted_ms = replan->planned_ms = replan->ready_ms = 0;
    }
    if (job->state == JOB_PLANNING) {
        replan->granted_ms = now_ms;
        replan->prepare_s = replan->fill_s = 0;
        replan->bytes = 0;
        replan->inherited = 0;
    }
    if (job->state == JOB_STARTING) {
        replan->planned_ms = now_ms;
        replan->after = replan_side_of(job, planning);
    }
    /* one that is held goes on to pause in the same turn */
    if ((job->state == JOB_RUNNING || job->state == JOB_PAUSING) && replan->ready_ms == 0)
        replan->ready_ms = now_ms;
    if (job_ended(job))
        replan->going = false;
}

void replan_ready(struct replan *replan, const Gimbal__ReadyRequest *ready)
{
    if (ready->prepare_s > replan->prepare_s)
        replan->prepare_s = ready->prepare_s;
    if (ready->fill_s > replan->fill_s)
        replan->fill_s = ready->fill_s;
    replan->bytes += ready->bytes_arrived;
    replan->from_memory = ready->from_memory;
    replan->inherited += ready->inherited ? 1 : 0;
    replan->step = ready->step;
}

/* Of a phase that began and ended. */
static double replan_seconds(uint64_t from_ms, uint64_t to_ms)
{
    return from_ms > 0 && to_ms > from_ms ? (double)(to_ms - from_ms) * 1e-3 : 0;
}

char *replan_end(struct replan *replan, const struct job *job, uint64_t now_ms, json_t **json)
{
    const struct replan_side *before = &replan->before, *after = &replan->after;
    uint64_t lost = replan->reached > replan->step ? replan->reached - replan->step : 0;
    bool at_least = replan->reached_more && !replan->from_memory;
    double quiesce_s = replan_seconds(replan->broke_ms, replan->left_ms);
    double wait_s = replan_seconds(replan->left_ms, replan->granted_ms);
    double plan_s = replan_seconds(replan->granted_ms, replan->planned_ms);
    double start_s = replan_seconds(replan->planned_ms, replan->ready_ms);
    double step_s = replan_seconds(replan->ready_ms, now_ms),
           all_s = replan_seconds(replan->broke_ms, now_ms);
    char bytes[32], inherited[64] = "", from[64] = "begins at its first step again";
    if (replan->from_memory || replan->step > 0)
        snprintf(from, sizeof from, "continues after step %llu from %s",
                 (unsigned long long)replan->step, replan->from_memory ? "memory" : "the disk");
    if (replan->inherited > 0)
        snprintf(inherited, sizeof inherited, " (%u rank%s from what a dead executor left)",
                 replan->inherited, replan->inherited == 1 ? "" : "s");
    replan->going = false;
    replan->took_s = all_s;
    replan->lost = lost;
    *json = json_pack(
        "{s:s, s:{s:s, s:s, s:s?, s:I}, s:{s:s, s:s, s:s?, s:I}, s:I, s:I, s:b, s:b, s:i, s:I, "
        "s:f, "
        "s:f, s:f, s:f,"
        " s:f, s:f, s:f, s:f}",
        "cause", replan->cause, "before", "plan", before->plan, "division", before->division,
        "safety", before->safety, "devices", (json_int_t)before->devices, "after", "plan",
        after->plan, "division", after->division, "safety", after->safety, "devices",
        (json_int_t)after->devices, "step", (json_int_t)replan->step, "steps_lost",
        (json_int_t)lost, "steps_lost_at_least", at_least, "from_memory", replan->from_memory,
        "inherited", (int)replan->inherited, "bytes_moved", (json_int_t)replan->bytes, "quiesce_s",
        quiesce_s, "wait_s", wait_s, "plan_s", plan_s, "start_s", start_s, "prepare_s",
        replan->prepare_s, "move_s", replan->fill_s, "step_s", step_s, "total_s", all_s);
    return xasprintf(
        "%s: %s; %s on %zu device%s, then %s on %zu; %s%s, %s%llu steps lost, %s moved; "
        "%.0f ms: quiesce %.0f, wait %.0f, plan %.0f, start %.0f (prepare "
        "%.0f, move "
        "%.0f), first step %.0f",
        job->id, replan->cause, before->division, before->devices, before->devices == 1 ? "" : "s",
        after->division, after->devices, from, inherited, at_least ? "at least " : "",
        (unsigned long long)lost, units_print_bytes(bytes, sizeof bytes, (double)replan->bytes),
        all_s * 1e3, quiesce_s * 1e3, wait_s * 1e3, plan_s * 1e3, start_s * 1e3,
        replan->prepare_s * 1e3, replan->fill_s * 1e3, step_s * 1e3);
}
