/* cluster_internal.h - what the simulated cluster and its checks share. */
#ifndef TESTS_SUPPORT_CLUSTER_INTERNAL_H
#define TESTS_SUPPORT_CLUSTER_INTERNAL_H

#include "coordinator/jobs/jobs.h"
#include "coordinator/membership/membership.h"
#include "tests/support/cluster.h"

#define SIM_WORKERS 5
#define SIM_DEVICES 16

#define SIM_AT "seed %llu, step %llu: "
#define SIM_WHERE(cluster) (unsigned long long)(cluster)->seed, (unsigned long long)(cluster)->step

struct sim_worker {
    char name[HARDWARE_NAME_SIZE];
    enum hardware_kind kind;
    unsigned devices;
    uint64_t instance; /* 0: not running */
    bool silent;
    struct worker *stored; /* by the coordinator; NULL before it joined */
};

struct sim_executor {
    char job[JOB_ID_SIZE];
    uint32_t epoch;
    unsigned rank;
    struct device_ref device;
    bool going, stopping;
    bool exited; /* with the status, which was not acknowledged yet */
    int status;
};

struct cluster {
    uint64_t seed, draws, step, now_ms, next_instance, crashes;
    bool well; /* the coordinator does not crash any more */
    struct membership *membership;
    struct membership_events events;
    struct jobs *jobs;
    struct job_actions actions;
    struct sim_worker workers[SIM_WORKERS];
    struct sim_executor *executors;
    size_t executor_count, executor_capacity;
    struct job_action *plans; /* that the planner works on */
    size_t plan_count, plan_capacity;
    struct job **stored; /* by number */
    size_t stored_count, stored_capacity;
    struct job_event last; /* message that was acknowledged */
    char last_job[JOB_ID_SIZE];
};

bool sim_chance(struct cluster *cluster, uint64_t percent);

/* A coordinator that knows nothing yet. */
void sim_start(struct cluster *cluster);

/* The coordinator dies and another takes over workers and jobs from the store; it tells the jobs
 * which of their workers are unknown. Its actions are still to be carried out. */
void sim_restart(struct cluster *cluster);

/* Carry out what there is and schedule, as often as the coordinator dies of it; true when it did
 * not. */
bool sim_finish_turn(struct cluster *cluster);

/* Deliver a message; true when it was acknowledged, so that the sender need not repeat it. */
bool sim_deliver(struct cluster *cluster, const struct job_event *event);

void sim_drop_executor(struct cluster *cluster, size_t index);
void sim_drop_executors(struct cluster *cluster, uint64_t instance);

/* What holds between any two turns: who holds what, what is stored, what runs where. */
void sim_check(const struct cluster *cluster);

/* Just after a schedule: nobody was overtaken. */
void sim_check_fifo(const struct cluster *cluster, const struct device_view *views, size_t count);

#endif
