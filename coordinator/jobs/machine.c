/* machine.c - the life of a job as two tables and a small interpreter.
 *
 * `transitions` tells which trigger leads from which state to which; `entering` lists the actions
 * of entering a state. Callers have checked that there is a row (events.c refuses what comes too
 * late), so a missing row is a bug.
 *
 * A job whose epoch ended badly may be worth another try. If no executors stay, it restarts from
 * the newest listed checkpoint, or at step 0, and the words say which. A checkpoint that cannot be
 * loaded is skipped in favour of the one before; if none is left the job fails: what it had learned
 * is not given up silently.
 *
 * Restarts are counted as long as the job gets no further than before, so a machine that fails now
 * and then does not end a long job. A lost worker, a rank that held up the others and a rank that
 * gave up on another one say nothing about the job: it restarts as long as its budget
 * (elastic.max_restarts) lasts. So does a job whose rank ran out of memory: its next plan uses less
 * memory there. A fault of a rank itself may come from the program and then recurs at the same
 * step, or from somebody's signal and then does not, and there is no way to tell: it is retried
 * only a few times, so that a bad job does not loop. The same holds for consecutive steps that are
 * not finite; of the state that led to them nothing is kept, not even in memory. A refusal, of a
 * program or of data, is final.
 *
 * What ranks agreed on in the last step all of them know, and a rank that trains ends only when the
 * last checkpoint is listed. So the word of a single one that nothing is left to do ends the job,
 * whatever becomes of the others; they are waited for, because they may have more to tell. Until
 * the job has ended, they keep their states: if nobody comes to give that word, the next epoch
 * begins after the last step and does the rest. */
#include "coordinator/jobs/internal.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/base/text.h"

struct transition {
    enum job_state from;
    enum job_trigger on;
    enum job_state to;
};

/* clang-format off */
static const struct transition transitions[] = {
    {JOB_NEW, TRIGGER_SUBMITTED, JOB_PENDING},
    {JOB_PENDING, TRIGGER_GRANTED, JOB_PLANNING},
    {JOB_PENDING, TRIGGER_CANCEL, JOB_CANCELLED},
    {JOB_PLANNING, TRIGGER_PLANNED, JOB_STARTING},
    {JOB_PLANNING, TRIGGER_UNFIT, JOB_PENDING},
    {JOB_PLANNING, TRIGGER_REFUSED, JOB_FAILED},
    {JOB_PLANNING, TRIGGER_BROKEN, JOB_PENDING}, /* nothing has started: wait for other devices */
    {JOB_PLANNING, TRIGGER_PAUSE, JOB_PENDING},
    {JOB_PLANNING, TRIGGER_CANCEL, JOB_CANCELLED},
    {JOB_STARTING, TRIGGER_READY, JOB_RUNNING},
    {JOB_STARTING, TRIGGER_BROKEN, JOB_FAILING},
    {JOB_STARTING, TRIGGER_LEAVE, JOB_REPLANNING},
    {JOB_STARTING, TRIGGER_CANCEL, JOB_CANCELLING},
    {JOB_RUNNING, TRIGGER_GONE, JOB_DONE},
    {JOB_RUNNING, TRIGGER_BROKEN, JOB_FAILING},
    {JOB_RUNNING, TRIGGER_LEAVE, JOB_REPLANNING},
    {JOB_RUNNING, TRIGGER_PAUSE, JOB_PAUSING},
    {JOB_RUNNING, TRIGGER_CANCEL, JOB_CANCELLING},
    {JOB_PAUSING, TRIGGER_PAUSED, JOB_PAUSED},
    {JOB_PAUSING, TRIGGER_GONE, JOB_DONE}, /* its last step was faster */
    {JOB_PAUSING, TRIGGER_BROKEN, JOB_FAILING},
    {JOB_PAUSING, TRIGGER_LEAVE, JOB_REPLANNING},
    {JOB_PAUSING, TRIGGER_CANCEL, JOB_CANCELLING},
    {JOB_PAUSED, TRIGGER_RESUME, JOB_RUNNING},
    {JOB_PAUSED, TRIGGER_RELEASE, JOB_RELEASING},
    {JOB_PAUSED, TRIGGER_BROKEN, JOB_FAILING},
    {JOB_PAUSED, TRIGGER_LEAVE, JOB_REPLANNING},
    {JOB_PAUSED, TRIGGER_CANCEL, JOB_CANCELLING},
    {JOB_RELEASING, TRIGGER_GONE, JOB_PENDING},
    {JOB_RELEASING, TRIGGER_CANCEL, JOB_CANCELLING},
    {JOB_CANCELLING, TRIGGER_GONE, JOB_CANCELLED},
    {JOB_FAILING, TRIGGER_GONE, JOB_FAILED},
    {JOB_FAILING, TRIGGER_FINISHED, JOB_DONE},
    {JOB_FAILING, TRIGGER_AGAIN, JOB_PENDING},
    {JOB_FAILING, TRIGGER_CANCEL, JOB_CANCELLING}, /* it must not start again */
    {JOB_REPLANNING, TRIGGER_GONE, JOB_FAILED},
    {JOB_REPLANNING, TRIGGER_FINISHED, JOB_DONE},
    {JOB_REPLANNING, TRIGGER_AGAIN, JOB_PENDING},
    {JOB_REPLANNING, TRIGGER_CANCEL, JOB_CANCELLING},
};

/* clang-format on */

#define ENTERING_MAX 4

/* Each list begins with what must be safe before the rest is done; 0, which is STORE again, ends
 * it. */
static const enum job_action_kind entering[JOB_STATES][ENTERING_MAX] = {
    [JOB_PENDING] = {JOB_ACTION_STORE, JOB_ACTION_RELEASE},
    [JOB_PLANNING] = {JOB_ACTION_STORE, JOB_ACTION_HOLD, JOB_ACTION_PLAN},
    [JOB_STARTING] = {JOB_ACTION_STORE, JOB_ACTION_HOLD, JOB_ACTION_ASSIGN},
    [JOB_RUNNING] = {JOB_ACTION_STORE, JOB_ACTION_GO},
    /* GO may not have reached everybody */
    [JOB_PAUSING] = {JOB_ACTION_STORE, JOB_ACTION_GO, JOB_ACTION_PAUSE},
    [JOB_PAUSED] = {JOB_ACTION_STORE},
    [JOB_RELEASING] = {JOB_ACTION_STORE, JOB_ACTION_STOP},
    [JOB_CANCELLING] = {JOB_ACTION_STORE, JOB_ACTION_STOP},
    [JOB_FAILING] = {JOB_ACTION_STORE, JOB_ACTION_STOP},
    [JOB_REPLANNING] = {JOB_ACTION_STORE, JOB_ACTION_QUIESCE},
    [JOB_DONE] = {JOB_ACTION_STORE, JOB_ACTION_DROP, JOB_ACTION_RELEASE},
    [JOB_FAILED] = {JOB_ACTION_STORE, JOB_ACTION_DROP, JOB_ACTION_RELEASE},
    [JOB_CANCELLED] = {JOB_ACTION_STORE, JOB_ACTION_DROP, JOB_ACTION_RELEASE},
};

void jobs_actions_finish(struct job_actions *actions)
{
    free(actions->items);
    *actions = (struct job_actions){0};
}

void job_act(const struct job *job, enum job_action_kind kind, struct job_actions *actions)
{
    for (size_t i = 0; kind == JOB_ACTION_STORE && i < actions->count; i++)
        if (actions->items[i].kind == kind && strcmp(actions->items[i].job, job->id) == 0)
            return;
    actions->items =
        grow(actions->items, actions->count, &actions->capacity, sizeof *actions->items);
    struct job_action *action = &actions->items[actions->count++];
    *action = (struct job_action){.kind = kind, .epoch = job->epoch};
    memcpy(action->job, job->id, sizeof action->job);
}

void job_cause_set(struct job_cause *cause, enum job_reason reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cause->words, sizeof cause->words, format, arguments);
    va_end(arguments);
    cause->reason = reason;
    text_tame(cause->words); /* words come from other machines */
}

bool job_wait_because(struct job *job, const struct job_cause *cause)
{
    bool changed = job->reason != cause->reason;
    job->reason = cause->reason;
    memcpy(job->words, cause->words, sizeof job->words);
    return changed;
}

/* Update the record on entering its new state. */
static void job_enter(struct job *job, enum job_state from, uint64_t now_ms)
{
    switch (job->state) {
    case JOB_PENDING:
        job->holding = false;
        if (job->replans && job->again[0] && from != JOB_FAILING)
            break; /* what is kept of the epoch is decided when the next one begins */
        job->rank_count = 0;
        job->skipped = 0;
        job->step = job_saved_step(job); /* nothing else is kept of an epoch that broke */
        job->loss = NAN;
        job->tokens_per_s = 0;
        break;
    case JOB_PLANNING:
        job->holding = true;
        job->epoch++;
        job->plan[0] = '\0';
        job->pauses = job->resumes = 0;
        job->saves = job->finished = false;
        break;
    case JOB_FAILING:
    case JOB_REPLANNING:
        job->broke_step = job->step;
        break;
    case JOB_PAUSING:
        job->pauses++;
        break;
    case JOB_RUNNING:
        job->again[0] = '\0';
        job->resumes = job->pauses;
        for (size_t i = 0; i < job->rank_count; i++)
            if (job->ranks[i].state == JOB_RANK_PAUSED)
                job->ranks[i].state = JOB_RANK_READY;
        if (job->started_ms == 0)
            job->started_ms = now_ms;
        break;
    case JOB_DONE:
    case JOB_FAILED:
    case JOB_CANCELLED:
        job->holding = false;
        job->ended_ms = now_ms;
        if (job->run_s > 0)
            job->tokens_per_s = (double)job->run_tokens / job->run_s;
        break;
    default:
        break;
    }
}

bool job_is_unsaved(const struct job *job)
{
    return job->reason == JOB_REASON_NO_SPACE || job->reason == JOB_REASON_NOT_SAVED;
}

static const struct transition *transition_find(enum job_state from, enum job_trigger on)
{
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++)
        if (transitions[i].from == from && transitions[i].on == on)
            return &transitions[i];
    return NULL;
}

void job_fire(struct job *job, enum job_trigger trigger, const struct job_cause *cause,
              uint64_t now_ms, struct job_actions *actions)
{
    const struct transition *transition = transition_find(job->state, trigger);
    assert(transition);
    enum job_state from = job->state;
    bool held = job->holding;
    job->state = transition->to;
    if (cause) {
        job->reason = cause->reason;
        memcpy(job->words, cause->words, sizeof job->words);
    }
    job_enter(job, from, now_ms);
    for (size_t i = 0; i < ENTERING_MAX; i++) {
        enum job_action_kind kind = entering[job->state][i];
        if ((i > 0 && kind == JOB_ACTION_STORE) || (kind == JOB_ACTION_RELEASE && !held))
            break;
        if (kind == JOB_ACTION_DROP && !(job->replans && job->epoch > 0))
            continue; /* nobody has stayed */
        job_act(job, kind, actions);
    }
}

#define FAULTS_MAX 4 /* faults of ranks by themselves without a step in between */

/* As in "after 2 restarts without getting past step 7: "; "" if there were none. */
static const char *restart_print_after(const struct job *job, char *out, size_t size)
{
    out[0] = '\0';
    if (job->restarts > 0)
        snprintf(out, size, "after %u restart%s without getting past step %llu: ", job->restarts,
                 job->restarts == 1 ? "" : "s", (unsigned long long)job->reached_step);
    return out;
}

/* Reset the counters if the job got further; skipped steps do not count as progress. */
static void restart_count_fault(struct job *job)
{
    uint64_t reached = job->skipped ? job->skipped_from - 1 : job->step;
    if (reached > job->reached_step) {
        job->reached_step = reached;
        job->restarts = job->faults = 0;
    }
    job->faults += job->reason == JOB_REASON_RANK_FAILED || job->reason == JOB_REASON_NOT_FINITE;
}

static bool restart_is_worth_it(const struct job *job)
{
    if (job->restarts >= job->restarts_max)
        return false;
    switch (job->reason) {
    case JOB_REASON_WORKER_LOST:
    case JOB_REASON_PEER_LOST:
    case JOB_REASON_RANK_STALLED:
    case JOB_REASON_OUT_OF_MEMORY:
        return true;
    case JOB_REASON_CHECKPOINT_DAMAGED:
        return job->checkpoint_step > 0;
    case JOB_REASON_NOT_FINITE:
        return job->checkpoint_step > 0 && job->faults < FAULTS_MAX;
    case JOB_REASON_RANK_FAILED:
        return job->faults < FAULTS_MAX;
    default:
        return false;
    }
}

static void restart_give_up(const struct job *job, struct job_cause *cause)
{
    char after[96];
    const char *none = "";
    if (job->checkpoint_step == 0 && job->reason == JOB_REASON_CHECKPOINT_DAMAGED)
        none = job->origin[0]
                   ? "no other checkpoint of its own is listed: "
                   : "no older checkpoint is listed; submitted again, it would start at step 0: ";
    if (job->checkpoint_step == 0 && job->reason == JOB_REASON_NOT_FINITE)
        none = "there is no listed checkpoint to go back to: ";
    job_cause_set(cause, job->reason, "%s%s%s", restart_print_after(job, after, sizeof after), none,
                  job->words);
}

static bool job_begins_again(struct job *job, struct job_cause *cause)
{
    char from[64] = "step 0";
    memcpy(job->broke, job->words, sizeof job->broke);
    job->broke_reason = job->reason;
    if (job->reason == JOB_REASON_REPLAN) { /* not counted: nothing was wrong */
        job_cause_set(cause, JOB_REASON_RESTART, "replan: %s", job->words);
        memcpy(job->again, cause->words, sizeof job->again);
        return true;
    }
    restart_count_fault(job);
    if (!restart_is_worth_it(job)) {
        restart_give_up(job, cause);
        return false;
    }
    job->restarts++;
    if (job_saved_step(job) > 0)
        snprintf(from, sizeof from, "the checkpoint of step %llu",
                 (unsigned long long)job_saved_step(job));
    if (job->state == JOB_REPLANNING)
        job_cause_set(cause, JOB_REASON_RESTART, "replan %u of %u: %s", job->restarts,
                      job->restarts_max, job->words);
    else
        job_cause_set(cause, JOB_REASON_RESTART, "restart %u of %u, from %s: %s", job->restarts,
                      job->restarts_max, from, job->words);
    memcpy(job->again, cause->words, sizeof job->again);
    return true;
}

/* Whether a job that runs or stops has no executor left. */
static bool job_is_over(const struct job *job)
{
    if (!transition_find(job->state, TRIGGER_GONE))
        return false;
    for (size_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].state < JOB_RANK_EXITED)
            return false;
    return true;
}

static void job_end(struct job *job, uint64_t now_ms, struct job_actions *actions)
{
    struct job_cause cause = {JOB_REASON_NONE, ""};
    if (job->state == JOB_CANCELLING || job->state == JOB_RELEASING)
        job_fire(job, TRIGGER_GONE, NULL, now_ms, actions);
    else if (job->finished && (BREAKING & IN(job->state)))
        job_fire(job, TRIGGER_FINISHED, &cause, now_ms, actions);
    else if ((job->state == JOB_FAILING || job->state == JOB_REPLANNING) &&
             job_begins_again(job, &cause))
        job_fire(job, TRIGGER_AGAIN, &cause, now_ms, actions);
    else
        job_fire(job, TRIGGER_GONE, &cause, now_ms, actions);
}

/* A paused job that shall give its devices back does so if it can start again after this step. */
static void job_release(struct job *job, uint64_t now_ms, struct job_actions *actions)
{
    struct job_cause cause;
    if (job->checkpoint_step >= job->step) {
        job_fire(job, TRIGGER_RELEASE, NULL, now_ms, actions);
        return;
    }
    job_cause_set(&cause, JOB_REASON_HELD,
                  "paused by %s; it keeps its devices: step %llu could not be saved", job->held,
                  (unsigned long long)job->step);
    if (strcmp(job->words, cause.words) != 0)
        job_act(job, JOB_ACTION_STORE, actions);
    job_wait_because(job, &cause);
}

void job_settle(struct job *job, uint64_t now_ms, struct job_actions *actions)
{
    const struct job_cause none = {JOB_REASON_NONE, ""};
    struct job_cause held;
    job_cause_set(&held, JOB_REASON_HELD, "paused by %s", job->held);
    if (job_is_over(job))
        job_end(job, now_ms, actions);
    if (job->state == JOB_RUNNING && job->held[0])
        job_fire(job, TRIGGER_PAUSE, &held, now_ms, actions);
    if (job->state == JOB_PAUSED && !job->held[0])
        job_fire(job, TRIGGER_RESUME, &none, now_ms, actions);
    if (job->state == JOB_PAUSED && job->releases)
        job_release(job, now_ms, actions);
}

void job_resume(const struct job *job, struct job_actions *actions)
{
    if (!job->holding)
        return;
    job_act(job, JOB_ACTION_HOLD, actions);
    for (size_t i = 0; i < ENTERING_MAX; i++) {
        enum job_action_kind kind = entering[job->state][i];
        if (kind != JOB_ACTION_STORE && kind != JOB_ACTION_HOLD)
            job_act(job, kind, actions);
    }
}
