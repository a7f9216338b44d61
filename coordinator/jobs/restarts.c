/* restarts.c - decides whether a job whose epoch ended badly is worth another try.
 *
 * If no executors stay, it restarts from the newest listed checkpoint, or at step 0, and the words
 * say which. A checkpoint that cannot be loaded is skipped in favour of the one before; if none is
 * left the job fails: what it had learned is not given up silently.
 *
 * Restarts are counted as long as the job gets no further than before, so a machine that fails now
 * and then does not end a long job. A lost worker, a rank that held up the others and a rank that
 * gave up on another one say nothing about the job: it restarts as long as its budget
 * (elastic.max_restarts) lasts. So does a job whose rank ran out of memory: its next plan uses less
 * memory there. A fault of a rank itself may come from the program and then recurs at the same
 * step, or from somebody's signal and then does not, and there is no way to tell: it is retried
 * only a few times, so that a bad job does not loop. The same holds for consecutive steps that are
 * not finite; of the state that led to them nothing is kept, not even in memory. A refusal, of a
 * program or of data, is final. */
#include "coordinator/jobs/restarts.h"

#include <stdio.h>
#include <string.h>

#define FAULTS_MAX 4 /* faults of ranks by themselves without a step in between */

/* As in "after 2 restarts without getting past step 7: "; "" if there were none. */
static const char *print_after(const struct job *job, char *out, size_t size)
{
    out[0] = '\0';
    if (job->restarts > 0)
        snprintf(out, size, "after %u restart%s without getting past step %llu: ", job->restarts,
                 job->restarts == 1 ? "" : "s", (unsigned long long)job->reached_step);
    return out;
}

/* Reset the counters if the job got further; skipped steps do not count as progress. */
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
    if (job->reason == JOB_REASON_REPLAN) { /* not counted: nothing was wrong */
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
