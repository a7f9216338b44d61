/* replan.h - follows a job from the moment it breaks to its next finished step: what became of it
 * and how long each phase took, whether executors stayed or all started again. */
#ifndef COORDINATOR_TURN_REPLAN_H
#define COORDINATOR_TURN_REPLAN_H

#include "coordinator/jobs/job.h"
#include "proto/worker.pb-c.h"

#include <jansson.h>

#define REPLAN_DIVISION_SIZE 64

struct planning;

/* One side of a replan, before or after. */
struct replan_side {
    char plan[JOB_PLAN_SIZE], division[REPLAN_DIVISION_SIZE];
    const char *safety; /* safety_name() of the plan */
    size_t devices;
};

/* Initialize to zero. Times are the service's milliseconds. */
struct replan {
    bool going; /* it broke and has not finished a step since */
    char cause[JOB_WORDS_SIZE];
    enum job_reason reason;
    struct replan_side before, after;
    uint64_t broke_ms;   /* when that was heard of */
    uint64_t left_ms;    /* when the last executor had left the epoch */
    uint64_t granted_ms; /* when devices were granted */
    uint64_t planned_ms; /* when it was planned and assigned */
    uint64_t ready_ms;   /* when all of its new ranks were ready; of all of these 0: not yet */
    uint64_t reached;    /* the newest step known before */
    bool reached_more; /* a later one may have been finished: it broke before it was heard of again
                        */
    /* Preparation and state transfer of the slowest rank, and bytes of all ranks together. */
    double prepare_s, fill_s;
    uint64_t bytes;
    bool from_memory;
    unsigned inherited; /* ranks that took over what a dead executor had left */
    uint64_t step;      /* the step after which it goes on */
    double took_s;      /* duration of the newest replan that is over; 0: there was none */
    uint64_t lost;      /* steps lost by it */
};

/* Note that the job is in the state of its record, with this plan. */
void replan_follow(struct replan *replan, const struct job *job, const struct planning *planning,
                   uint64_t now_ms);
/* Note that a rank of the new epoch is ready. */
void replan_ready(struct replan *replan, const Gimbal__ReadyRequest *ready);
/* The new epoch has finished a step: returns a sentence that describes the replan, owned by the
 * caller, and sets *json. */
char *replan_end(struct replan *replan, const struct job *job, uint64_t now_ms, json_t **json);

#endif
