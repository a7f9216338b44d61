/* trio.h - a cluster of three nodes that loses some of them: a coordinator, three workers of one
 * CPU device each, their executors, and a small training over two or three of them.
 *
 * It is built with the paths of the programs: COORDINATOR, WORKER, HELD_EXECUTOR, GIMBAL. One
 * cluster at a time; jobs run one after the other. */
#ifndef TESTS_CLUSTER_TRIO_H
#define TESTS_CLUSTER_TRIO_H

#include "tests/cluster/command.h"
#include "tests/cluster/hold.h" /* of its jobs */
#include "tests/cluster/real_cluster.h"

#include <jansson.h>

#define TRIO_NODES 3 /* node-a, node-b, node-c */
#define TRIO_STEPS 60
#define TRIO_LOSS_LIMIT 1e-3 /* between two trainings of one job */

struct trio {
    struct cluster cluster;
    struct command workers[TRIO_NODES];
    bool away[TRIO_NODES]; /* workers that are not there */
    struct command events; /* of the cluster; read up to what was awaited last */
    struct command job;    /* the newest, with its events as JSON, one a line */
    char name[16];         /* its: j-1 */
    char folder[64];       /* "text" is a text in it, "job.yaml" the job */
    char job_path[96];
    char checkpoints[96];
    int jobs, shared_memory;
};
extern struct trio trio;

/* However the model is divided: replicas, pieces of tensors, stages, shards of the state. */
extern const char *const trio_divisions[];
#define TRIO_DIVISIONS 4

/* Checked fixtures. At the end nothing may be left of it: no process, file or shared memory. */
void trio_start(void);
/* With further arguments of the coordinator, NULL-ended, or NULL. */
void trio_start_with(const char *const *arguments);
void trio_stop(void);

void trio_start_worker(int index);
/* It was told to end, or killed: collect it, with that status. */
void trio_collect_worker(int index, int status);
/* Until an event with these words comes, behind what was awaited before. */
void trio_await(const char *words);

/* Until all nodes are alive: those that were started again, too. */
void trio_await_all(void);

/* `more` are further lines of the job file. */
void trio_write_job(const char *division, const char *more);
/* On so many devices at least: with fewer it waits. */
void trio_write_job_for(int devices, const char *division, const char *more);
/* Submit the job, and follow it. What happened before is not awaited any more. */
void trio_submit(void);
/* The job comes to its end, DONE; its loss on held-out text. */
double trio_finish_job(void);
/* The newest event of the job of that kind that was read, yours. */
json_t *trio_event(const char *kind);
/* A number of the event's own figures. */
double trio_number(const json_t *event, const char *key);
/* A worker that has a rank, the last such: a division may leave some out. */
int trio_find_victim(void);

#endif
