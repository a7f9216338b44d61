/* orphans.c - ranks whose coordinator stays away: they train on for as long as their job allows
 * (elastic.orphan), and then stop.
 *
 * A coordinator that is back finds them where they are; but one that is away for good, or on the
 * other side of a cut network, may have given their job to others, and nobody would ever tell.
 * Those that have checkpoints stop behind a step that is saved, and stay, with what they hold,
 * until there is somebody to list it. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"

#include <stdlib.h>

/* When it is too long; UINT64_MAX: never, it is not waiting for anybody. */
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
            rank->kill_at_ms = UINT64_MAX; /* it waits for the coordinator */
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
