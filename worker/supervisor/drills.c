/* drills.c - faults that somebody has ordered, to see how a running job copes. Those that last end
 * by themselves: whoever carries them out has the time. */
#include "worker/supervisor/internal.h"

#include "proto/drill.pb-c.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

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

static void inflict(const struct rank *rank, const Gimbal__Drill *drill,
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

void drills_inflict(struct supervisor *supervisor, const Gimbal__Drill *drill,
                    struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        const struct rank *rank = &supervisor->ranks[i];
        if (rank->rank == drill->rank && rank->epoch == drill->epoch &&
            rank->state == RANK_RUNNING && strcmp(rank->job, drill->job) == 0)
            inflict(rank, drill, actions);
    }
}
