/* assign.c - from an assignment to a running executor.
 *
 * The newest assignment owns its device: whatever else is there is stopped first, unless it is an
 * executor of the same job that can take part in the new epoch. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
        if (rank->leaves && rank->device_index == next->device_index &&
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

struct rank *ranks_add(struct supervisor *supervisor, Gimbal__Assignment *assignment)
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

void ranks_assign(struct supervisor *supervisor, Gimbal__Assignment *assignment, uint64_t now_ms,
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

void ranks_go(struct supervisor *supervisor, const Gimbal__Go *message,
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
