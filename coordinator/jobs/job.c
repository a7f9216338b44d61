/* job.c - one job's record: copies, the devices of its ranks, and names of states and reasons. */
#include "coordinator/jobs/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "coordinator/jobs/internal.h"

struct job *job_copy(const struct job *job)
{
    struct job *copy = xcalloc(1, sizeof *copy);
    *copy = *job;
    copy->key = xstrdup(job->key);
    copy->name = xstrdup(job->name);
    copy->user = xstrdup(job->user);
    copy->text = xstrdup(job->text);
    copy->given = xstrdup(job->given);
    copy->named = xstrdup(job->named);
    copy->origin = xstrdup(job->origin);
    copy->saves_in = xstrdup(job->saves_in);
    copy->ranks = xcalloc(job->rank_count, sizeof *copy->ranks);
    if (job->rank_count)
        memcpy(copy->ranks, job->ranks, job->rank_count * sizeof *copy->ranks);
    return copy;
}

void job_destroy(struct job *job)
{
    if (!job)
        return;
    free(job->ranks);
    free(job->saves_in);
    free(job->origin);
    free(job->named);
    free(job->given);
    free(job->text);
    free(job->user);
    free(job->name);
    free(job->key);
    free(job);
}

bool job_is_of(const struct job *job, const struct job_submission *submission)
{
    const char *given = submission->given ? submission->given : "";
    return strcmp(job->text, submission->text) == 0 && strcmp(job->given, given) == 0;
}

uint64_t job_saved_step(const struct job *job)
{
    return job->checkpoint_step > 0 ? job->checkpoint_step : job->origin_step;
}

bool job_ended(const struct job *job)
{
    return job->state == JOB_DONE || job->state == JOB_FAILED || job->state == JOB_CANCELLED;
}

static bool job_rank_holds(const struct job_rank *rank)
{
    bool gave = rank->role == JOB_RANK_GIVES && rank->state == JOB_RANK_EXITED;
    return rank->state != JOB_RANK_LOST && !gave;
}

size_t job_trainers(const struct job *job)
{
    size_t count = 0;
    while (count < job->rank_count && job->ranks[count].role != JOB_RANK_GIVES)
        count++;
    return count;
}

bool job_trains_on(const struct job *job, const struct device_ref *device)
{
    for (size_t i = 0; i < job->rank_count && job->ranks[i].role != JOB_RANK_GIVES; i++)
        if (device_ref_equal(&job->ranks[i].device, device))
            return true;
    return false;
}

size_t job_devices(const struct job *job, struct device_ref *out)
{
    size_t count = 0;
    for (size_t i = 0; job->holding && i < job->rank_count; i++)
        if (job_rank_holds(&job->ranks[i]))
            out[count++] = job->ranks[i].device;
    return count;
}

bool job_left_executors(const struct job *job)
{
    return job->state == JOB_PENDING && job->rank_count > 0;
}

/* The index of the device among the ranks from `first` on; count if it is not there. */
static size_t job_find_device(const struct job_rank *ranks, size_t first, size_t count,
                              const struct device_ref *device)
{
    size_t i = first;
    while (i < count && !device_ref_equal(&ranks[i].device, device))
        i++;
    return i;
}

/* Move the ranks of the plan's devices to the front, in the plan's order. */
static int ranks_order(struct job_rank *ranks, size_t granted, const struct device_ref *devices,
                       size_t count, struct error *err)
{
    for (size_t rank = 0; rank < count; rank++) {
        size_t found = job_find_device(ranks, rank, granted, &devices[rank]);
        if (found == granted)
            return error_set(err, -EINVAL,
                             "rank %zu of the plan is on %s/%u, which was not granted or is "
                             "another rank's",
                             rank, devices[rank].worker, devices[rank].index);
        struct job_rank moved = ranks[rank];
        ranks[rank] = ranks[found];
        ranks[found] = moved;
    }
    return 0;
}

/* The plan's ranks train; of the others, those that may have state hand it over and are ordered
 * behind them. Returns the new number of ranks. */
static size_t ranks_set_roles(struct job_rank *ranks, size_t granted, size_t planned)
{
    size_t count = planned;
    for (size_t i = 0; i < planned; i++)
        ranks[i].role = JOB_RANK_TRAINS;
    for (size_t i = planned; i < granted; i++)
        if (ranks[i].role != JOB_RANK_TRAINS) {
            ranks[count] = ranks[i];
            ranks[count++].role = JOB_RANK_GIVES;
        }
    return count;
}

int job_order_ranks(struct job *job, const struct device_ref *devices, size_t count,
                    struct error *err)
{
    if (count < job->devices_min || count > job_trainers(job))
        return error_set(err, -EINVAL, "%s: the plan uses %zu devices of %zu granted, at least %u",
                         job->id, count, job_trainers(job), job->devices_min);
    struct job_rank *ranks = xcalloc(job->rank_count, sizeof *ranks);
    memcpy(ranks, job->ranks, job->rank_count * sizeof *ranks);
    int rc = ranks_order(ranks, job->rank_count, devices, count, err);
    if (rc < 0) {
        free(ranks);
        return error_prefix(err, rc, "%s", job->id);
    }
    free(job->ranks);
    job->ranks = ranks;
    job->rank_count = ranks_set_roles(ranks, job->rank_count, count);
    return 0;
}

int job_check_rank(const struct job *job, unsigned rank, struct error *err)
{
    if (rank >= job->rank_count)
        return error_set(err, -EINVAL, "%s has no rank %u, its ranks are 0 to %zu", job->id, rank,
                         job->rank_count - 1);
    return 0;
}

const char *job_state_name(enum job_state state)
{
    static const char *const names[JOB_STATES] = {
        [JOB_NEW] = "NEW",
        [JOB_PENDING] = "PENDING",
        [JOB_PLANNING] = "PLANNING",
        [JOB_STARTING] = "STARTING",
        [JOB_RUNNING] = "RUNNING",
        [JOB_PAUSING] = "PAUSING",
        [JOB_PAUSED] = "PAUSED",
        [JOB_RELEASING] = "RELEASING",
        [JOB_CANCELLING] = "CANCELLING",
        [JOB_FAILING] = "FAILING",
        [JOB_REPLANNING] = "REPLANNING",
        [JOB_DONE] = "DONE",
        [JOB_FAILED] = "FAILED",
        [JOB_CANCELLED] = "CANCELLED",
    };
    return names[state];
}

const char *job_reason_name(enum job_reason reason)
{
    static const char *const names[JOB_REASONS] = {
        [JOB_REASON_NONE] = "None",
        [JOB_REASON_NO_DEVICES] = "NoDevices",
        [JOB_REASON_TOO_FEW_DEVICES] = "TooFewDevices",
        [JOB_REASON_DEVICES_BUSY] = "DevicesBusy",
        [JOB_REASON_WAITING_FOR_OTHERS] = "WaitingForOthers",
        [JOB_REASON_HELD] = "Held",
        [JOB_REASON_INFEASIBLE_MEMORY] = "InfeasibleMemory",
        [JOB_REASON_RESTART] = "RestartPending",
        [JOB_REASON_REPLAN] = "ReplanAsked",
        [JOB_REASON_PLAN_REFUSED] = "PlanRefused",
        [JOB_REASON_PROGRAM_REFUSED] = "ProgramRefused",
        [JOB_REASON_DATA_REFUSED] = "DataRefused",
        [JOB_REASON_NO_SPACE] = "NoSpace",
        [JOB_REASON_NOT_SAVED] = "NotSaved",
        [JOB_REASON_CHECKPOINT_DAMAGED] = "CheckpointDamaged",
        [JOB_REASON_RANK_FAILED] = "RankFailed",
        [JOB_REASON_RANK_STALLED] = "RankStalled",
        [JOB_REASON_NOT_FINITE] = "NotFinite",
        [JOB_REASON_OUT_OF_MEMORY] = "OutOfMemory",
        [JOB_REASON_PEER_LOST] = "PeerLost",
        [JOB_REASON_WORKER_LOST] = "WorkerLost",
        [JOB_REASON_CANCELLED] = "Cancelled",
    };
    return names[reason];
}

const char *job_kind_name(enum job_kind kind)
{
    static const char *const names[] = {
        [JOB_ANY] = "any",
        [JOB_CPU] = "cpu",
        [JOB_GPU] = "gpu",
    };
    return names[kind];
}
