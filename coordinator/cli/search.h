/* search.h - planning in this process: for this machine, for the cluster of a file, or for the
 * nodes that the coordinator lists; and the flags by which commands ask for it. */
#ifndef COORDINATOR_CLI_SEARCH_H
#define COORDINATOR_CLI_SEARCH_H

#include "common/base/error.h"
#include "coordinator/cli/machine.h"
#include "coordinator/cli/options.h"
#include "coordinator/planning/fleet.h"

struct offline_request {
    const char *job_path;
    const char *job_text;     /* content of job_path; NULL: read the file */
    const char *search;       /* NULL: as the job says */
    const char *plan_path;    /* a plan to price instead of searching; NULL: search */
    const char *plan_text;    /* content of plan_path, the plan of a job; NULL: read the file */
    const char *dump_path;    /* where to write the problem's costs first; NULL: nowhere */
    const char *cluster_path; /* a cluster file to plan for; NULL: this machine */
    struct inventory *nodes;  /* what cluster_path names, taken over; NULL: read the file */
    uint64_t memory;          /* plan.memory; 0: as the job says */
    enum planning_cost cost;  /* for a cluster file */
    int device_count;         /* number of devices of this machine: parts of its cores */
    const char *device;       /* or ranks on this device of it; NULL: the cores */
    bool measure;             /* measure this machine even if a measurement is kept */
    bool frontier;            /* use plan.objective frontier, whatever the job says */
    bool to_train;            /* refuse what cannot be trained yet */
    bool quiet;               /* do not report search progress or when measurements were made */
};

struct offline {
    char *text; /* of the job file */
    struct job_config *job;
    struct graph *graph;
    struct machine machine; /* this machine */
    /* or the cluster of a file, and the devices that the job may have of it */
    struct inventory inventory;
    struct device_view *picked; /* NULL: it is for the devices that a job has */
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

/* The nodes that are alive, whether or not their devices are in use, or all that have told what
 * they have. The caller finishes *out in any case. An enum exit_code; EXIT_AGAIN: none is alive, or
 * all are drained. */
int living_nodes(const struct common *common, bool all, struct inventory *out, struct error *err);
/* The devices that the ranks of a job's plan run on, priced as the coordinator prices them. The
 * caller finishes *out in any case. EXIT_PRECONDITION: one is gone, or its speed is unknown. */
int living_fleet(const struct inventory *inventory, const struct plan *plan,
                 enum planning_cost cost, struct fleet *out, struct error *err);
/* If `code` says that there is no coordinator, or no node now, add to the message how to plan
 * without them; returns code. */
int living_suggest(int code, struct error *err);

/* Flags common to all subcommands of `gimbal plan` that plan themselves: the job, the devices, and
 * how to search. */

/* The --cost that compares cost models instead of pricing instructions: only `plan` itself has it.
 */
#define GALVATRON_COST "galvatron"

struct ask_values {
    const char *file, *search, *plan, *cluster, *cost;
    const char *dump; /* only for `plan` itself */
    /* Not flags: the contents of file and plan, which are then mere names; NULL: read the files. */
    const char *job_text, *plan_text;
    int64_t local;
    uint64_t memory; /* 0: not given */
    bool measure;
    bool frontier; /* not a flag: use plan.objective frontier, whatever the job says */
};

/* Rows for a command's table of flags whose struct begins with `ask`. */
#define ASK_FLAGS                                                                                  \
    {"file", 'f', FLAG_TEXT, offsetof(struct ask_values, file), "FILE", "the job file"},           \
        {"local",     0,                                                                           \
         FLAG_NUMBER, offsetof(struct ask_values, local),                                          \
         "N",         "plan for this machine's cores as N devices, without a coordinator",         \
         .least = 1,  .greatest = MACHINE_DEVICES_MAX},                                            \
        MACHINE_MEASURE_FLAG(struct ask_values, measure),                                          \
        {"cluster", 0,                                                                             \
         FLAG_TEXT, offsetof(struct ask_values, cluster),                                          \
         "FILE",    "plan for the nodes of a cluster file, or of 'gimbal nodes -o json'"},         \
        {"cost",                                                                                   \
         0,                                                                                        \
         FLAG_TEXT,                                                                                \
         offsetof(struct ask_values, cost),                                                        \
         "NAME",                                                                                   \
         "measured, analytic or best (whichever there is); 'gimbal plan' also takes galvatron",    \
         .words = planning_costs},                                                                 \
        {"memory",  0,                                                                             \
         FLAG_SIZE, offsetof(struct ask_values, memory),                                           \
         "SIZE",    "memory of each device, instead of the job's plan.memory"},                    \
        {"search",  0,                                                                             \
         FLAG_TEXT, offsetof(struct ask_values, search),                                           \
         "NAME",    "the search, instead of the job's plan.search"},                               \
    {                                                                                              \
        "plan", 0, FLAG_TEXT, offsetof(struct ask_values, plan), "FILE",                           \
            "price this plan instead of searching for one"                                         \
    }

/* Check which flags go together, and make the request from them; for this machine or a cluster
 * file, not for a coordinator. EXIT_USAGE with a message. */
int ask_request(const struct ask_values *ask, struct offline_request *request, struct error *err);
/* Plan; if no devices are named, for the coordinator's nodes that are alive. Returns as
 * offline_run(). */
int ask_run(const struct common *common, const struct ask_values *ask, struct offline *offline,
            struct error *err);

#endif
