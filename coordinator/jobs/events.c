/* events.c - what a message does to one job, as a table of handlers.
 *
 * A row says in which states an event is handled, in which it was evidently applied before and
 * is passed over, and leaves the rest to be refused as too late. A handler checks, then writes
 * the record, then names the trigger; it refuses before it has written anything. */
#include "coordinator/jobs/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

#define IN(state) (1u << (state))
#define ENDED (IN(JOB_DONE) | IN(JOB_FAILED) | IN(JOB_CANCELLED))
#define BREAKING (IN(JOB_FAILING) | IN(JOB_REPLANNING))
#define STOPPING (IN(JOB_CANCELLING) | BREAKING)
#define LIVE (IN(JOB_RUNNING) | IN(JOB_PAUSING) | IN(JOB_PAUSED))
#define WAITING (IN(JOB_PENDING) | IN(JOB_PLANNING) | IN(JOB_STARTING))

/* Returns a trigger or a negative errno. */
typedef int handle_cb(struct job *job, const struct job_event *event, struct job_cause *cause,
                      struct error *err);

static const char *words_of(const struct job_event *event)
{
    return event->words ? event->words : "";
}

static int handle_cancel(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    (void)err;
    job->saves = event->save && job->state != JOB_FAILING; /* then there is none left that could */
    job_cause_set(cause, JOB_REASON_CANCELLED, "cancelled by %s", words_of(event));
    return TRIGGER_CANCEL;
}

static int handle_hold(struct job *job, const struct job_event *event, struct job_cause *cause,
                       struct error *err)
{
    (void)err;
    if (job->held[0])
        return TRIGGER_NONE;
    job_cause_set(cause, JOB_REASON_HELD, "held by %s", words_of(event));
    snprintf(job->held, sizeof job->held, "%s", cause->words + strlen("held by "));
    if (job->state == JOB_PLANNING)
        return TRIGGER_HELD;
    if (job->state == JOB_PENDING)
        job_wait_because(job, cause);
    return TRIGGER_NONE;
}

/* Whether devices are free for it now is seen when it is next scheduled. */
static int handle_let_go(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    (void)event, (void)cause, (void)err;
    job->held[0] = '\0';
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
    job_cause_set(cause, JOB_REASON_REPLAN, "%s%s",
                  event->kind == JOB_EVENT_GROW ? "" : "asked for by ", words_of(event));
    return TRIGGER_LEAVE;
}

/* The place of the device among the ranks from `first` on; count when it is not there. */
static size_t find_device(const struct job_rank *ranks, size_t first, size_t count,
                          const struct device_ref *device)
{
    size_t i = first;
    while (i < count && (ranks[i].device.instance != device->instance ||
                         ranks[i].device.index != device->index ||
                         strcmp(ranks[i].device.worker, device->worker) != 0))
        i++;
    return i;
}

/* Put the first `count` of the granted ranks into the plan's order. */
static int order_ranks(struct job_rank *ranks, size_t granted, const struct device_ref *devices,
                       size_t count, struct error *err)
{
    for (size_t rank = 0; rank < count; rank++) {
        size_t found = find_device(ranks, rank, granted, &devices[rank]);
        if (found == granted)
            return error_set(err, -EINVAL,
                             "rank %zu of the plan is on %s/%u, which was not granted or is "
                             "another rank's",
                             rank, devices[rank].worker, devices[rank].index);
        struct job_rank moved = ranks[rank];
        ranks[rank] = ranks[found];
        ranks[found] = moved;
    }
    return 0;
}

/* The plan's ranks train; of the others those that may have state give it, behind them. Returns how
 * many there are. */
static size_t set_roles(struct job_rank *ranks, size_t granted, size_t planned)
{
    size_t count = planned;
    for (size_t i = 0; i < planned; i++)
        ranks[i].role = JOB_RANK_TRAINS;
    for (size_t i = planned; i < granted; i++)
        if (ranks[i].role != JOB_RANK_TRAINS) {
            ranks[count] = ranks[i];
            ranks[count++].role = JOB_RANK_GIVES;
        }
    return count;
}

static int handle_planned(struct job *job, const struct job_event *event, struct job_cause *cause,
                          struct error *err)
{
    size_t count = event->plan.device_count;
    if (count < job->devices_min || count > job_trainers(job))
        return error_set(err, -EINVAL, "%s: the plan uses %zu devices of %zu granted, at least %u",
                         job->id, count, job_trainers(job), job->devices_min);
    struct job_rank *ranks = xcalloc(job->rank_count, sizeof *ranks);
    memcpy(ranks, job->ranks, job->rank_count * sizeof *ranks);
    int rc = order_ranks(ranks, job->rank_count, event->plan.devices, count, err);
    if (rc < 0) {
        free(ranks);
        return error_prefix(err, rc, "%s", job->id);
    }
    free(job->ranks);
    job->ranks = ranks;
    job->rank_count = set_roles(ranks, job->rank_count, count);
    snprintf(job->plan, sizeof job->plan, "%s", event->plan.id);
    job_cause_set(cause, JOB_REASON_NONE, "%s", "");
    return TRIGGER_PLANNED;
}

static int handle_refused(struct job *job, const struct job_event *event, struct job_cause *cause,
                          struct error *err)
{
    (void)job, (void)err;
    job_cause_set(cause, JOB_REASON_PLAN_REFUSED, "%s", words_of(event));
    return TRIGGER_REFUSED;
}

static int handle_unfit(struct job *job, const struct job_event *event, struct job_cause *cause,
                        struct error *err)
{
    (void)err;
    job_cause_set(cause, JOB_REASON_INFEASIBLE_MEMORY, "%s", words_of(event));
    if (event->devices_needed <= job_trainers(job) || event->devices_needed > job->devices_max)
        return TRIGGER_REFUSED;
    job->devices_needed = event->devices_needed;
    return TRIGGER_UNFIT;
}

static int check_rank(const struct job *job, unsigned rank, struct error *err)
{
    if (rank >= job->rank_count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", job->id, rank,
                         job->rank_count - 1);
    return 0;
}

static int handle_ready(struct job *job, const struct job_event *event, struct job_cause *cause,
                        struct error *err)
{
    int rc = check_rank(job, event->rank, err);
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
    return TRIGGER_READY;
}

/* A pause that is over may be reported late. */
static int handle_paused(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    int rc = check_rank(job, event->rank, err);
    if (rc < 0)
        return rc;
    if (event->pause == job->pauses && job->ranks[event->rank].state == JOB_RANK_READY)
        job->ranks[event->rank].state = JOB_RANK_PAUSED;
    for (size_t i = 0; i < job_trainers(job); i++)
        if (job->ranks[i].state != JOB_RANK_PAUSED)
            return TRIGGER_NONE;
    job_cause_set(cause, JOB_REASON_HELD, "paused by %s", job->held);
    return TRIGGER_PAUSED;
}

static int handle_progress(struct job *job, const struct job_event *event, struct job_cause *cause,
                           struct error *err)
{
    (void)cause, (void)err;
    if (event->progress.step < job->step)
        return TRIGGER_NONE;
    job->step = event->progress.step;
    job->loss = event->progress.loss;
    job->tokens_per_s = event->progress.tokens_per_s;
    return TRIGGER_NONE;
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

/* A rank that gives up on another is often heard of before that one's own end: then the reason
 * is put right while the job waits for its last executors. */
static void find_root(struct job *job, const struct job_cause *cause)
{
    if (!(BREAKING & IN(job->state)) || job->reason != JOB_REASON_PEER_LOST)
        return;
    job->reason = cause->reason;
    memcpy(job->words, cause->words, sizeof job->words);
}

/* Ranks that save wait for each other, and one of them is lost: the others are asked again, to stop
 * at once. */
static void save_no_more(struct job *job, struct job_actions *actions)
{
    if (!job->saves)
        return;
    job->saves = false;
    job_act(job, JOB_ACTION_STORE, actions);
    job_resume(job, actions);
}

/* What follows when a rank is lost. What was refused is refused for good: nobody has to stay. */
static enum job_trigger broken(const struct job *job, enum job_reason reason)
{
    bool refused = reason == JOB_REASON_PROGRAM_REFUSED || reason == JOB_REASON_DATA_REFUSED;
    return job->replans && !refused && job->state != JOB_PLANNING ? TRIGGER_LEAVE : TRIGGER_BROKEN;
}

/* Nothing depends on it any more, however it ends. */
static bool has_given(const struct job *job, const struct job_rank *rank)
{
    return rank->role == JOB_RANK_GIVES && (LIVE & IN(job->state));
}

static int handle_exited(struct job *job, const struct job_event *event, struct job_cause *cause,
                         struct error *err)
{
    int rc = check_rank(job, event->rank, err);
    if (rc < 0)
        return rc;
    struct job_rank *rank = &job->ranks[event->rank];
    if (rank->state == JOB_RANK_EXITED || rank->state == JOB_RANK_LOST)
        return TRIGGER_NONE;
    rank->state = JOB_RANK_EXITED;
    rank->status = event->exited.status;
    if (event->exited.step > job->step)
        job->step = event->exited.step;
    const char *when = job->state == JOB_STARTING ? " before it was ready"
                       : job->state == JOB_PAUSED ? " while it was paused"
                                                  : "";
    if (!when[0] && event->exited.status == 0)
        return TRIGGER_NONE;
    if (has_given(job, rank))
        return TRIGGER_NONE;
    char ended[48];
    const char *words = words_of(event);
    snprintf(ended, sizeof ended, "%s", event->exited.stalled ? "stalled" : "failed");
    if (!words[0])
        snprintf(ended, sizeof ended, "exited with status %d", event->exited.status);
    enum job_reason reason = event->exited.refused     ? event->exited.refused
                             : event->exited.damaged   ? JOB_REASON_CHECKPOINT_DAMAGED
                             : event->exited.stalled   ? JOB_REASON_RANK_STALLED
                             : event->exited.by_others ? JOB_REASON_PEER_LOST
                                                       : JOB_REASON_RANK_FAILED;
    job_cause_set(cause, reason, "rank %u on %s/%u %s%s%s%s", event->rank, rank->device.worker,
                  rank->device.index, ended, when, words[0] ? ": " : "", words);
    if (STOPPING & IN(job->state)) {
        if (!event->exited.by_others)
            find_root(job, cause);
        return TRIGGER_NONE;
    }
    return broken(job, reason);
}

/* What else follows from an exit, whatever becomes of the job. */
static void follow_exit(struct job *job, const struct job_event *event, struct job_actions *actions)
{
    if (job->ranks[event->rank].role == JOB_RANK_GIVES)
        job_act(job, JOB_ACTION_HOLD, actions); /* one device less */
    if (event->exited.status != 0 && !event->exited.by_others && (STOPPING & IN(job->state)))
        save_no_more(job, actions);
}

static const struct row {
    const char *name;
    handle_cb *handle;
    unsigned handled, passed; /* sets of states */
    bool epoch;               /* belongs to one */
    bool store;               /* what it writes is kept even where no state changes */
} rows[JOB_EVENTS] = {
    [JOB_EVENT_CANCEL] = {"cancel", handle_cancel, WAITING | LIVE | BREAKING,
                          IN(JOB_CANCELLING) | IN(JOB_CANCELLED), false, false},
    [JOB_EVENT_HOLD] = {"pause", handle_hold, WAITING | LIVE | BREAKING, 0, false, true},
    [JOB_EVENT_LET_GO] = {"resume", handle_let_go, WAITING | LIVE | BREAKING, 0, false, true},
    [JOB_EVENT_REPLAN] = {"replan", handle_replan, IN(JOB_STARTING) | LIVE, IN(JOB_REPLANNING),
                          false, false},
    [JOB_EVENT_GROW] = {"grow", handle_replan, IN(JOB_RUNNING), 0, false, false},
    [JOB_EVENT_PLANNED] = {"planned", handle_planned, IN(JOB_PLANNING),
                           IN(JOB_STARTING) | LIVE | STOPPING, true, false},
    [JOB_EVENT_UNFIT] = {"unfit", handle_unfit, IN(JOB_PLANNING), IN(JOB_PENDING) | IN(JOB_FAILED),
                         true, false},
    [JOB_EVENT_REFUSED] = {"refused", handle_refused, IN(JOB_PLANNING), IN(JOB_FAILED), true,
                           false},
    [JOB_EVENT_READY] = {"ready", handle_ready, IN(JOB_STARTING), LIVE | STOPPING, true, false},
    [JOB_EVENT_PAUSED] = {"paused", handle_paused, IN(JOB_PAUSING),
                          IN(JOB_RUNNING) | IN(JOB_PAUSED) | STOPPING, true, false},
    [JOB_EVENT_PROGRESS] = {"progress", handle_progress, LIVE, STOPPING, true, false},
    [JOB_EVENT_STAGED] = {"staged", handle_staged, LIVE | STOPPING, 0, true, true},
    [JOB_EVENT_UNLISTED] = {"unlisted", handle_unlisted, IN(JOB_STARTING) | STOPPING, 0, true,
                            true},
    [JOB_EVENT_EXITED] = {"exited", handle_exited, IN(JOB_STARTING) | LIVE | STOPPING, ENDED, true,
                          true},
    [JOB_EVENT_WORKER_LOST] = {"worker lost"},
    [JOB_EVENT_WORKER_DRAINS] = {"worker drains"},
    [JOB_EVENT_WORKER_JOINED] = {"worker joined"},
};

const char *job_event_name(enum job_event_kind kind)
{
    return rows[kind].name;
}

int job_event_apply(struct job *job, const struct job_event *event, uint64_t now_ms,
                    struct job_actions *actions, struct error *err)
{
    const struct row *row = &rows[event->kind];
    if (row->epoch && event->epoch != job->epoch)
        return error_set(err, -ESTALE, "%s is in epoch %u: '%s' of epoch %u is refused", job->id,
                         job->epoch, row->name, event->epoch);
    if (row->passed & IN(job->state))
        return 0;
    if (!(row->handled & IN(job->state)))
        return error_set(err, -ESTALE, "%s is %s: it is too late for '%s'", job->id,
                         job_state_name(job->state), row->name);

    struct job_cause cause = {JOB_REASON_NONE, ""};
    int trigger = row->handle(job, event, &cause, err);
    if (trigger < 0)
        return trigger;
    if (row->store)
        job_act(job, JOB_ACTION_STORE, actions);
    if (event->kind == JOB_EVENT_EXITED)
        follow_exit(job, event, actions);
    if (trigger != TRIGGER_NONE)
        job_fire(job, (enum job_trigger)trigger, &cause, now_ms, actions);
    job_settle(job, now_ms, actions);
    return 0;
}

static void lose_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                        struct job_actions *actions)
{
    bool touched = false, runs = false;
    for (size_t i = 0; job->holding && i < job->rank_count; i++) {
        struct job_rank *rank = &job->ranks[i];
        if (rank->device.instance != event->worker.instance || rank->state == JOB_RANK_LOST ||
            strcmp(rank->device.worker, event->worker.name) != 0)
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
                  words_of(event));
    if (runs && STOPPING & IN(job->state)) {
        find_root(job, &cause);
        save_no_more(job, actions);
    } else if (runs) {
        job_fire(job, broken(job, cause.reason), &cause, now_ms, actions);
    }
    job_settle(job, now_ms, actions);
}

/* A job that cannot move while it runs stays to its end. */
static void leave_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                         struct job_actions *actions)
{
    bool touched = false;
    for (size_t i = 0; i < job_trainers(job); i++)
        touched = touched || (job->ranks[i].device.instance == event->worker.instance &&
                              strcmp(job->ranks[i].device.worker, event->worker.name) == 0);
    if (!touched || !job->replans || !((IN(JOB_STARTING) | LIVE) & IN(job->state)))
        return;
    struct job_cause cause;
    job_cause_set(&cause, JOB_REASON_REPLAN, "node %s is drained%s%s", event->worker.name,
                  words_of(event)[0] ? ": " : "", words_of(event));
    job->saves = (LIVE & IN(job->state)) != 0;
    job_fire(job, TRIGGER_LEAVE, &cause, now_ms, actions);
    job_settle(job, now_ms, actions);
}

void job_event_worker(struct job *job, const struct job_event *event, uint64_t now_ms,
                      struct job_actions *actions)
{
    if (event->kind == JOB_EVENT_WORKER_LOST)
        lose_worker(job, event, now_ms, actions);
    else if (event->kind == JOB_EVENT_WORKER_DRAINS)
        leave_worker(job, event, now_ms, actions);
    else if (job->state == JOB_PENDING)
        job->devices_needed = job->devices_min;
}
