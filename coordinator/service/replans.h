/* replans.h - from the moment a job breaks to its next finished step: what became of it, and how
 * long each phase took; whether executors stayed or all began again. */
#ifndef COORDINATOR_SERVICE_REPLANS_H
#define COORDINATOR_SERVICE_REPLANS_H

#include "coordinator/jobs/job.h"
#include "proto/worker.pb-c.h"

#include <jansson.h>

#define REPLAN_DIVISION_SIZE 64

struct planning;

/* One side of a replan. */
struct replan_side {
    char plan[JOB_PLAN_SIZE], division[REPLAN_DIVISION_SIZE];
    const char *safety; /* safety_name() of the plan */
    size_t devices;
};

/* Zeroed to begin with. Times are the service's milliseconds. */
struct replan {
    bool going; /* it broke, and has finished no step since */
    char cause[JOB_WORDS_SIZE];
    enum job_reason reason;
    struct replan_side before, after;
    uint64_t broke_ms;   /* that was heard of */
    uint64_t left_ms;    /* the last executor had left the epoch */
    uint64_t granted_ms; /* devices */
    uint64_t planned_ms; /* and assigned */
    uint64_t ready_ms;   /* all of its new ranks */
    uint64_t reached;    /* the newest step that was heard of before */
    /* Of the slowest rank, and of all together. */
    double prepare_s, fill_s;
    uint64_t bytes;
    bool from_memory;
    unsigned inherited; /* ranks that found what a dead executor had left */
    uint64_t step;      /* behind which it goes on */
    double took_s;      /* the newest that is over; 0: there was none */
    uint64_t lost;      /* steps, by that one */
};

/* The job is in the state that its record says, with the plan that it has. */
void replan_follow(struct replan *replan, const struct job *job, const struct planning *planning,
                   uint64_t now_ms);
/* A rank of the new epoch is ready. */
void replan_ready(struct replan *replan, const Gimbal__ReadyRequest *ready);
/* The new epoch has finished a step: what there is to say, yours, and its JSON. */
char *replan_end(struct replan *replan, const struct job *job, uint64_t now_ms, json_t **json);

#endif
