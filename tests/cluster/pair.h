/* pair.h - a cluster of two nodes, all of it real: a coordinator, two workers of one device
 * each, their executors, and the command line.
 *
 * The file that uses it is built with the paths of the programs: COORDINATOR, WORKER, EXECUTOR,
 * GIMBAL. One cluster at a time; its files are in a folder of its own. */
#ifndef TESTS_CLUSTER_PAIR_H
#define TESTS_CLUSTER_PAIR_H

#include "tests/cluster/command.h"
#include "tests/cluster/real_cluster.h"

#include <jansson.h>
#include <stdint.h>

#define PAIR_NODES 2 /* node-a, node-b */
#define PAIR_ENDLESS 1000000000

struct pair {
    struct cluster cluster;
    struct command workers[PAIR_NODES];
    struct command command; /* the one that ran last */
    char folder[64];        /* "text" is a text in it, "job.yaml" the job */
    char job_path[96];
    char dir[96]; /* for checkpoints */
    /* Of a worker, set before they start. */
    const char *devices;               /* NULL: one of the cores */
    const char *memory;                /* NULL: 256MiB */
    const char *executors[PAIR_NODES]; /* of each; NULL: EXECUTOR */
};
extern struct pair pair;

/* A checked fixture: the coordinator and both workers run, and GIMBAL_ADDRESS names it. */
void pair_start(void);
/* With further arguments of the coordinator, NULL-ended, or NULL. */
void pair_start_with(const char *const *arguments);
void pair_stop(void);
void pair_start_worker(int index);

/* A small model over both nodes by tensor parallelism, of so many steps; `more` are lines of the
 * job file. */
void pair_write_job(int steps, const char *more, ...) __attribute__((format(printf, 2, 3)));

/* Run gimbal to its end: the exit status; what it printed is in pair.command. */
int pair_gimbal(const char *const *words);
#define PAIR_GIMBAL(...) pair_gimbal((const char *const[]){GIMBAL, __VA_ARGS__, NULL})
/* Submit the job; its events, one JSON a line, are those of the command. */
void pair_submit(struct command *events);
/* Read them up to the next with these words. */
void pair_await(struct command *events, const char *words);

/* The first item of a list that gimbal printed as JSON, yours; NULL when it is empty. */
json_t *pair_first_of(const char *list);
uint64_t pair_number(const json_t *object, const char *name);
/* Of the newest listed checkpoint; 0 without one. Its folder is yours, where it is asked for. */
uint64_t pair_newest(const char *job, char **path);

#endif
