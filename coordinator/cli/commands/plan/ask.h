/* ask.h - what all verbs of `gimbal plan` that plan by themselves are told: the job, the devices,
 * and how to search. */
#ifndef COORDINATOR_CLI_COMMANDS_PLAN_ASK_H
#define COORDINATOR_CLI_COMMANDS_PLAN_ASK_H

#include "coordinator/cli/options.h"
#include "coordinator/cli/plans/offline.h"

/* The --cost that compares referees, and prices no instructions: see referees.h. */
#define GALVATRON_COST "galvatron"

struct ask_values {
    const char *file, *search, *plan, *cluster, *cost;
    const char *dump; /* of `plan` alone */
    /* No flags: what would be read from file and plan, which are names then; NULL: read it. */
    const char *job_text, *plan_text;
    int64_t local;
    uint64_t memory; /* 0: not given */
    bool measure;
    bool frontier; /* no flag: plan.objective frontier, whatever the job says */
};

/* Rows of a command's table of flags, whose struct has `ask` in front. */
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

/* Check what goes together, and the request that comes of it; for this machine or a cluster file,
 * not for a coordinator. EXIT_USAGE in words. */
int ask_request(const struct ask_values *ask, struct offline_request *request, struct error *err);
/* Plan; where no devices are named, for the coordinator's living nodes. As offline_run. */
int ask_run(const struct common *common, const struct ask_values *ask, struct offline *offline,
            struct error *err);

#endif
