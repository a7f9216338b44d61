/* pauses.c - pauses of ranks, by number. Each is passed on to an executor once, and reported as
 * often as the coordinator asks.
 *
 * Numbers make repetition harmless. A paused executor continues when its pause, or a later one, is
 * over, and not before, so no order of repeated records can let one rank continue while another
 * stays. */
#include "worker/supervisor/internal.h"

#include <string.h>

static bool is_meant(const struct rank *rank, const char *job, uint64_t epoch)
{
    return rank->state == RANK_RUNNING && rank->epoch == epoch && strcmp(rank->job, job) == 0;
}

/* The same pause may come again, from a coordinator that does not know who has paused: report
 * again. */
void ranks_pause(struct supervisor *supervisor, const Gimbal__PauseJob *message,
                 struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (!is_meant(rank, message->job, message->epoch))
            continue;
        if (message->number > rank->pause) {
            rank->pause = message->number;
            act_on_rank(actions, SUPERVISOR_PAUSE, rank);
        } else if (message->number == rank->paused_number && rank->paused == DELIVERY_DONE) {
            rank->paused = DELIVERY_DUE;
        }
    }
}

void ranks_resume(struct supervisor *supervisor, const Gimbal__ResumeJob *message,
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

void supervisor_executor_paused(struct supervisor *supervisor, uint64_t id, uint64_t number,
                                uint64_t step, struct supervisor_actions *actions)
{
    struct rank *rank = ranks_find(supervisor, id);
    if (!rank || rank->state != RANK_RUNNING || number <= rank->paused_number)
        return;
    rank->paused_number = number;
    rank->paused_step = step;
    rank->step = step > rank->step ? step : rank->step;
    /* An older report may be under way, whose answer says nothing about this pause. */
    rank->paused_newer = rank->paused == DELIVERY_SENT;
    if (!rank->paused_newer)
        rank->paused = DELIVERY_DUE;
    ranks_deliver(supervisor, actions);
}
