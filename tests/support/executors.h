/* executors.h - starts gimbal-executor processes for a test, and makes the job that they work on.
 * Errors fail the test. */
#ifndef TESTS_SUPPORT_EXECUTORS_H
#define TESTS_SUPPORT_EXECUTORS_H

#include "common/message/channel.h"
#include "common/models/model.h"
#include "common/plan/plan.h"
#include "proto/executor.pb-c.h"

#include <sys/types.h>

#define EXECUTOR_DEADLINE_MS 60000 /* for an event */

struct executor {
    pid_t pid;
    struct channel channel;
};

/* A temporary directory with a text, a job file and a plan file; the paths of all of them. */
struct executor_job {
    struct job_model model;
    char directory[64], job[96], plan[96], text[96];
};

/* Make the job of a byte-level GPT with 2 layers of 32 and 8 samples of 32 bytes per step. The plan
 * is written by executor_job_plan(). */
void executor_job_make(struct executor_job *job, int steps);
/* Make that of another byte-level model. */
void executor_job_make_of(struct executor_job *job, int steps, const struct job_model *model);
/* Append lines to the job file. */
void executor_job_append(const struct executor_job *job, const char *lines);
/* Write the plan file. */
void executor_job_plan(const struct executor_job *job, const struct plan *plan);
/* The graph of its model, for the caller to destroy. */
struct graph *executor_job_graph(const struct executor_job *job);
/* Remove the directory and its files. */
void executor_job_clean(const struct executor_job *job);

/* Start the program at path, connected by a channel. The arguments end with NULL, and do not
 * include its name and the channel. */
void executor_start(struct executor *executor, const char *path, const char *const *arguments);
/* The next event, to be freed; NULL when the executor has closed its side. */
Gimbal__ExecutorEvent *executor_next(struct executor *executor);
/* Close the channel and wait for the process; returns its status, as of waitpid(). */
int executor_finish(struct executor *executor);

/* A summary of the events of a job's executors, zero at first. */
struct executor_seen {
    int steps, evaluations, ready, stopped, done; /* counts; done: stopped because it was done */
    double loss[256], evaluation;                 /* of each step; the last evaluation */
    size_t sample;                                /* bytes of the last text */
    char reason[512];                             /* of the last stop */
};
/* Add an event to the summary. */
void executor_see(struct executor_seen *seen, const Gimbal__ExecutorEvent *event);
/* Add all events of one process, until it closes the channel. */
void executor_see_all(struct executor *executor, struct executor_seen *seen);

#endif
