/* ranks.c - the executors of this node: from an assignment to a Stopped that was taken.
 *
 *     waiting -> running -> stopping -> ended
 *        '----------'----------------------^
 *
 * The newest assignment has its device: whatever else is there is stopped first. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef Gimbal__StoppedRequest__Cause cause_t;

static const char *cause_name(cause_t cause)
{
    switch (cause) {
    case GIMBAL__STOPPED_REQUEST__CAUSE__DONE:
        return "done";
    case GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED:
        return "quiesced";
    case GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED:
        return "cancelled";
    case GIMBAL__STOPPED_REQUEST__CAUSE__FAULT:
        return "fault";
    case GIMBAL__STOPPED_REQUEST__CAUSE__PEER_LOST:
        return "peer lost";
    default:
        return "unknown";
    }
}

void rank_finish(struct rank *rank)
{
    if (rank->assignment)
        message_free(&rank->assignment->base);
    if (rank->said_ready)
        message_free(&rank->said_ready->base);
    if (rank->said_staged)
        message_free(&rank->said_staged->base);
    free(rank->job);
    free(rank->reason);
}

bool rank_has_executor(const struct rank *rank)
{
    return rank->state == RANK_RUNNING || rank->state == RANK_STOPPING;
}

struct rank *ranks_find(struct supervisor *supervisor, uint64_t id)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].id == id)
            return &supervisor->ranks[i];
    return NULL;
}

const struct rank *supervisor_rank(const struct supervisor *supervisor, uint64_t id)
{
    return ranks_find((struct supervisor *)supervisor, id);
}

size_t supervisor_rank_count(const struct supervisor *supervisor)
{
    return supervisor->rank_count;
}

const struct rank *supervisor_rank_at(const struct supervisor *supervisor, size_t index)
{
    return &supervisor->ranks[index];
}

Gimbal__Assignment *supervisor_take_assignment(struct supervisor *supervisor, uint64_t id)
{
    struct rank *rank = ranks_find(supervisor, id);
    Gimbal__Assignment *assignment = rank->assignment;
    rank->assignment = NULL;
    return assignment;
}

void rank_set_cause(struct rank *rank, cause_t cause, const char *reason)
{
    free(rank->reason);
    rank->cause = cause;
    rank->reason = xstrdup(reason);
}

void rank_end(struct rank *rank, struct supervisor_actions *actions)
{
    enum log_level level =
        rank->cause == GIMBAL__STOPPED_REQUEST__CAUSE__FAULT ? LOG_ERROR : LOG_INFO;
    act_log(actions, level, "job %s epoch %" PRIu64 " rank %" PRIu32 " ended: %s%s%s", rank->job,
            rank->epoch, rank->rank, cause_name(rank->cause), rank->reason[0] ? ": " : "",
            rank->reason);
    if (rank->assignment)
        message_free(&rank->assignment->base);
    rank->assignment = NULL;
    rank->state = RANK_ENDED;
    rank->kill_at_ms = UINT64_MAX;
    rank->stopped = DELIVERY_DUE;
    if (rank->ready == DELIVERY_DUE)
        rank->ready = DELIVERY_DONE;
    if (rank->paused == DELIVERY_DUE)
        rank->paused = DELIVERY_DONE;
}

void ranks_stop(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
                struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        rank_set_cause(rank, cause, reason);
        rank_end(rank, actions);
    } else if (rank->state == RANK_RUNNING) {
        rank_set_cause(rank, cause, reason);
        rank->asked = true;
        rank->state = RANK_STOPPING;
        rank->kill_at_ms = now_ms + SUPERVISOR_PATIENCE_MS;
        act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
        actions->items[actions->count - 1].signal = SIGTERM;
    }
}

void ranks_stop_all(struct supervisor *supervisor, cause_t cause, const char *reason,
                    uint64_t now_ms, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        ranks_stop(&supervisor->ranks[i], cause, reason, now_ms, actions);
}

static bool device_free(const struct supervisor *supervisor, uint32_t device_index)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].device_index == device_index &&
            rank_has_executor(&supervisor->ranks[i]))
            return false;
    return true;
}

void ranks_start_waiting(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->state != RANK_WAITING || !device_free(supervisor, rank->device_index))
            continue;
        rank->state = RANK_RUNNING;
        act_on_rank(actions, SUPERVISOR_START, rank);
    }
}

/* The same assignment again: from a coordinator that does not know what became of it. */
static bool repeated(struct supervisor *supervisor, const Gimbal__Assignment *assignment)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->epoch != assignment->epoch || rank->rank != assignment->rank ||
            strcmp(rank->job, assignment->job) != 0)
            continue;
        if (rank->stopped == DELIVERY_DONE)
            rank->stopped = DELIVERY_DUE;
        if (rank->state == RANK_RUNNING && rank->ready == DELIVERY_DONE)
            rank->ready = DELIVERY_DUE;
        return true;
    }
    return false;
}

/* Whether a newer epoch was here. What an older term assigned says nothing: this one rules. */
static bool is_stale(const struct supervisor *supervisor, const Gimbal__Assignment *assignment)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].epoch > assignment->epoch &&
            supervisor->ranks[i].assigned_in == supervisor->link.term &&
            strcmp(supervisor->ranks[i].job, assignment->job) == 0)
            return true;
    return false;
}

/* Whatever is on the device of this new rank, or waits for it, makes room; and what is left of
 * another epoch of its job is over. */
static void make_room(struct supervisor *supervisor, const struct rank *newest, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    char *device = xasprintf("its device was given to job %s epoch %" PRIu64 " rank %" PRIu32,
                             newest->job, newest->epoch, newest->rank);
    char *epoch = xasprintf("epoch %" PRIu64 " has begun", newest->epoch);
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank == newest)
            continue;
        if (strcmp(rank->job, newest->job) == 0 && rank->epoch != newest->epoch)
            ranks_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, epoch, now_ms, actions);
        else if (rank->device_index == newest->device_index)
            ranks_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, device, now_ms, actions);
    }
    free(epoch);
    free(device);
}

/* Takes the assignment. */
static struct rank *add(struct supervisor *supervisor, Gimbal__Assignment *assignment)
{
    supervisor->ranks = grow(supervisor->ranks, supervisor->rank_count, &supervisor->rank_capacity,
                             sizeof *supervisor->ranks);
    struct rank *rank = &supervisor->ranks[supervisor->rank_count++];
    *rank = (struct rank){
        .id = ++supervisor->next_id,
        .job = xstrdup(assignment->job),
        .epoch = assignment->epoch,
        .rank = assignment->rank,
        .device_index = assignment->device_index,
        .assigned_in = supervisor->link.term,
        .assignment = assignment,
        .kill_at_ms = UINT64_MAX,
        .reason = xstrdup(""),
        .step = assignment->start_step,
    };
    return rank;
}

/* Takes the assignment. */
static void assign(struct supervisor *supervisor, Gimbal__Assignment *assignment, uint64_t now_ms,
                   struct supervisor_actions *actions)
{
    bool again = repeated(supervisor, assignment);
    if (again || is_stale(supervisor, assignment)) {
        if (!again)
            act_log(actions, LOG_WARN,
                    "job %s: an assignment of epoch %" PRIu64 " is stale, a newer one was here",
                    assignment->job, assignment->epoch);
        message_free(&assignment->base);
        return;
    }
    struct rank *rank = add(supervisor, assignment);
    char *reason = NULL;
    cause_t cause = GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED;
    if (supervisor->leaving) {
        reason = xasprintf("node '%s' is being stopped", supervisor->node);
    } else if (rank->device_index >= supervisor->device_count) {
        cause = GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
        reason = xasprintf("node '%s' has no device %" PRIu32 ": it offers %" PRIu32,
                           supervisor->node, rank->device_index, supervisor->device_count);
    }
    if (reason)
        ranks_stop(rank, cause, reason, now_ms, actions);
    else
        make_room(supervisor, rank, now_ms, actions);
    free(reason);
    ranks_start_waiting(supervisor, actions);
}

static void go(struct supervisor *supervisor, const Gimbal__Go *message,
               struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->state != RANK_RUNNING || rank->going || rank->epoch != message->epoch ||
            strcmp(rank->job, message->job) != 0)
            continue;
        rank->going = true;
        act_on_rank(actions, SUPERVISOR_GO, rank);
    }
}

/* Stop what there is of the job up to this epoch. What has ended is reported once more: who asks
 * to stop it does not know. */
static void stop_job(struct supervisor *supervisor, const char *job, uint64_t epoch, cause_t cause,
                     const char *reason, uint64_t now_ms, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->epoch > epoch || strcmp(rank->job, job) != 0)
            continue;
        if (rank->stopped == DELIVERY_DONE && rank->epoch == epoch)
            rank->stopped = DELIVERY_DUE;
        ranks_stop(rank, cause, reason, now_ms, actions);
    }
}

static bool knows(const struct supervisor *supervisor, const Gimbal__CancelJob *cancel,
                  uint32_t number)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].rank == number && supervisor->ranks[i].epoch == cancel->epoch &&
            strcmp(supervisor->ranks[i].job, cancel->job) == 0)
            return true;
    return false;
}

/* What is to be stopped and never came here has stopped: nobody else could say so. */
static void end_unknown(struct supervisor *supervisor, const Gimbal__CancelJob *cancel,
                        struct supervisor_actions *actions)
{
    for (size_t i = 0; i < cancel->n_ranks; i++) {
        if (knows(supervisor, cancel, cancel->ranks[i]))
            continue;
        Gimbal__Assignment *assignment = xcalloc(1, sizeof *assignment);
        gimbal__assignment__init(assignment);
        assignment->job = xstrdup(cancel->job);
        assignment->epoch = cancel->epoch;
        assignment->rank = cancel->ranks[i];
        struct rank *rank = add(supervisor, assignment);
        rank_set_cause(rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "it was never started");
        rank_end(rank, actions);
    }
}

void supervisor_record(struct supervisor *supervisor, uint64_t revision,
                       Gimbal__WorkerRecord *record, uint64_t now_ms,
                       struct supervisor_actions *actions)
{
    supervisor->link.revision = revision;
    switch (record->record_case) {
    case GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT:
        record->record_case = GIMBAL__WORKER_RECORD__RECORD__NOT_SET; /* it is taken out */
        assign(supervisor, record->assignment, now_ms, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_GO:
        go(supervisor, record->go, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_QUIESCE:
        stop_job(supervisor, record->quiesce->job, record->quiesce->epoch,
                 GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, record->quiesce->reason, now_ms,
                 actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_CANCEL:
        stop_job(supervisor, record->cancel->job, record->cancel->epoch,
                 GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, record->cancel->reason, now_ms,
                 actions);
        end_unknown(supervisor, record->cancel, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_PAUSE:
        ranks_pause(supervisor, record->pause, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_RESUME:
        ranks_resume(supervisor, record->resume, actions);
        break;
    default:
        act_log(actions, LOG_WARN, "revision %" PRIu64 " says nothing that this release knows",
                revision);
        break;
    }
    message_free(&record->base);
    ranks_deliver(supervisor, actions);
}

void ranks_expire(struct supervisor *supervisor, uint64_t now_ms,
                  struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (!rank_has_executor(rank) || now_ms < rank->kill_at_ms)
            continue;
        rank->kill_at_ms = UINT64_MAX; /* once is enough */
        act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
        actions->items[actions->count - 1].signal = SIGKILL;
    }
}

uint64_t ranks_next_ms(const struct supervisor *supervisor)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].kill_at_ms < next)
            next = supervisor->ranks[i].kill_at_ms;
    return next;
}

bool ranks_all_gone(const struct supervisor *supervisor)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].state != RANK_ENDED)
            return false;
    return true;
}
