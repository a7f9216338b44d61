/* records.c - what the coordinator orders of ranks: begin, go, pause and resume, leave or end, be
 * dropped, suffer a drill.
 *
 * The newest assignment owns its device: whatever else is there is stopped first, unless it is an
 * executor of the same job that can take part in the new epoch.
 *
 * A pause is passed on to an executor once, and reported as often as the coordinator asks. Numbers
 * make repetition harmless. A paused executor continues when its pause, or a later one, is over,
 * and not before, so no order of repeated records can let one rank continue while another stays.
 *
 * Drills are faults that somebody has ordered, to see how a running job copes. Those that last end
 * by themselves: whoever carries them out has the time. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "proto/admin.pb-c.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* NULL: it never arrived here. */
static struct rank *find_rank(struct supervisor *supervisor, const char *job, uint64_t epoch,
                              uint32_t number)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->rank == number && rank->epoch == epoch && strcmp(rank->job, job) == 0)
            return rank;
    }
    return NULL;
}

/* The rank whose executor is on the device; NULL: none. */
static struct rank *find_on_device(struct supervisor *supervisor, uint32_t device_index)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].device_index == device_index &&
            rank_has_executor(&supervisor->ranks[i]))
            return &supervisor->ranks[i];
    return NULL;
}

/* The rank of this job that has left its state on that device; NULL: none. */
static struct rank *find_left(struct supervisor *supervisor, const struct rank *next)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->has_left_state && rank->device_index == next->device_index &&
            strcmp(rank->job, next->job) == 0)
            return rank;
    }
    return NULL;
}

void ranks_start_waiting(struct supervisor *supervisor, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->state != RANK_WAITING)
            continue;
        struct rank *there = find_on_device(supervisor, rank->device_index);
        if (there && (there->state != RANK_KEPT || strcmp(there->job, rank->job) != 0))
            continue;
        struct rank *left = there ? NULL : find_left(supervisor, rank);
        rank->state = RANK_RUNNING;
        act_on_rank(actions, there ? SUPERVISOR_ADOPT : SUPERVISOR_START, rank);
        actions->items[actions->count - 1].from = there ? there->id : left ? left->id : 0;
        if (there)
            rank_end(there, actions);
        if (left)
            rank_let_go(left);
    }
}

/* The same assignment again, from a coordinator that does not know what became of it: report
 * again. */
static bool is_repeated(struct supervisor *supervisor, const Gimbal__Assignment *assignment)
{
    struct rank *rank = find_rank(supervisor, assignment->job, assignment->epoch, assignment->rank);
    if (!rank)
        return false;
    if (rank->delivery[MESSAGE_STOPPED] == DELIVERY_DONE)
        rank->delivery[MESSAGE_STOPPED] = DELIVERY_DUE;
    if (rank->state == RANK_RUNNING && rank->delivery[MESSAGE_READY] == DELIVERY_DONE)
        rank->delivery[MESSAGE_READY] = DELIVERY_DUE;
    return true;
}

/* Whether a newer epoch of the job was here. Assignments of an older term do not count, because
 * this term's coordinator decides. */
static bool is_stale(const struct supervisor *supervisor, const Gimbal__Assignment *assignment)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].epoch > assignment->epoch &&
            supervisor->ranks[i].assigned_in == supervisor->link.term &&
            strcmp(supervisor->ranks[i].job, assignment->job) == 0)
            return true;
    return false;
}

/* Make room for a new rank: stop whatever is on its device or waits for it, and have ranks of the
 * job's other epochs leave. States that are kept for the job stay. */
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
        bool same = strcmp(rank->job, newest->job) == 0;
        if (same && rank->epoch != newest->epoch)
            rank_leave(rank, epoch, false, now_ms, actions);
        else if (rank->device_index == newest->device_index)
            rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, device, now_ms, actions);
    }
    free(epoch);
    free(device);
}

/* Add a rank for this assignment, which is taken. The result is lent until the next rank is
 * added. */
static struct rank *ranks_add(struct supervisor *supervisor, Gimbal__Assignment *assignment)
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
        .keeps = assignment->keeps,
        .fetches = assignment->device[0] != '\0',
        .kill_at_ms = UINT64_MAX,
        .reason = xstrdup(""),
        .step = assignment->start_step,
        .orphan_ms = assignment->orphan_ms,
        .saves = assignment->checkpoint_folder[0] != '\0',
    };
    return rank;
}

/* Handle an assignment (taken): start it, or report why not. */
static void ranks_assign(struct supervisor *supervisor, Gimbal__Assignment *assignment,
                         uint64_t now_ms, struct supervisor_actions *actions)
{
    bool again = is_repeated(supervisor, assignment);
    if (again || is_stale(supervisor, assignment)) {
        if (!again)
            act_log(actions, LOG_WARN,
                    "job %s: an assignment of epoch %" PRIu64 " is stale, a newer one was here",
                    assignment->job, assignment->epoch);
        message_free(&assignment->base);
        return;
    }
    struct rank *rank = ranks_add(supervisor, assignment);
    char *reason = NULL;
    Gimbal__StoppedRequest__Cause cause = GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED;
    if (supervisor->leaving) {
        reason = xasprintf("node '%s' is being stopped", supervisor->node);
    } else if (rank->device_index >= supervisor->device_count) {
        cause = GIMBAL__STOPPED_REQUEST__CAUSE__FAULT;
        reason = xasprintf("node '%s' has no device %" PRIu32 ": it offers %" PRIu32,
                           supervisor->node, rank->device_index, supervisor->device_count);
    }
    if (reason)
        rank_stop(rank, cause, reason, now_ms, actions);
    else
        make_room(supervisor, rank, now_ms, actions);
    free(reason);
    ranks_start_waiting(supervisor, actions);
}

static bool is_meant(const struct rank *rank, const char *job, uint64_t epoch)
{
    return rank->state == RANK_RUNNING && rank->epoch == epoch && strcmp(rank->job, job) == 0;
}

/* Pass Go on to the job's executors of that epoch. */
static void ranks_go(struct supervisor *supervisor, const Gimbal__Go *message,
                     struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->going || !is_meant(rank, message->job, message->epoch))
            continue;
        rank->going = true;
        act_on_rank(actions, SUPERVISOR_GO, rank);
    }
}

/* The same pause may come again, from a coordinator that does not know who has paused: report
 * again. */
static void ranks_pause(struct supervisor *supervisor, const Gimbal__PauseJob *message,
                        struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (!is_meant(rank, message->job, message->epoch))
            continue;
        if (message->number > rank->pause) {
            rank->pause = message->number;
            act_on_rank(actions, SUPERVISOR_PAUSE, rank);
        } else if (message->number == rank->paused_number &&
                   rank->delivery[MESSAGE_PAUSED] == DELIVERY_DONE) {
            rank->delivery[MESSAGE_PAUSED] = DELIVERY_DUE;
        }
    }
}

static void ranks_resume(struct supervisor *supervisor, const Gimbal__ResumeJob *message,
                         struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (!is_meant(rank, message->job, message->epoch) || message->number <= rank->resumed)
            continue;
        rank->resumed = message->number;
        act_on_rank(actions, SUPERVISOR_RESUME, rank);
    }
}

enum end { END_EPOCH, END_JOB };

/* Stop the job's ranks of epochs up to this one, with a checkpoint or at once. Ends are reported
 * once more, since whoever asks does not know of them. */
static void end_job(struct supervisor *supervisor, const char *job, uint64_t epoch, enum end end,
                    bool save, const char *reason, uint64_t now_ms,
                    struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->epoch > epoch || strcmp(rank->job, job) != 0)
            continue;
        if (rank->delivery[MESSAGE_STOPPED] == DELIVERY_DONE && rank->epoch == epoch)
            rank->delivery[MESSAGE_STOPPED] = DELIVERY_DUE;
        if (end == END_EPOCH)
            rank_leave(rank, reason, save, now_ms, actions);
        else if (save)
            rank_stop_saving(rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, reason, now_ms,
                             actions);
        else
            rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, reason, now_ms, actions);
    }
}

/* Stop executors that keep state of the job, and let go states that are held for it. */
static void drop_job(struct supervisor *supervisor, const char *job, uint64_t now_ms,
                     struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if ((rank->state == RANK_KEPT || rank->has_left_state) && strcmp(rank->job, job) == 0)
            rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "the job has ended", now_ms,
                      actions);
    }
}

/* Kill a stalled rank. If it has left meanwhile, nobody waits for it, and nothing happens. */
static void end_rank(struct supervisor *supervisor, const Gimbal__EndRank *message, uint64_t now_ms,
                     struct supervisor_actions *actions)
{
    struct rank *rank = find_rank(supervisor, message->job, message->epoch, message->rank);
    if (rank)
        rank_kill(rank, GIMBAL__STOPPED_REQUEST__CAUSE__STALLED, message->reason, now_ms, actions);
}

/* Report ranks that are to be stopped but never arrived here as stopped: nobody else can. */
static void end_unknown(struct supervisor *supervisor, const char *job, uint64_t epoch,
                        const uint32_t *ranks, size_t count, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < count; i++) {
        if (find_rank(supervisor, job, epoch, ranks[i]))
            continue;
        Gimbal__Assignment *assignment = xcalloc(1, sizeof *assignment);
        gimbal__assignment__init(assignment);
        assignment->job = xstrdup(job);
        assignment->epoch = epoch;
        assignment->rank = ranks[i];
        struct rank *rank = ranks_add(supervisor, assignment);
        rank_set_cause(rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "it was never started");
        rank_end(rank, actions);
    }
}

static void act_for(struct supervisor_actions *actions, enum supervisor_action_kind kind,
                    const Gimbal__Drill *drill)
{
    struct supervisor_action *action = act(actions, kind);
    action->for_ms = drill->for_ms;
    action->delay_ms = drill->delay_ms;
}

static void act_signal(struct supervisor_actions *actions, const struct rank *rank, int signal)
{
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = signal;
}

static void drill_inflict(const struct rank *rank, const Gimbal__Drill *drill,
                          struct supervisor_actions *actions)
{
    act_log(actions, LOG_WARN, "job %s epoch %" PRIu64 " rank %" PRIu32 ": a drill was ordered",
            rank->job, rank->epoch, rank->rank);
    switch (drill->fault) {
    case GIMBAL__DRILL_FAULT__KILL_EXECUTOR:
        act_signal(actions, rank, SIGKILL);
        break;
    case GIMBAL__DRILL_FAULT__KILL_WORKER:
        act(actions, SUPERVISOR_DIE);
        break;
    case GIMBAL__DRILL_FAULT__STOP_EXECUTOR:
        act_signal(actions, rank, SIGSTOP);
        break;
    case GIMBAL__DRILL_FAULT__CUT_LINK:
    case GIMBAL__DRILL_FAULT__SLOW_LINK:
        act_for(actions, SUPERVISOR_HINDER, drill);
        break;
    case GIMBAL__DRILL_FAULT__FILL_DISK:
        act_for(actions, SUPERVISOR_FILL_DISK, drill);
        break;
    default:
        act_log(actions, LOG_WARN, "there is no fault number %d in this release",
                (int)drill->fault);
        break;
    }
}

static void drill_rank(struct supervisor *supervisor, const Gimbal__Drill *drill,
                       struct supervisor_actions *actions)
{
    const struct rank *rank = find_rank(supervisor, drill->job, drill->epoch, drill->rank);
    if (rank && rank->state == RANK_RUNNING)
        drill_inflict(rank, drill, actions);
}

void supervisor_record(struct supervisor *supervisor, uint64_t revision,
                       Gimbal__WorkerRecord *record, uint64_t now_ms,
                       struct supervisor_actions *actions)
{
    supervisor->link.revision = revision;
    switch (record->record_case) {
    case GIMBAL__WORKER_RECORD__RECORD_ASSIGNMENT:
        /* So that message_free below leaves it alone. */
        record->record_case = GIMBAL__WORKER_RECORD__RECORD__NOT_SET;
        ranks_assign(supervisor, record->assignment, now_ms, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_GO:
        ranks_go(supervisor, record->go, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_QUIESCE:
        end_job(supervisor, record->quiesce->job, record->quiesce->epoch, END_EPOCH,
                record->quiesce->save, record->quiesce->reason, now_ms, actions);
        end_unknown(supervisor, record->quiesce->job, record->quiesce->epoch,
                    record->quiesce->ranks, record->quiesce->n_ranks, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_CANCEL:
        end_job(supervisor, record->cancel->job, record->cancel->epoch, END_JOB,
                record->cancel->save, record->cancel->reason, now_ms, actions);
        end_unknown(supervisor, record->cancel->job, record->cancel->epoch, record->cancel->ranks,
                    record->cancel->n_ranks, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_DROP:
        drop_job(supervisor, record->drop->job, now_ms, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_END:
        end_rank(supervisor, record->end, now_ms, actions);
        break;
    case GIMBAL__WORKER_RECORD__RECORD_DRILL:
        drill_rank(supervisor, record->drill, actions);
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
