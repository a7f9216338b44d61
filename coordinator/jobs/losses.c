/* losses.c - ranks that end, one at a time or all of a worker at once.
 *
 * The consequence depends on how the rank ended and on the job's state: a stopping job waits for
 * it; for a live one it may be the beginning of its end or of its next epoch. Often the first news
 * is of a rank that gave up on another one, so the reason is corrected later. */
#include "coordinator/jobs/losses.h"

#include <stdio.h>
#include <string.h>

#include "common/base/units.h"
#include "coordinator/jobs/ranks.h"
#include "coordinator/jobs/states.h"

/* While the job waits for its last executors, replace the reason by what really happened. */
static void find_root(struct job *job, const struct job_cause *cause)
{
    if (!(BREAKING & IN(job->state)) || job->reason != JOB_REASON_PEER_LOST)
        return;
    job->reason = cause->reason;
    memcpy(job->words, cause->words, sizeof job->words);
}

/* Ranks that save wait for each other, and one of them is lost: ask the others again, to stop at
 * once. */
static void save_no_more(struct job *job, struct job_actions *actions)
{
    if (!job->saves)
        return;
    job->saves = false;
    job_act(job, JOB_ACTION_STORE, actions);
    job_resume(job, actions);
}

/* The trigger when a rank is lost. A refusal is final, so no executor has to stay. */
static enum job_trigger broken(const struct job *job, enum job_reason reason)
{
    bool refused = reason == JOB_REASON_PROGRAM_REFUSED || reason == JOB_REASON_DATA_REFUSED;
    return job->replans && !refused && job->state != JOB_PLANNING ? TRIGGER_LEAVE : TRIGGER_BROKEN;
}

/* Whether nothing depends on the rank any more, however it ends. */
static bool has_given(const struct job *job, const struct job_rank *rank)
{
    return rank->role == JOB_RANK_GIVES && (LIVE & IN(job->state));
}

static enum job_reason reason_of(const struct job_event *event)
{
    if (event->exited.refused)
        return event->exited.refused;
    if (event->exited.damaged)
        return JOB_REASON_CHECKPOINT_DAMAGED;
    if (event->exited.stalled)
        return JOB_REASON_RANK_STALLED;
    if (event->exited.out_of_memory)
        return JOB_REASON_OUT_OF_MEMORY;
    return event->exited.by_others ? JOB_REASON_PEER_LOST : JOB_REASON_RANK_FAILED;
}

/* A phrase such as " while it was paused" if an exit at this time is a loss even with status 0;
 * otherwise "". */
static const char *when_of(const struct job *job)
{
    if (job->state == JOB_STARTING)
        return " before it was ready";
    return job->state == JOB_PAUSED ? " while it was paused" : "";
}

static void print_end(const struct job_event *event, char *out, size_t size)
{
    enum job_reason reason = reason_of(event);
    if (reason == JOB_REASON_OUT_OF_MEMORY)
        snprintf(out, size, "ran out of memory");
    else if (event->words[0])
        snprintf(out, size, "%s", reason == JOB_REASON_RANK_STALLED ? "stalled" : "failed");
    else
        snprintf(out, size, "exited with status %d", event->exited.status);
}

/* What the next epoch does about it: ", and is planned with at most 1.7 GiB there". */
static void print_memory(const struct job_event *event, char *out, size_t size)
{
    char bytes[32];
    out[0] = '\0';
    if (event->exited.memory_max > 0)
        snprintf(out, size, ", and is planned with at most %s there",
                 units_print_bytes(bytes, sizeof bytes, (double)event->exited.memory_max));
}

/* As in "rank 1 on node-b/0 failed before it was ready: no such file". */
static void explain(const struct job *job, const struct job_event *event, struct job_cause *cause)
{
    const struct device_ref *device = &job->ranks[event->rank].device;
    char ended[48], memory[80];
    print_end(event, ended, sizeof ended);
    print_memory(event, memory, sizeof memory);
    job_cause_set(cause, reason_of(event), "rank %u on %s/%u %s%s%s%s%s", event->rank,
                  device->worker, device->index, ended, when_of(job), memory,
                  event->words[0] ? ": " : "", event->words);
}

int job_lose_rank(struct job *job, const struct job_event *event, struct job_cause *cause,
                  struct error *err)
{
    int rc = job_check_rank(job, event->rank, err);
    if (rc < 0)
        return rc;
    struct job_rank *rank = &job->ranks[event->rank];
    if (rank->state == JOB_RANK_EXITED || rank->state == JOB_RANK_LOST)
        return TRIGGER_NONE;
    rank->state = JOB_RANK_EXITED;
    rank->status = event->exited.status;
    if (event->exited.step > job->step)
        job->step = event->exited.step;
    bool done = event->exited.status == 0 && !when_of(job)[0];
    if (done || has_given(job, rank))
        return TRIGGER_NONE;
    explain(job, event, cause);
    if (!(STOPPING & IN(job->state)))
        return broken(job, cause->reason);
    if (!event->exited.by_others)
        find_root(job, cause);
    return TRIGGER_NONE;
}

void job_follow_exit(struct job *job, const struct job_event *event, struct job_actions *actions)
{
    if (job->ranks[event->rank].role == JOB_RANK_GIVES)
        job_act(job, JOB_ACTION_HOLD, actions); /* one device less */
    if (event->exited.status != 0 && !event->exited.by_others && (STOPPING & IN(job->state)))
        save_no_more(job, actions);
}

static bool is_on(const struct job_rank *rank, const struct job_event *event)
{
    return rank->device.instance == event->worker.instance &&
           strcmp(rank->device.worker, event->worker.name) == 0;
}

void job_lose_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                     struct job_actions *actions)
{
    bool touched = false, runs = false;
    for (size_t i = 0; job->holding && i < job->rank_count; i++) {
        struct job_rank *rank = &job->ranks[i];
        if (rank->state == JOB_RANK_LOST || !is_on(rank, event))
            continue;
        touched = true;
        runs = runs || (rank->state != JOB_RANK_EXITED && !has_given(job, rank));
        rank->state = JOB_RANK_LOST;
    }
    if (!touched)
        return;
    job_act(job, JOB_ACTION_STORE, actions);
    struct job_cause cause;
    job_cause_set(&cause, JOB_REASON_WORKER_LOST, "worker %s was lost: %s", event->worker.name,
                  event->words);
    if (runs && STOPPING & IN(job->state)) {
        find_root(job, &cause);
        save_no_more(job, actions);
    } else if (runs) {
        job_fire(job, broken(job, cause.reason), &cause, now_ms, actions);
    }
    job_settle(job, now_ms, actions);
}

/* A job that cannot move while it runs stays to its end; one that is still being planned has
 * nothing on the devices yet. */
void job_leave_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions)
{
    bool plans = job->state == JOB_PLANNING, touched = false;
    bool moves = job->replans && ((IN(JOB_STARTING) | LIVE) & IN(job->state));
    for (size_t i = 0; i < job_trainers(job); i++)
        touched = touched || is_on(&job->ranks[i], event);
    if (!touched || !(plans || moves))
        return;
    struct job_cause cause;
    job_cause_set(&cause, JOB_REASON_REPLAN, "node %s is drained%s%s", event->worker.name,
                  event->words[0] ? ": " : "", event->words);
    job->saves = (LIVE & IN(job->state)) != 0;
    job_fire(job, plans ? TRIGGER_BROKEN : TRIGGER_LEAVE, &cause, now_ms, actions);
    job_settle(job, now_ms, actions);
}
