/* orphans.c - ranks whose coordinator stays away train on for as long as their job allows
 * (elastic.orphan), and then stop.
 *
 * A coordinator that comes back finds them where they are. But one that is gone for good, or on the
 * other side of a network partition, may have given their job to others, and nobody would ever tell
 * them. Ranks whose job has checkpoints stop after a step that is saved, and keep what they hold
 * until there is a coordinator to list the checkpoint. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"

#include <stdlib.h>

/* When a rank has been alone for too long; UINT64_MAX: never, or it does not train. */
static uint64_t due_ms(const struct supervisor *supervisor, const struct rank *rank)
{
    const struct link *link = &supervisor->link;
    bool trains = rank->state == RANK_RUNNING && rank->going && rank->pause <= rank->resumed;
    if (!trains || rank->orphan_ms == 0 || link->state == LINK_UP)
        return UINT64_MAX;
    return link->reached_ms + rank->orphan_ms;
}

void orphans_expire(struct supervisor *supervisor, uint64_t now_ms,
                    struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (now_ms < due_ms(supervisor, rank))
            continue;
        char *reason = xasprintf("no coordinator was in reach for %.0f s, which is elastic.orphan",
                                 (double)rank->orphan_ms / 1000);
        act_log(actions, LOG_WARN, "job %s rank %u stops: %s", rank->job, rank->rank, reason);
        rank_stop_saving(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason, now_ms, actions);
        if (rank->saving)
            rank->kill_at_ms = UINT64_MAX; /* it waits for the coordinator, however long */
        free(reason);
    }
}

void orphans_found(struct supervisor *supervisor, uint64_t now_ms)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].saving && supervisor->ranks[i].kill_at_ms == UINT64_MAX)
            supervisor->ranks[i].kill_at_ms = now_ms + SUPERVISOR_SAVING_MS;
}

uint64_t orphans_next_ms(const struct supervisor *supervisor)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        uint64_t due = due_ms(supervisor, &supervisor->ranks[i]);
        next = due < next ? due : next;
    }
    return next;
}
