/* executors.h - gimbal-executor processes of a test, and the job they work on. */
#ifndef TESTS_SUPPORT_EXECUTORS_H
#define TESTS_SUPPORT_EXECUTORS_H

#include "common/channel/channel.h"
#include "common/models/model.h"
#include "common/plan/plan.h"
#include "proto/executor.pb-c.h"

#include <sys/types.h>

#define EXECUTOR_DEADLINE_MS 60000

struct executor {
    pid_t pid;
    struct channel channel;
};

/* A directory with a text, a job file and a plan file. */
struct executor_job {
    struct model_config model;
    char directory[64], job[96], plan[96], text[96];
};

/* Of a byte-level GPT 2 x 32, 8 samples of 32 bytes a step. */
void executor_job_make(struct executor_job *job, int steps);
/* Of another model of bytes. */
void executor_job_make_of(struct executor_job *job, int steps, const struct model_config *model);
/* Lines of its file. */
void executor_job_append(const struct executor_job *job, const char *lines);
void executor_job_plan(const struct executor_job *job, const struct plan *plan);
/* Its graph; the caller's. */
struct graph *executor_job_graph(const struct executor_job *job);
void executor_job_clean(const struct executor_job *job);

/* Start the program at path; arguments end with NULL, without its name and the channel. */
void executor_start(struct executor *executor, const char *path, const char *const *arguments);
/* The next event, to be freed; NULL when the executor has closed its side. */
Gimbal__ExecutorEvent *executor_next(struct executor *executor);
/* Close the channel, wait for the end; its status. */
int executor_finish(struct executor *executor);

/* What a job's executors said. */
struct executor_seen {
    int steps, evaluations, ready, stopped, done;
    double loss[256], evaluation;
    size_t sample;
    char reason[512];
};
void executor_see(struct executor_seen *seen, const Gimbal__ExecutorEvent *event);
/* All events of one process until its end. */
void executor_see_all(struct executor *executor, struct executor_seen *seen);

#endif
