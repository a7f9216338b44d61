/* planned.h - a plan together with its job, from whatever source the command line names: a job of
 * the cluster, a saved file, or a new search, by the coordinator or for this machine. */
#ifndef COORDINATOR_CLI_PLANNED_H
#define COORDINATOR_CLI_PLANNED_H

#include "coordinator/cli/client.h"
#include "coordinator/cli/machine.h"
#include "coordinator/cli/options.h"
#include "coordinator/planner/planner.h"
#include "coordinator/planning/fleet.h"

struct planned_flags {
    const char *file, *plan, *search;
    int64_t local;
    bool measure;
};

/* Rows for a table of flags whose values struct contains a struct planned_flags. */
/* clang-format off */
#define PLANNED_FLAGS(type, member)                                                             \
    {"file", 'f', FLAG_TEXT, offsetof(type, member.file), "FILE",                               \
     "the job file, if no JOB is named"},                                                       \
    {"plan", 0, FLAG_TEXT, offsetof(type, member.plan), "FILE",                                 \
     "a saved plan of that job, instead of a search"},                                          \
    {"local", 0, FLAG_NUMBER, offsetof(type, member.local), "N",                                \
     "plan for this machine's cores as N devices, without a coordinator",                       \
     .least = 1, .greatest = MACHINE_DEVICES_MAX},                                              \
    MACHINE_MEASURE_FLAG(type, member.measure),                                                 \
    {"search", 0, FLAG_TEXT, offsetof(type, member.search), "NAME",                             \
     "the search, instead of the job's plan.search"}
/* clang-format on */

struct planned {
    struct job_config *config;
    struct graph *graph;
    struct plan *plan;
    char *json;     /* of the plan, as received */
    uint64_t epoch; /* of the job it belongs to; 0: none */
    /* Its devices: this machine's, if it was planned for them; or those that its ranks run on, if
     * they were asked for. */
    struct machine machine;
    struct fleet fleet;
};

/* The JOB that is a command's only argument; NULL: none is given. EXIT_USAGE: it is a file, which
 * has to be named by a flag. */
int planned_job(const struct invocation *invocation, const char **job, struct error *err);
/* Get the plan. job NULL: the flags name a file. An enum exit_code; EXIT_PRECONDITION: the job has
 * no plan at present. The caller finishes *out in any case. */
int planned_open(const struct common *common, const struct planned_flags *flags, const char *job,
                 struct planned *out, struct error *err);
/* Fill in the devices, asking the coordinator if necessary. An enum exit_code; EXIT_PRECONDITION:
 * the device of a rank is gone, or its speed is unknown. */
int planned_rate(const struct common *common, struct planned *planned, struct error *err);
/* The request that the plan answers, on these devices; see shared_cores_order(). */
struct planner_request planned_request(const struct planned *planned);
void planned_finish(struct planned *planned);

/* Lower one rank's program, owned by the caller. EXIT_USAGE: the plan has no such rank. */
struct program;
int planned_lower(const struct planned *planned, int64_t rank, struct program **out,
                  struct error *err);

#endif
