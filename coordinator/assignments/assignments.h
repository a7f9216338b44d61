/* assignments.h - what each worker has to do, as one numbered stream of records per instance.
 *
 * Whatever a job decides becomes records here: an Assignment for each rank, then Go, later PauseJob
 * and ResumeJob, or at any time Quiesce or CancelJob. Workers read their streams at their own pace
 * and lose nothing. Pure: no clock and no I/O. */
#ifndef COORDINATOR_ASSIGNMENTS_ASSIGNMENTS_H
#define COORDINATOR_ASSIGNMENTS_ASSIGNMENTS_H

#include "common/rpc/records.h"
#include "coordinator/jobs/job.h"
#include "proto/admin.pb-c.h"

/* Records kept for a worker that is slow to poll: several per rank and epoch. */
#define ASSIGNMENTS_KEPT 4096
/* Of the records a worker has taken, the newest are kept, in case it asks for them again. */
#define ASSIGNMENTS_TAKEN_KEPT 64

struct assignments;

struct assignments *assignments_create(uint64_t term);
/* Accepts NULL. */
void assignments_destroy(struct assignments *assignments);

/* An instance has registered, or is lost. Both are idempotent. */
void assignments_open(struct assignments *assignments, uint64_t instance);
void assignments_close(struct assignments *assignments, uint64_t instance);
/* Lent until the instance is closed; NULL when it is not open. */
const struct stream *assignments_stream(const struct assignments *assignments, uint64_t instance);

/* The worker has taken the records up to this revision. Each contains a job file and a plan, so old
 * ones are dropped instead of being kept for the worker's life. */
void assignments_taken(struct assignments *assignments, uint64_t instance, uint64_t revision);

/* Find a worker whose stream has grown since it was last returned here, or was closed; false if
 * there is none. Used to wake those that wait. */
bool assignments_changed(struct assignments *assignments, uint64_t *instance);

/* What the ranks of an epoch are told besides their place. */
struct assignments_epoch {
    const struct job *job; /* its ranks are in the plan's order */
    size_t trainers;       /* ranks of the plan; those behind them only hand their state over */
    const char *plan_id, *plan_json;
    const uint64_t *hashes;  /* [rank]: of its program */
    const double *compute_s; /* [rank]: predicted seconds of its kernels in a step; NULL: unknown */
    const char *const *addresses; /* [rank]: of its host; "" if unknown */
    const char *const *devices;   /* [rank]: the device it computes on; "": its cores */
    uint64_t orphan_ms;           /* how long it goes on training without a coordinator */
    bool measures_links;          /* measure the links between its hosts before the first step */
    uint64_t copy_every;          /* steps between copies of its state; 0: as the job says */
    bool no_copies;               /* none are made, whatever the job says */
    const char *checkpoint_root;  /* directory for its checkpoints; NULL: none */
    const char *checkpoint;       /* that of the job's checkpoint_step; NULL: it has none */
};

/* Append records to the streams of workers that are open; others are lost, and their ranks with
 * them. Go, pause and cancel are sent once to each worker that has a rank. Go also tells which of
 * the job's pauses are over. */
void assignments_assign(struct assignments *assignments, const struct assignments_epoch *epoch);
void assignments_go(struct assignments *assignments, const struct job *job);
void assignments_pause(struct assignments *assignments, const struct job *job);
void assignments_cancel(struct assignments *assignments, const struct job *job);
/* Like cancel, but executors that can stay do so with their state. */
void assignments_quiesce(struct assignments *assignments, const struct job *job);
/* Tell the worker of one rank to terminate its executor for this reason. */
void assignments_end(struct assignments *assignments, const struct job *job, size_t rank,
                     const char *reason);
/* Tell the worker of one rank to inject this fault. */
void assignments_drill(struct assignments *assignments, const struct job *job, size_t rank,
                       const Gimbal__DrillRequest *request);
/* To one worker: leave this epoch, which is over, if the job lasts; or end what it has of the job.
 */
void assignments_disown(struct assignments *assignments, uint64_t instance, const char *job,
                        uint64_t epoch, bool lasts, const char *reason);
/* To every worker: whoever keeps state of the job may let it go. */
void assignments_drop(struct assignments *assignments, const struct job *job);

#endif
