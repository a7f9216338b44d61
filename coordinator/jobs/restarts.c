/* restarts.c - which ends of an epoch are worth another try.
 *
 * Without executors that stay it begins at the newest checkpoint that is listed, or at step 0, and
 * the words say which. One that cannot be loaded is passed over for the one before; where none is
 * left the job has failed: what it had learned is not given up without a word.
 *
 * A worker that is lost, a rank that held up the others and one that gave up on another say nothing
 * about the job: it begins
 * again as long as its budget (elastic.max_restarts) lasts. A fault of a rank's own would most
 * likely come again, unless the job got further than it did at the last one: so a bad job does
 * not go round in a loop, and a machine that fails now and then does not end a long one. What was
 * refused, a program or data, is refused for good. */
#include "coordinator/jobs/restarts.h"

#include <stdio.h>
#include <string.h>

/* "after 2 restarts: "; "" after none. */
static const char *print_after(const struct job *job, const char *more, char *out, size_t size)
{
    out[0] = '\0';
    if (job->restarts > 0)
        snprintf(out, size, "after %u restart%s%s: ", job->restarts, job->restarts == 1 ? "" : "s",
                 more);
    return out;
}

bool job_begins_again(struct job *job, struct job_cause *cause)
{
    if (job->reason == JOB_REASON_REPLAN) { /* costs nothing: nothing was wrong */
        job_cause_set(cause, JOB_REASON_RESTART, "replan: %s", job->words);
        memcpy(job->again, cause->words, sizeof job->again);
        return true;
    }
    bool own = job->reason == JOB_REASON_RANK_FAILED;
    bool damaged = job->reason == JOB_REASON_CHECKPOINT_DAMAGED;
    bool lost = job->reason == JOB_REASON_WORKER_LOST || job->reason == JOB_REASON_PEER_LOST ||
                job->reason == JOB_REASON_RANK_STALLED || (damaged && job->checkpoint_step > 0);
    bool further = job->step > job->fault_step;
    char after[96], same[64] = "";
    if (own && !further && job->fault_step > 0)
        snprintf(same, sizeof same, ", no further than step %llu",
                 (unsigned long long)job->fault_step);
    if ((!lost && !(own && further)) || job->restarts >= job->restarts_max) {
        bool none = damaged && job->checkpoint_step == 0;
        job_cause_set(cause, job->reason, "%s%s%s", print_after(job, same, after, sizeof after),
                      none
                          ? "no older checkpoint is listed; submitted again it would begin at step "
                            "0: "
                          : "",
                      job->words);
        return false;
    }
    if (own)
        job->fault_step = job->step;
    job->restarts++;
    char from[64] = "step 0";
    if (job->checkpoint_step > 0)
        snprintf(from, sizeof from, "the checkpoint of step %llu",
                 (unsigned long long)job->checkpoint_step);
    if (job->replans)
        job_cause_set(cause, JOB_REASON_RESTART, "replan %u of %u: %s", job->restarts,
                      job->restarts_max, job->words);
    else
        job_cause_set(cause, JOB_REASON_RESTART, "restart %u of %u, from %s: %s", job->restarts,
                      job->restarts_max, from, job->words);
    memcpy(job->again, cause->words, sizeof job->again);
    return true;
}
