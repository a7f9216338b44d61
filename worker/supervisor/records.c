/* records.c - handles the records that the coordinator sends to this worker. */
#include "worker/supervisor/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <inttypes.h>
#include <string.h>

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
        if (rank->stopped == DELIVERY_DONE && rank->epoch == epoch)
            rank->stopped = DELIVERY_DUE;
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
        if ((rank->state == RANK_KEPT || rank->leaves) && strcmp(rank->job, job) == 0)
            rank_stop(rank, GIMBAL__STOPPED_REQUEST__CAUSE__CANCELLED, "the job has ended", now_ms,
                      actions);
    }
}

/* Kill a stalled rank. If it has left meanwhile, nobody waits for it, and nothing happens. */
static void end_rank(struct supervisor *supervisor, const Gimbal__EndRank *message, uint64_t now_ms,
                     struct supervisor_actions *actions)
{
    for (size_t i = 0; i < supervisor->rank_count; i++) {
        struct rank *rank = &supervisor->ranks[i];
        if (rank->rank == message->rank && rank->epoch == message->epoch &&
            strcmp(rank->job, message->job) == 0)
            rank_kill(rank, GIMBAL__STOPPED_REQUEST__CAUSE__STALLED, message->reason, now_ms,
                      actions);
    }
}

static bool knows(const struct supervisor *supervisor, const char *job, uint64_t epoch,
                  uint32_t number)
{
    for (size_t i = 0; i < supervisor->rank_count; i++)
        if (supervisor->ranks[i].rank == number && supervisor->ranks[i].epoch == epoch &&
            strcmp(supervisor->ranks[i].job, job) == 0)
            return true;
    return false;
}

/* Report ranks that are to be stopped but never arrived here as stopped: nobody else can. */
static void end_unknown(struct supervisor *supervisor, const char *job, uint64_t epoch,
                        const uint32_t *ranks, size_t count, struct supervisor_actions *actions)
{
    for (size_t i = 0; i < count; i++) {
        if (knows(supervisor, job, epoch, ranks[i]))
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
        drills_inflict(supervisor, record->drill, actions);
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
