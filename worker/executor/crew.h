/* crew.h - the ranks of this process, in threads of their own. */
#ifndef WORKER_EXECUTOR_CREW_H
#define WORKER_EXECUTOR_CREW_H

#include "worker/executor/session/session.h"
#include "worker/hardware/cpuset.h"

/* What all ranks of this process share. */
struct work {
    struct session *session;
    struct job_config *job;
    struct graph *graph;
    struct plan *plan;
    struct data_source *data;
    struct pretrained *pretrained; /* as trainer_config's */
    const struct device *device;   /* that its ranks compute on */
    const struct collectives *collectives;
    struct rendezvous rendezvous;
    const char *interface; /* to meet other ranks at; NULL: on loopback */
    struct local_hub *hub;
    struct reporter reporter;
    const char *start; /* as trainer_config's */
    struct move_age start_age;
    struct kept *kept;          /* NULL: the process ends with its epoch */
    int givers;                 /* ranks behind those of the plan */
    const char **nodes;         /* of each rank, where something is kept */
    struct saver_config saving; /* root NULL: no checkpoints are written */
    struct local_saving *local; /* without a cluster, where they are */
    struct trail *trail;        /* NULL: nobody reads how far a rank is */
    double compute_s;           /* as trainer_config's */
    uint64_t hash;
    const Gimbal__Assignment *assignment; /* NULL without a cluster */
    pthread_mutex_t lock;
    int running, rc;
    struct error *err;
};

struct rank {
    struct work *work;
    int rank;
    cpu_set_t cores;
    bool bind; /* else the cores are those it was started on */
    pthread_t thread;
};

/* Of what the job names: -ENODATA for a path that is wrong and for what does not fit, which no
 * other try mends; else rc: a disk that fails, or memory that is short, may be the node's fault. */
int work_fault(int rc);
/* The graph, and the files that the job names. */
int work_open(struct work *work, struct error *err);
void work_close(struct work *work);
/* Start the ranks in threads of their own, and serve the channel meanwhile; each tells its end to
 * the other side. The error is that of the first that failed. */
int crew_run(struct work *work, struct rank *ranks, int count, struct error *err);
/* Nothing was trained: the other side has to know why. Closes the work; returns rc. */
int crew_refuse(struct work *work, int rank, int rc, const struct error *err);
/* After an epoch that ended so, this process stays, with what it has kept. */
bool crew_stays(const struct work *work, int rank, int rc);

#endif
