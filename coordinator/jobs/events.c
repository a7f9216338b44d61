/* events.c - the effect of a message on one job, as a table of handlers.
 *
 * A row tells in which states an event is handled, and in which it was evidently applied before and
 * is ignored; in all others it is refused as too late. A handler first checks, then writes the
 * record, and returns the trigger; it refuses only before it has written anything.
 *
 * Ranks end one at a time or all of a worker at once. The consequence depends on how the rank ended
 * and on the job's state: after one of them has said that nothing is left to do, there is none; a
 * stopping job waits for it; for a live one it may be the beginning of its end or of its next
 * epoch. Often the first news is of a rank that gave up on another one, so the reason is corrected
 * later. */
#include "coordinator/jobs/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/base/units.h"

/* Returns a trigger or a negative errno. */
typedef int handle_cb(struct job *job, const struct job_event *event, struct job_cause *cause,
                      struct error *err);

static int handle_cancel(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    (void)err;
    if (job_is_unsaved(job) && (LIVE & IN(job->state))) { /* its last step is lost with it */
        job_cause_set(cause, job->reason, "cancelled by %s: %s", event->words, job->words);
        return TRIGGER_BROKEN;
    }
    /* while failing, no executor is left that could save */
    job->saves = event->save && job->state != JOB_FAILING;
    job_cause_set(cause, JOB_REASON_CANCELLED, "cancelled by %s", event->words);
    return TRIGGER_CANCEL;
}

/* Whether the job is being planned for executors that stayed with its state in memory: then it
 * first goes on and is paused afterwards. */
static bool job_has_executors(const struct job *job)
{
    bool stayed = false;
    for (size_t i = 0; i < job->rank_count; i++)
        stayed = stayed || job->ranks[i].role != JOB_RANK_TRAINS;
    return stayed;
}

static int handle_pause(struct job *job, const struct job_event *event, struct job_cause *cause,
                        struct error *err)
{
    (void)err;
    job->releases = job->releases || event->release;
    if (job->held[0])
        return TRIGGER_NONE;
    job_cause_set(cause, JOB_REASON_HELD, "held by %s", event->words);
    /* taken from the cause, which has cleaned the words */
    snprintf(job->held, sizeof job->held, "%s", cause->words + strlen("held by "));
    if (job->state == JOB_PLANNING && !job_has_executors(job))
        return TRIGGER_PAUSE;
    if (job->state == JOB_PENDING)
        job_wait_because(job, cause);
    return TRIGGER_NONE;
}

/* The scheduler finds out whether devices are free for it. */
static int handle_resume(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    (void)event, (void)cause, (void)err;
    job->held[0] = '\0';
    job->releases = false;
    return TRIGGER_NONE;
}

static int handle_replan(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    if (!job->replans)
        return error_set(err, -EINVAL,
                         "%s cannot be moved while it runs: its job file says elastic.replan: "
                         "false",
                         job->id);
    if (job->held[0] && event->kind == JOB_EVENT_REPLAN)
        return error_set(err, -ESTALE, "%s is paused by %s, and keeps its devices: resume it first",
                         job->id, job->held);
    job_cause_set(cause, JOB_REASON_REPLAN, "%s%s",
                  event->kind == JOB_EVENT_GROW ? "" : "asked for by ", event->words);
    return TRIGGER_LEAVE;
}

static int handle_planned(struct job *job, const struct job_event *event, struct job_cause *cause,
                          struct error *err)
{
    int rc = job_order_ranks(job, event->plan.devices, event->plan.device_count, err);
    if (rc < 0)
        return rc;
    snprintf(job->plan, sizeof job->plan, "%s", event->plan.id);
    job_cause_set(cause, JOB_REASON_NONE, "%s", "");
    return TRIGGER_PLANNED;
}

static int handle_refused(struct job *job, const struct job_event *event, struct job_cause *cause,
                          struct error *err)
{
    (void)job, (void)err;
    job_cause_set(cause, JOB_REASON_PLAN_REFUSED, "%s", event->words);
    return TRIGGER_REFUSED;
}

static int handle_unfit(struct job *job, const struct job_event *event, struct job_cause *cause,
                        struct error *err)
{
    (void)err;
    job_cause_set(cause, JOB_REASON_INFEASIBLE_MEMORY, "%s", event->words);
    if (event->devices_needed <= job_trainers(job) || event->devices_needed > job->devices_max)
        return TRIGGER_REFUSED;
    job->devices_needed = event->devices_needed;
    return TRIGGER_UNFIT;
}

static int handle_ready(struct job *job, const struct job_event *event, struct job_cause *cause,
                        struct error *err)
{
    int rc = job_check_rank(job, event->rank, err);
    if (rc < 0)
        return rc;
    if (job->ranks[event->rank].state == JOB_RANK_WAITING)
        job->ranks[event->rank].state = JOB_RANK_READY;
    for (size_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].state != JOB_RANK_READY)
            return TRIGGER_NONE;
    job_cause_set(cause, JOB_REASON_NONE, "%s", "");
    if (job->replans)
        job->step = event->step;
    job->step_is_old = false;
    job->began_step = job->step;
    if (job->step < job->skipped_from + job->skipped) /* the skipped steps are run again */
        job->skipped = job->step >= job->skipped_from ? job->step - job->skipped_from + 1 : 0;
    return TRIGGER_READY;
}

/* A report of a pause that is already over may arrive late. */
static int handle_paused(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    int rc = job_check_rank(job, event->rank, err);
    if (rc < 0)
        return rc;
    if (event->paused.number == job->pauses && job->ranks[event->rank].state == JOB_RANK_READY)
        job->ranks[event->rank].state = JOB_RANK_PAUSED;
    for (size_t i = 0; i < job_trainers(job); i++)
        if (job->ranks[i].state != JOB_RANK_PAUSED)
            return TRIGGER_NONE;
    job->step = event->paused.step;
    job_cause_set(cause, JOB_REASON_HELD, "paused by %s", job->held);
    return TRIGGER_PAUSED;
}

static int handle_progress(struct job *job, const struct job_event *event, struct job_cause *cause,
                           struct error *err)
{
    (void)cause, (void)err;
    if (event->progress.step < job->step)
        return TRIGGER_NONE;
    if (!event->progress.skipped)
        job->skipped = 0;
    else if (event->progress.step > job->step && job->skipped++ == 0)
        job->skipped_from = event->progress.step;
    if (event->progress.step > job->step) {
        job->run_tokens += event->progress.tokens;
        job->run_s += event->progress.time_s;
    }
    job->step_is_old = false;
    job->step = event->progress.step;
    job->loss = event->progress.loss;
    job->tokens_per_s = event->progress.tokens_per_s;
    return TRIGGER_NONE;
}

static int handle_not_finite(struct job *job, const struct job_event *event,
                             struct job_cause *cause, struct error *err)
{
    (void)event, (void)err;
    job_cause_set(cause, JOB_REASON_NOT_FINITE,
                  "no step from %llu to %llu had a finite loss and gradient (elastic.max_skipped)",
                  (unsigned long long)job->skipped_from, (unsigned long long)job->step);
    return TRIGGER_BROKEN;
}

static int handle_staged(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    (void)cause, (void)err;
    if (event->step <= job->checkpoint_step)
        return TRIGGER_NONE;
    job->checkpoint_step = event->step;
    job->checkpoint_epoch = job->epoch;
    if (event->step > job->step)
        job->step = event->step;
    if (job_is_unsaved(job) && (LIVE & IN(job->state)))
        job_wait_because(job, &(struct job_cause){JOB_REASON_NONE, ""});
    return TRIGGER_NONE;
}

static int handle_unsaved(struct job *job, const struct job_event *event, struct job_cause *cause,
                          struct error *err)
{
    (void)err;
    job_cause_set(cause, event->unsaved.reason, "%s", event->words);
    job_wait_because(job, cause);
    return TRIGGER_NONE;
}

static int handle_unlisted(struct job *job, const struct job_event *event, struct job_cause *cause,
                           struct error *err)
{
    (void)cause, (void)err;
    job->checkpoint_step = event->older.step;
    job->checkpoint_epoch = event->older.epoch;
    return TRIGGER_NONE;
}

/* While the job waits for its last executors, replace the reason by what really happened. */
static void job_find_root(struct job *job, const struct job_cause *cause)
{
    if (!(BREAKING & IN(job->state)) || job->reason != JOB_REASON_PEER_LOST)
        return;
    job->reason = cause->reason;
    memcpy(job->words, cause->words, sizeof job->words);
}

/* Ranks that save wait for each other, and one of them is lost: ask the others again, to stop at
 * once. */
static void job_save_no_more(struct job *job, struct job_actions *actions)
{
    if (!job->saves)
        return;
    job->saves = false;
    job_act(job, JOB_ACTION_STORE, actions);
    job_resume(job, actions);
}

/* The trigger when a rank is lost. A refusal is final, and so is that the last step was not saved:
 * no executor has to stay. */
static enum job_trigger loss_trigger(const struct job *job, enum job_reason reason)
{
    bool refused = reason == JOB_REASON_PROGRAM_REFUSED || reason == JOB_REASON_DATA_REFUSED ||
                   reason == JOB_REASON_NO_SPACE || reason == JOB_REASON_NOT_SAVED ||
                   reason == JOB_REASON_NOT_FINITE;
    return job->replans && !refused && job->state != JOB_PLANNING ? TRIGGER_LEAVE : TRIGGER_BROKEN;
}

/* Whether nothing depends on the rank any more, however it ends. */
static bool rank_has_given(const struct job *job, const struct job_rank *rank)
{
    return rank->role == JOB_RANK_GIVES && (LIVE & IN(job->state));
}

static enum job_reason exit_reason(const struct job *job, const struct job_event *event)
{
    if (event->exited.refused)
        return event->exited.refused;
    if (event->exited.unsaved)
        return job_is_unsaved(job) ? job->reason : JOB_REASON_NOT_SAVED;
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
static const char *exit_when(const struct job *job)
{
    if (job->state == JOB_STARTING)
        return " before it was ready";
    return job->state == JOB_PAUSED ? " while it was paused" : "";
}

static void exit_print(const struct job *job, const struct job_event *event, char *out, size_t size)
{
    enum job_reason reason = exit_reason(job, event);
    if (reason == JOB_REASON_OUT_OF_MEMORY)
        snprintf(out, size, "ran out of memory");
    else if (event->words[0])
        snprintf(out, size, "%s", reason == JOB_REASON_RANK_STALLED ? "stalled" : "failed");
    else
        snprintf(out, size, "exited with status %d", event->exited.status);
}

/* What the next epoch does about it: ", and is planned with at most 1.7 GiB there". */
static void exit_print_memory(const struct job_event *event, char *out, size_t size)
{
    char bytes[32];
    out[0] = '\0';
    if (event->exited.memory_max > 0)
        snprintf(out, size, ", and is planned with at most %s there",
                 units_print_bytes(bytes, sizeof bytes, (double)event->exited.memory_max));
}

/* As in "rank 1 on node-b/0 failed before it was ready: no such file". */
static void exit_explain(const struct job *job, const struct job_event *event,
                         struct job_cause *cause)
{
    const struct device_ref *device = &job->ranks[event->rank].device;
    char ended[48], memory[80];
    exit_print(job, event, ended, sizeof ended);
    exit_print_memory(event, memory, sizeof memory);
    job_cause_set(cause, exit_reason(job, event), "rank %u on %s/%u %s%s%s%s%s", event->rank,
                  device->worker, device->index, ended, exit_when(job), memory,
                  event->words[0] ? ": " : "", event->words);
}

/* The last step is finished, and nothing is left to do. */
static void job_finish(struct job *job, const struct job_event *event)
{
    job->finished = true;
    job->step = job->steps;
    job->skipped = 0;
    if (!isnan(event->exited.loss))
        job->loss = event->exited.loss;
}

static int handle_exited(struct job *job, const struct job_event *event, struct job_cause *cause,
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
    if (event->exited.finished)
        job_finish(job, event);
    bool done = event->exited.status == 0 && !exit_when(job)[0];
    if (done || job->finished || rank_has_given(job, rank))
        return TRIGGER_NONE;
    exit_explain(job, event, cause);
    if (!(STOPPING & IN(job->state)))
        return loss_trigger(job, cause->reason);
    if (!event->exited.by_others)
        job_find_root(job, cause);
    return TRIGGER_NONE;
}

static void follow_exited(struct job *job, const struct job_event *event,
                          struct job_actions *actions)
{
    if (job->ranks[event->rank].role == JOB_RANK_GIVES)
        job_act(job, JOB_ACTION_HOLD, actions); /* one device less */
    if (event->exited.status != 0 && !event->exited.by_others && (STOPPING & IN(job->state)))
        job_save_no_more(job, actions);
}

enum row_flags {
    OF_EPOCH = 1, /* the event belongs to an epoch and is refused in any other */
    STORED = 2,   /* what it writes is stored even if the state does not change */
};

static const struct row {
    const char *name;
    handle_cb *handle;
    unsigned handled, passed; /* sets of states */
    unsigned flags;
    /* (optional) What else follows, whatever the trigger; runs before it. */
    void (*follow)(struct job *job, const struct job_event *event, struct job_actions *actions);
} rows[JOB_EVENTS] = {
    [JOB_EVENT_CANCEL] = {"cancel", handle_cancel, LASTING, IN(JOB_CANCELLING) | IN(JOB_CANCELLED)},
    [JOB_EVENT_PAUSE] = {"pause", handle_pause, LASTING, 0, STORED},
    [JOB_EVENT_RESUME] = {"resume", handle_resume, LASTING, 0, STORED},
    [JOB_EVENT_REPLAN] = {"replan", handle_replan, IN(JOB_STARTING) | LIVE, IN(JOB_REPLANNING)},
    [JOB_EVENT_GROW] = {"grow", handle_replan, IN(JOB_RUNNING), 0},
    [JOB_EVENT_PLANNED] = {"planned", handle_planned, IN(JOB_PLANNING),
                           IN(JOB_STARTING) | LIVE | STOPPING, OF_EPOCH},
    [JOB_EVENT_UNFIT] = {"unfit", handle_unfit, IN(JOB_PLANNING), IN(JOB_PENDING) | IN(JOB_FAILED),
                         OF_EPOCH},
    [JOB_EVENT_REFUSED] = {"refused", handle_refused, IN(JOB_PLANNING), IN(JOB_FAILED), OF_EPOCH},
    [JOB_EVENT_READY] = {"ready", handle_ready, IN(JOB_STARTING), LIVE | STOPPING, OF_EPOCH},
    [JOB_EVENT_PAUSED] = {"paused", handle_paused, IN(JOB_PAUSING),
                          IN(JOB_RUNNING) | IN(JOB_PAUSED) | STOPPING, OF_EPOCH},
    [JOB_EVENT_PROGRESS] = {"progress", handle_progress, LIVE, STOPPING, OF_EPOCH},
    [JOB_EVENT_NOT_FINITE] = {"not finite", handle_not_finite, LIVE, STOPPING, OF_EPOCH},
    [JOB_EVENT_STAGED] = {"staged", handle_staged, LIVE | STOPPING, 0, OF_EPOCH | STORED},
    [JOB_EVENT_UNSAVED] = {"unsaved", handle_unsaved, LIVE, STOPPING, OF_EPOCH | STORED},
    [JOB_EVENT_UNLISTED] = {"unlisted", handle_unlisted, IN(JOB_STARTING) | STOPPING, 0,
                            OF_EPOCH | STORED},
    [JOB_EVENT_EXITED] = {"exited", handle_exited, IN(JOB_STARTING) | LIVE | STOPPING, ENDED,
                          OF_EPOCH | STORED, follow_exited},
};

/* An event of an epoch is late: it was true once. A request to a job may still be possible
 * later. */
static bool event_is_early(const struct row *row, const struct job *job)
{
    return !(row->flags & OF_EPOCH) && (IN(job->state) & WAITING);
}

/* Who wants an ended job to go on can have that, as another job. */
static int event_refuse(const struct row *row, const struct job *job, struct error *err)
{
    char how[160] = "";
    if (row->handle == handle_resume && job_ended(job) && job->checkpoint_step > 0)
        snprintf(how, sizeof how,
                 "; its step %llu is saved, and 'gimbal submit --from %s' goes on from there",
                 (unsigned long long)job->checkpoint_step, job->id);
    return error_set(err, -ESTALE, "%s is %s: it is too %s for '%s'%s", job->id,
                     job_state_name(job->state), event_is_early(row, job) ? "early" : "late",
                     row->name, how);
}

int job_event_apply(struct job *job, const struct job_event *event, uint64_t now_ms,
                    struct job_actions *actions, struct error *err)
{
    const struct row *row = &rows[event->kind];
    if ((row->flags & OF_EPOCH) && event->epoch != job->epoch)
        return error_set(err, -ESTALE, "%s is in epoch %u: '%s' of epoch %u is refused", job->id,
                         job->epoch, row->name, event->epoch);
    if (row->passed & IN(job->state))
        return 0;
    if (!(row->handled & IN(job->state)))
        return event_refuse(row, job, err);

    struct job_cause cause = {JOB_REASON_NONE, ""};
    int trigger = row->handle(job, event, &cause, err);
    if (trigger < 0)
        return trigger;
    if (row->flags & STORED)
        job_act(job, JOB_ACTION_STORE, actions);
    if (row->follow)
        row->follow(job, event, actions);
    if (trigger != TRIGGER_NONE)
        job_fire(job, (enum job_trigger)trigger, &cause, now_ms, actions);
    job_settle(job, now_ms, actions);
    return 0;
}

static bool rank_is_on(const struct job_rank *rank, const struct job_event *event)
{
    return rank->device.instance == event->worker.instance &&
           strcmp(rank->device.worker, event->worker.name) == 0;
}

static void job_lose_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                            struct job_actions *actions)
{
    bool touched = false, runs = false;
    for (size_t i = 0; job->holding && i < job->rank_count; i++) {
        struct job_rank *rank = &job->ranks[i];
        if (rank->state == JOB_RANK_LOST || !rank_is_on(rank, event))
            continue;
        touched = true;
        runs = runs || (rank->state != JOB_RANK_EXITED && !rank_has_given(job, rank));
        rank->state = JOB_RANK_LOST;
    }
    if (!touched)
        return;
    job_act(job, JOB_ACTION_STORE, actions);
    struct job_cause cause;
    job_cause_set(&cause, JOB_REASON_WORKER_LOST, "worker %s was lost: %s", event->worker.name,
                  event->words);
    if (runs && !job->finished && STOPPING & IN(job->state)) {
        job_find_root(job, &cause);
        job_save_no_more(job, actions);
    } else if (runs && !job->finished) {
        job_fire(job, loss_trigger(job, cause.reason), &cause, now_ms, actions);
    }
    job_settle(job, now_ms, actions);
}

/* A job that cannot move while it runs stays to its end; one that is still being planned has
 * nothing on the devices yet. */
static void job_leave_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                             struct job_actions *actions)
{
    bool plans = job->state == JOB_PLANNING, touched = false;
    bool moves = job->replans && !job->finished && ((IN(JOB_STARTING) | LIVE) & IN(job->state));
    for (size_t i = 0; i < job_trainers(job); i++)
        touched = touched || rank_is_on(&job->ranks[i], event);
    if (!touched || !(plans || moves))
        return;
    struct job_cause cause;
    job_cause_set(&cause, JOB_REASON_REPLAN, "node %s is drained%s%s", event->worker.name,
                  event->words[0] ? ": " : "", event->words);
    job->saves = (LIVE & IN(job->state)) != 0;
    job_fire(job, plans ? TRIGGER_BROKEN : TRIGGER_LEAVE, &cause, now_ms, actions);
    job_settle(job, now_ms, actions);
}

void job_event_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions)
{
    if (event->kind == JOB_EVENT_WORKER_LOST)
        job_lose_worker(job, event, now_ms, actions);
    else if (event->kind == JOB_EVENT_WORKER_DRAINS)
        job_leave_worker(job, event, now_ms, actions);
    else if (job->state == JOB_PENDING)
        job->devices_needed = job->devices_min; /* what did not fit may fit on the new worker */
}
