/* stops.c - stops ranks: at once, after saving, or by leaving their epoch; and kills those that do
 * not stop in time.
 *
 * A second request may ask for less: an executor that is saving is not waited for once it is to
 * stop at once. One that is already stopping is not asked again. */
#include "worker/supervisor/internal.h"

#include <inttypes.h>
#include <signal.h>

typedef Gimbal__StoppedRequest__Cause cause_t;

static void terminate(struct rank *rank, uint64_t now_ms, struct supervisor_actions *actions)
{
    rank->saving = false;
    rank->kill_at_ms = now_ms + SUPERVISOR_PATIENCE_MS;
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = SIGTERM;
}

/* A rank that has left its epoch was reported then; stopping it only makes room. */
static void stop_kept(struct rank *rank, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    act_log(actions, LOG_INFO, "job %s epoch %" PRIu64 " rank %" PRIu32 ": its state is let go: %s",
            rank->job, rank->epoch, rank->rank, reason);
    rank->state = RANK_STOPPING;
    terminate(rank, now_ms, actions);
}

void rank_stop(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
               struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        rank_set_cause(rank, cause, reason);
        rank_end(rank, actions);
    } else if (rank->state == RANK_KEPT) {
        stop_kept(rank, reason, now_ms, actions);
    } else if (rank->state == RANK_RUNNING || rank->state == RANK_LEAVING) {
        rank_set_cause(rank, cause, reason);
        rank->asked = true;
        rank->state = RANK_STOPPING;
        terminate(rank, now_ms, actions);
    } else if (rank->state == RANK_STOPPING && rank->saving) {
        terminate(rank, now_ms, actions);
    } else if (rank->leaves) {
        rank_let_go(rank);
    }
}

static void kill_now(struct rank *rank, struct supervisor_actions *actions)
{
    rank->kill_at_ms = UINT64_MAX; /* once is enough */
    act_on_rank(actions, SUPERVISOR_SIGNAL, rank);
    actions->items[actions->count - 1].signal = SIGKILL;
}

/* Earlier requests no longer matter: the executor does not react to those either. */
void rank_kill(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
               struct supervisor_actions *actions)
{
    if (rank->state == RANK_WAITING) {
        rank_stop(rank, cause, reason, now_ms, actions);
        return;
    }
    if (rank->state != RANK_RUNNING && rank->state != RANK_LEAVING)
        return;
    rank_set_cause(rank, cause, reason);
    rank->asked = true;
    rank->saving = false;
    rank->state = RANK_STOPPING;
    kill_now(rank, actions);
}

/* Before its first step a rank has nothing to save. */
static bool can_save(const struct rank *rank)
{
    return rank->state == RANK_RUNNING && rank->saves && rank->going;
}

void rank_stop_saving(struct rank *rank, cause_t cause, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    bool leaving = rank->state == RANK_LEAVING && rank->saving;
    if (rank->state == RANK_STOPPING && rank->saving)
        return;
    if (!leaving && !can_save(rank)) {
        rank_stop(rank, cause, reason, now_ms, actions);
        return;
    }
    rank_set_cause(rank, cause, reason);
    rank->asked = true;
    rank->state = RANK_STOPPING;
    rank->saving = true;
    rank->kill_at_ms = now_ms + SUPERVISOR_SAVING_MS;
    act_on_rank(actions, SUPERVISOR_SAVE, rank);
}

void ranks_stop_all(struct supervisor *supervisor, cause_t cause, const char *reason,
                    uint64_t now_ms, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (!supervisor->ranks[i].saving)
            rank_stop(&supervisor->ranks[i], cause, reason, now_ms, actions);
}

static uint64_t leaving_ms(const struct rank *rank)
{
    return rank->fetches ? SUPERVISOR_FETCH_MS : SUPERVISOR_PATIENCE_MS;
}

static void quiesce(struct rank *rank, bool save, uint64_t now_ms,
                    struct supervisor_actions *actions)
{
    rank->state = RANK_LEAVING;
    rank->saving = save;
    rank->kill_at_ms = now_ms + (save ? SUPERVISOR_SAVING_MS : leaving_ms(rank));
    act_on_rank(actions, SUPERVISOR_QUIESCE, rank);
}

void rank_leave(struct rank *rank, const char *reason, bool save, uint64_t now_ms,
                struct supervisor_actions *actions)
{
    if (rank->state == RANK_RUNNING && rank->keeps) {
        rank_set_cause(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason);
        quiesce(rank, save && can_save(rank), now_ms, actions);
    } else if (rank->state == RANK_LEAVING && rank->saving && !save) {
        quiesce(rank, false, now_ms, actions);
    } else if (rank->state == RANK_WAITING || rank->state == RANK_RUNNING) {
        rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__QUIESCED, reason, now_ms, actions);
    }
}

void ranks_lose_epoch(struct supervisor *supervisor, const char *reason, uint64_t now_ms,
                      struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        bool has = rank->state == RANK_RUNNING || rank->state == RANK_LEAVING ||
                   rank->state == RANK_KEPT || rank->leaves;
        if (rank->keeps && has)
            rank_leave(rank, reason, false, now_ms, actions);
        else
            rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__FAULT, reason, now_ms, actions);
    }
}

void ranks_expire(struct supervisor *supervisor, uint64_t now_ms,
                  struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->leaves && now_ms >= rank->let_go_ms)
            rank_let_go(rank);
        if (!rank_has_executor(rank) || now_ms < rank->kill_at_ms)
            continue;
        if (rank->state == RANK_KEPT) {
            stop_kept(rank, "nobody has asked for it", now_ms, actions);
            continue;
        }
        if (rank->state == RANK_LEAVING && rank->saving) {
            quiesce(rank, false, now_ms, actions);
            continue;
        }
        rank->asked = true; /* failing to leave its epoch in time is not the job's fault */
        kill_now(rank, actions);
    }
}

uint64_t ranks_next_ms(const struct supervisor *supervisor)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        const struct rank *rank = &supervisor->ranks[i];
        uint64_t due_ms =
            rank->leaves && rank->let_go_ms < rank->kill_at_ms ? rank->let_go_ms : rank->kill_at_ms;
        next = due_ms < next ? due_ms : next;
    }
    return next;
}
