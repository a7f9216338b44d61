/* restarts.c - which ends of an epoch are worth another try.
 *
 * Without executors that stay it begins at the newest checkpoint that is listed, or at step 0, and
 * the words say which. One that cannot be loaded is passed over for the one before; where none is
 * left the job has failed: what it had learned is not given up without a word.
 *
 * What is counted is restarts in a row in which the job got no further than before: a machine that
 * fails now and then does not end a long job. A worker that is lost, a rank that held up the others
 * and one that gave up on another say nothing about the job: it begins again as long as its budget
 * (elastic.max_restarts) lasts. So does one whose rank ran out of memory: its next plan is another,
 * with less of it there. A fault of a rank's own may be the program's, which comes again at
 * the same step, or a stranger's signal, which does not, and nobody can tell: it is tried a few
 * times only, so that a bad job does not go round in a loop. So are steps that are not finite, one
 * after the other: of the state that led to them nothing is kept, not even in memory. What was
 * refused, a program or data, is refused for good. */
#include "coordinator/jobs/restarts.h"

#include <stdio.h>
#include <string.h>

#define FAULTS_MAX 4 /* of ranks by themselves, and no step in between */

/* "after 2 restarts, no further than step 7: "; "" after none. */
static const char *print_after(const struct job *job, char *out, size_t size)
{
    out[0] = '\0';
    if (job->restarts > 0)
        snprintf(out, size, "after %u restart%s without getting past step %llu: ", job->restarts,
                 job->restarts == 1 ? "" : "s", (unsigned long long)job->reached_step);
    return out;
}

/* What was counted at an earlier step is over. Steps that were skipped got the job no further. */
static void count_fault(struct job *job)
{
    uint64_t reached = job->skipped ? job->skipped_from - 1 : job->step;
    if (reached > job->reached_step) {
        job->reached_step = reached;
        job->restarts = job->faults = 0;
    }
    job->faults += job->reason == JOB_REASON_RANK_FAILED || job->reason == JOB_REASON_NOT_FINITE;
}

static bool is_worth_it(const struct job *job)
{
    if (job->restarts >= job->restarts_max)
        return false;
    switch (job->reason) {
    case JOB_REASON_WORKER_LOST:
    case JOB_REASON_PEER_LOST:
    case JOB_REASON_RANK_STALLED:
    case JOB_REASON_OUT_OF_MEMORY:
        return true;
    case JOB_REASON_CHECKPOINT_DAMAGED:
        return job->checkpoint_step > 0;
    case JOB_REASON_NOT_FINITE:
        return job->checkpoint_step > 0 && job->faults < FAULTS_MAX;
    case JOB_REASON_RANK_FAILED:
        return job->faults < FAULTS_MAX;
    default:
        return false;
    }
}

static void give_up(const struct job *job, struct job_cause *cause)
{
    char after[96];
    const char *none = "";
    if (job->checkpoint_step == 0 && job->reason == JOB_REASON_CHECKPOINT_DAMAGED)
        none = "no older checkpoint is listed; submitted again, it would start at step 0: ";
    if (job->checkpoint_step == 0 && job->reason == JOB_REASON_NOT_FINITE)
        none = "there is no listed checkpoint to go back to: ";
    job_cause_set(cause, job->reason, "%s%s%s", print_after(job, after, sizeof after), none,
                  job->words);
}

bool job_begins_again(struct job *job, struct job_cause *cause)
{
    char from[64] = "step 0";
    memcpy(job->broke, job->words, sizeof job->broke);
    job->broke_reason = job->reason;
    if (job->reason == JOB_REASON_REPLAN) { /* costs nothing: nothing was wrong */
        job_cause_set(cause, JOB_REASON_RESTART, "replan: %s", job->words);
        memcpy(job->again, cause->words, sizeof job->again);
        return true;
    }
    count_fault(job);
    if (!is_worth_it(job)) {
        give_up(job, cause);
        return false;
    }
    job->restarts++;
    if (job->checkpoint_step > 0)
        snprintf(from, sizeof from, "the checkpoint of step %llu",
                 (unsigned long long)job->checkpoint_step);
    if (job->state == JOB_REPLANNING)
        job_cause_set(cause, JOB_REASON_RESTART, "replan %u of %u: %s", job->restarts,
                      job->restarts_max, job->words);
    else
        job_cause_set(cause, JOB_REASON_RESTART, "restart %u of %u, from %s: %s", job->restarts,
                      job->restarts_max, from, job->words);
    memcpy(job->again, cause->words, sizeof job->again);
    return true;
}
