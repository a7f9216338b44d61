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

uint64_t cluster_draw(struct cluster *cluster, uint64_t bound);

/* What holds between any two turns: who holds what, what is stored, what runs where. */
void cluster_check(const struct cluster *cluster);

/* Just after a schedule: nobody was overtaken. */
void cluster_check_fifo(const struct cluster *cluster, const struct device_view *views,
                        size_t count);

#endif
