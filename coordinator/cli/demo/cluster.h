/* cluster.h - a whole cluster of processes on this machine, for `gimbal demo`.
 *
 * One coordinator on a free port of loopback, and workers that share the cores. What they print
 * goes to files in a folder of its own. They die with us, and what should outlive one of them
 * becomes our child, so that in the end we see whether anything is left. */
#ifndef COORDINATOR_CLI_DEMO_CLUSTER_H
#define COORDINATOR_CLI_DEMO_CLUSTER_H

#include "coordinator/cli/child.h"

#include <stdbool.h>
#include <stdint.h>

#define CLUSTER_WORKERS_MAX 26 /* node-a to node-z */

struct cluster_process {
    char name[32]; /* "coordinator", "node-a" */
    struct child child;
};

struct cluster {
    char *folder;
    char *address;                     /* for calls */
    const char *page;                  /* for browsers; lent by the address */
    struct cluster_process *processes; /* the coordinator first */
    int count;
    int workers; /* that were asked for */
    int ended;   /* a descriptor: readable when one of them has ended */
};

/* Start the coordinator, learn its address, start the workers; they join by and by. An enum
 * exit_code; EXIT_SIGNAL + n when a signal (of signals_open) came first. Whatever came out, the
 * cluster is the caller's to stop. */
int cluster_start(int workers, int signals, struct cluster *cluster, struct error *err);
/* Kill the worker of this node, as a power cut would; false where there is none. Its end is no
 * longer waited for. */
bool cluster_kill(struct cluster *cluster, const char *node);
/* Start the worker of this node again; it joins by and by. False where it runs, or there was none.
 */
bool cluster_revive(struct cluster *cluster, const char *node);
/* The worker of this node; 0: it does not run. */
pid_t cluster_worker_pid(const struct cluster *cluster, const char *node);
/* Which process has ended too early, how, and the last it said; EXIT_FAILED. */
int cluster_explain_end(struct cluster *cluster, struct error *err);
/* Highest resident memory of any one of our executors so far, or 0. */
uint64_t cluster_executor_bytes(void);

/* Stop everything and wait. What is left then that should not be is named in *left, a text of
 * lines that is the caller's; NULL: nothing. The folder goes too, unless it is kept. */
void cluster_stop(struct cluster *cluster, bool keep, char **left);

#endif
