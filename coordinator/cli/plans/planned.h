/* planned.h - a plan and what it is a plan of, from wherever a command line names them: that of a
 * job of the cluster, one that was saved to a file, or a new one, by the coordinator or for this
 * machine. */
#ifndef COORDINATOR_CLI_PLANS_PLANNED_H
#define COORDINATOR_CLI_PLANS_PLANNED_H

#include "coordinator/cli/local/local.h"
#include "coordinator/cli/options.h"
#include "coordinator/cli/plans/rates.h"
#include "coordinator/planner/planner.h"

struct planned_flags {
    const char *file, *plan, *search;
    int64_t local;
    bool measure;
};

/* Rows of a table of flags, of a values struct that has a struct planned_flags. */
/* clang-format off */
#define PLANNED_FLAGS(type, member)                                                             \
    {"file", 'f', FLAG_TEXT, offsetof(type, member.file), "FILE",                               \
     "the job file, if no JOB is named"},                                                       \
    {"plan", 0, FLAG_TEXT, offsetof(type, member.plan), "FILE",                                 \
     "a saved plan of that job, instead of a search"},                                          \
    {"local", 0, FLAG_NUMBER, offsetof(type, member.local), "N",                                \
     "plan for this machine's cores as N devices, without a coordinator",                       \
     .least = 1, .greatest = LOCAL_DEVICES_MAX},                                                \
    LOCAL_MEASURE_FLAG(type, member.measure),                                                   \
    {"search", 0, FLAG_TEXT, offsetof(type, member.search), "NAME",                             \
     "the search, instead of the job's plan.search"}
/* clang-format on */

struct planned {
    struct job_config *config;
    struct graph *graph;
    struct plan *plan;
    char *json;         /* of the plan, as it came */
    uint64_t epoch;     /* of the job that it is of; 0: of none */
    struct rates rates; /* of the plan's devices, where they were measured for it or asked for */
};

/* The JOB that is a command's only argument; NULL: none. EXIT_USAGE: it is a file, which flags
 * name. */
int planned_job(const struct invocation *invocation, const char **job, struct error *err);
/* job: NULL where flags name a file. An enum exit_code; EXIT_PRECONDITION: the job has no plan now.
 * *out is the caller's to finish, whatever came out. */
int planned_open(const struct common *common, const struct planned_flags *flags, const char *job,
                 struct planned *out, struct error *err);
/* Fill in the rates, if need be from the coordinator: as rates_ask. */
int planned_rate(const struct common *common, struct planned *planned, struct error *err);
void planned_finish(struct planned *planned);

/* One rank's program, yours. EXIT_USAGE: the plan has no such rank. */
struct program;
int planned_lower(const struct planned *planned, int64_t rank, struct program **out,
                  struct error *err);

#endif
