/* offline.h - a plan without a coordinator: for this machine, or for the cluster of a file. */
#ifndef COORDINATOR_CLI_OFFLINE_H
#define COORDINATOR_CLI_OFFLINE_H

#include "coordinator/cli/local.h"
#include "coordinator/planning/fleet.h"
#include "coordinator/planning/inventory.h"

struct offline_request {
    const char *job_path;
    const char *job_text;     /* what would be read there; NULL: read it */
    const char *search;       /* NULL: the job's */
    const char *plan_path;    /* a plan to take as it is; NULL: search */
    const char *plan_text;    /* what would be read there; NULL: read it */
    const char *dump_path;    /* where to write the problem's costs first; NULL: nowhere */
    const char *cluster_path; /* a cluster file to plan for; NULL: this machine */
    const char *cluster_text; /* what would be read there; NULL: read it */
    uint64_t memory;          /* plan.memory; 0: the job's */
    enum planning_cost cost;  /* with a cluster file */
    int device_count;         /* of this machine: pieces of its cores, */
    const char *device;       /* or ranks on this one of its devices; NULL: the cores */
    bool measure;             /* this machine, whatever is kept of it */
    bool frontier;            /* plan.objective frontier, whatever the job says */
    bool to_train;            /* what cannot be trained yet is refused */
    bool to_resume;           /* without a folder of checkpoints there is nothing to go on from */
    bool quiet; /* how far a long search is, and what was measured when, is not said */
};

struct offline {
    char *text; /* of the job file */
    struct job_config *job;
    struct graph *graph;
    struct local local;         /* this machine */
    struct inventory inventory; /* or the cluster of a file, and what the job may have of it */
    struct device_view *picked;
    struct fleet fleet;
    struct planner_request request; /* what was asked; lends from all this */
    struct planner_result result;
    struct plan *best; /* lent by result; NULL: none fits */
};

/* Read the job, and measure the machine or read the cluster: what a plan is asked of. An enum
 * exit_code. *offline is the caller's to finish, whatever came out. */
int offline_open(const struct offline_request *request, struct offline *offline, struct error *err);
/* Read the job, measure the machine or read the cluster, plan. An enum exit_code; EXIT_NO_PLAN
 * keeps the candidates that were looked at. *offline is the caller's to finish, whatever came out.
 */
int offline_run(const struct offline_request *request, struct offline *offline, struct error *err);
void offline_finish(struct offline *offline);

#endif
