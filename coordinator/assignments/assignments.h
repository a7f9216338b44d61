/* assignments.h - what each worker is to do, as one numbered stream of records per instance.
 *
 * Whatever a job decides becomes records here: an Assignment for each rank, then Go, later PauseJob
 * and ResumeJob, or at any time Quiesce or CancelJob. Workers read their streams at their own pace
 * and lose nothing. Pure. */
#ifndef COORDINATOR_ASSIGNMENTS_ASSIGNMENTS_H
#define COORDINATOR_ASSIGNMENTS_ASSIGNMENTS_H

#include "common/rpc/stream.h"
#include "coordinator/jobs/job.h"
#include "proto/drill.pb-c.h"

/* Records kept for a worker that is slow to ask: several per rank and epoch. */
#define ASSIGNMENTS_KEPT 4096
/* Of those that it has, which are its own to repeat: the newest. */
#define ASSIGNMENTS_TAKEN_KEPT 64

struct assignments;

struct assignments *assignments_create(uint64_t term);
/* Accepts NULL. */
void assignments_destroy(struct assignments *assignments);

/* A worker has registered as this instance, or is lost. Both may be said twice. */
void assignments_open(struct assignments *assignments, uint64_t instance);
void assignments_close(struct assignments *assignments, uint64_t instance);
/* Lent until the instance is closed; NULL when it is not open. */
const struct stream *assignments_stream(const struct assignments *assignments, uint64_t instance);

/* The worker has the records up to this one; each has a job file and a plan in it, so those are not
 * kept for as long as the worker lives. */
void assignments_taken(struct assignments *assignments, uint64_t instance, uint64_t revision);

/* A worker whose stream has grown since it was last named here, or was closed; false when there
 * is none. For waking those that wait. */
bool assignments_changed(struct assignments *assignments, uint64_t *instance);

/* What an epoch's ranks are told beside their place. */
struct assignments_epoch {
    const struct job *job; /* its ranks are in the plan's order */
    size_t trainers;       /* ranks of the plan; those behind them only give */
    const char *plan_id, *plan_json;
    const uint64_t *hashes;       /* of each rank's program */
    const double *compute_s;      /* predicted of each rank's kernels in a step; NULL: not known */
    const char *const *addresses; /* of each rank's host; "" where it has none */
    const char *const *devices;   /* that each rank computes on; "": its cores */
    uint64_t orphan_ms;           /* so long it trains without a coordinator */
    bool measures_links;          /* between its hosts, before the first step */
    uint64_t copy_every;          /* steps between copies of state; 0: as the job says */
    const char *checkpoint_root;  /* where its checkpoints go; NULL: nowhere */
    const char *checkpoint;       /* of the job's checkpoint_step; NULL: it starts anew */
};

/* Append to the streams of the workers that are open; the others are lost, and their ranks with
 * them. Go, pause and cancel are said once to each worker that has a rank. Go also says which of
 * the job's pauses are over. */
void assignments_assign(struct assignments *assignments, const struct assignments_epoch *epoch);
void assignments_go(struct assignments *assignments, const struct job *job);
void assignments_pause(struct assignments *assignments, const struct job *job);
void assignments_cancel(struct assignments *assignments, const struct job *job);
/* As cancel, but executors that can stay do, with their state. */
void assignments_quiesce(struct assignments *assignments, const struct job *job);
/* To the worker of one rank: end its executor, for this reason. */
void assignments_end(struct assignments *assignments, const struct job *job, size_t rank,
                     const char *reason);
/* The same: do this fault to it. */
void assignments_drill(struct assignments *assignments, const struct job *job, size_t rank,
                       Gimbal__DrillFault fault);
/* To one worker: end what it has of a job that there is not, or leave this epoch, which is over. */
void assignments_disown(struct assignments *assignments, uint64_t instance, const char *job,
                        uint64_t epoch, bool known);
/* To every worker: whoever keeps state of the job may let it go. */
void assignments_drop(struct assignments *assignments, const struct job *job);

#endif
