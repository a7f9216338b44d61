/* ask.h - flags common to all subcommands of `gimbal plan` that plan themselves: the job, the
 * devices, and how to search. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_ASK_H
#define COORDINATOR_CLI_COMMANDS_PLAN_ASK_H

#include "coordinator/cli/options.h"
#include "coordinator/cli/plans/offline.h"

/* The --cost that compares cost models instead of pricing instructions: see referees.h. */
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
         .least = 1,  .greatest = LOCAL_DEVICES_MAX},                                              \
        LOCAL_MEASURE_FLAG(struct ask_values, measure),                                            \
        {"cluster", 0,                                                                             \
         FLAG_TEXT, offsetof(struct ask_values, cluster),                                          \
         "FILE",    "plan for the nodes of a cluster file, or of 'gimbal nodes -o json'"},         \
        {"cost",                                                                                   \
         0,                                                                                        \
         FLAG_TEXT,                                                                                \
         offsetof(struct ask_values, cost),                                                        \
         "NAME",                                                                                   \
         "measured, analytic or best (whichever there is); 'gimbal plan' also takes galvatron"},   \
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
