/* offline.h - a plan for this machine, without a coordinator. */
#ifndef COORDINATOR_CLI_OFFLINE_H
#define COORDINATOR_CLI_OFFLINE_H

#include "coordinator/cli/local.h"

struct offline_request {
    const char *job_path;
    const char *search;    /* NULL: the job's */
    const char *plan_path; /* a plan to take as it is; NULL: search */
    const char *dump_path; /* where to write the problem's costs first; NULL: nowhere */
    int device_count;
};

struct offline {
    char *text; /* of the job file */
    struct job_config *job;
    struct graph *graph;
    struct local local;
    struct planner_result result;
    struct plan *best; /* lent by result; NULL: none fits */
};

/* Read the job, measure the machine, plan. An enum exit_code; EXIT_NO_PLAN keeps the candidates
 * that were looked at. *offline is the caller's to finish, whatever came out. */
int offline_run(const struct offline_request *request, struct offline *offline, struct error *err);
void offline_finish(struct offline *offline);

#endif
