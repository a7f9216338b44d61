/* offline.h - planning without a coordinator: for this machine, or for the cluster of a file. */
#ifndef COORDINATOR_CLI_PLANS_OFFLINE_H
#define COORDINATOR_CLI_PLANS_OFFLINE_H

#include "coordinator/cli/local/local.h"
#include "coordinator/planning/fleet.h"
#include "coordinator/planning/inventory.h"

struct offline_request {
    const char *job_path;
    const char *job_text;     /* content of job_path; NULL: read the file */
    const char *search;       /* NULL: as the job says */
    const char *plan_path;    /* a plan to price instead of searching; NULL: search */
    const char *plan_text;    /* content of plan_path; NULL: read the file */
    const char *dump_path;    /* where to write the problem's costs first; NULL: nowhere */
    const char *cluster_path; /* a cluster file to plan for; NULL: this machine */
    const char *cluster_text; /* content of cluster_path; NULL: read the file */
    uint64_t memory;          /* plan.memory; 0: as the job says */
    enum planning_cost cost;  /* for a cluster file */
    int device_count;         /* number of devices of this machine: parts of its cores */
    const char *device;       /* or ranks on this device of it; NULL: the cores */
    bool measure;             /* measure this machine even if a measurement is kept */
    bool frontier;            /* use plan.objective frontier, whatever the job says */
    bool to_train;            /* refuse what cannot be trained yet */
    bool to_resume;           /* require a directory of checkpoints to resume from */
    bool quiet;               /* do not report search progress or when measurements were made */
};

struct offline {
    char *text; /* of the job file */
    struct job_config *job;
    struct graph *graph;
    struct local local; /* this machine */
    /* or the cluster of a file, and the devices that the job may have of it */
    struct inventory inventory;
    struct device_view *picked;
    struct fleet fleet;
    struct planner_request request; /* the planner's request; refers to the members above */
    struct planner_result result;
    struct plan *best; /* lent by result; NULL: none fits */
};

/* Read the job, and measure the machine or read the cluster, without planning. An enum exit_code.
 * The caller finishes *offline in any case. */
int offline_open(const struct offline_request *request, struct offline *offline, struct error *err);
/* The same, and plan. An enum exit_code; after EXIT_NO_PLAN the candidates that were examined are
 * kept. The caller finishes *offline in any case. */
int offline_run(const struct offline_request *request, struct offline *offline, struct error *err);
void offline_finish(struct offline *offline);

#endif
