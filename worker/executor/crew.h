/* crew.h - runs the ranks of this process, each in a thread of its own.
 *
 * In a cluster that is one rank; without one, all ranks of a job. */
#ifndef WORKER_EXECUTOR_CREW_H
#define WORKER_EXECUTOR_CREW_H

#include "worker/executor/session.h"
#include "worker/hardware/cpuset.h"

/* What all ranks of this process share. work_close frees what it owns, which is what work_open has
 * opened, session, plan, hub and trainer.trail; the rest is lent. */
struct work {
    struct session *session;
    struct job_config *job;
    struct graph *graph;
    struct plan *plan;
    struct data_source *data;
    struct pretrained *pretrained;
    struct tokenizer *tokenizer;
    /* What trainers are told, as far as it is the same for all. What follows, and the above, is
     * filled in for each rank. */
    struct trainer_config trainer;
    struct reporter reporter;
    struct saver_config saving;           /* root NULL: no checkpoints are written */
    struct manifest_file *files;          /* the data; their paths are the session's */
    const char **nodes;                   /* node of each rank, if something is kept */
    const Gimbal__Assignment *assignment; /* NULL without a cluster */
    struct rendezvous rendezvous;
    const char *interface; /* address at which other ranks reach this one; NULL: loopback */
    struct local_hub *hub;
    /* The lock guards running (ranks that have not ended) and rc, err: those of the rank that
     * failed first. */
    pthread_mutex_t lock;
    int running, rc;
    struct error *err;
};

struct member {
    struct work *work;
    int rank;
    cpu_set_t cores;
    bool bind; /* bind the thread to the cores; otherwise it is bound already */
    pthread_t thread;
};

/* Map an error of opening what the job names. A path that is wrong, or contents that do not fit the
 * job, become -ENODATA, because no other attempt would mend that. Everything else, such as a disk
 * that fails or too little memory, may be the fault of this node and stays rc. */
int work_fault(int rc);
/* Build the graph, and open the data and weights that the job names. Errors are passed through
 * work_fault where a file is concerned. */
int work_open(struct work *work, struct error *err);
/* Free everything that `work` owns. Accepts a work that is partly filled in. */
void work_close(struct work *work);
/* Run `count` ranks to their ends, each in a new thread, while this thread serves the channel.
 * Every rank reports its own end to the other side. Returns the error of the rank that failed
 * first. */
int crew_run(struct work *work, struct member *members, int count, struct error *err);
/* Refuse to run: report to the other side why nothing was trained, and close the work. Returns
 * rc. */
int crew_refuse(struct work *work, int rank, int rc, const struct error *err);
/* Whether this process stays, with what it has kept, after an epoch in which its rank ended with
 * rc. It does if the end was caused by others or if the rank has done its part, unless it was told
 * to end: whether all of the job is done is for the coordinator to say, and until then somebody may
 * need the state. */
bool crew_stays(const struct work *work, int rc);

#endif
