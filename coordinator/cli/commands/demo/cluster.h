/* cluster.h - a whole cluster of processes on this machine, for `gimbal demo`.
 *
 * One coordinator on a free loopback port, and workers that share the cores. Their output goes to
 * files in a temporary folder. They die with us, and orphans of theirs become our children, so that
 * we can see in the end whether anything is left. */
#ifndef COORDINATOR_CLI_COMMANDS_DEMO_CLUSTER_H
#define COORDINATOR_CLI_COMMANDS_DEMO_CLUSTER_H

#include "coordinator/cli/process.h"

#include <stdbool.h>
#include <stdint.h>

#define DEMO_WORKERS_MAX 26 /* node-a to node-z */

struct demo_process {
    char name[32]; /* as in "coordinator", "node-a" */
    struct process process;
};

struct demo_cluster {
    char *folder;
    char *address;                /* for calls */
    const char *page;             /* for browsers; part of address */
    struct demo_process *members; /* the coordinator first */
    int count;
    int workers; /* number requested */
    int ended;   /* descriptor, readable when one of them has ended */
};

/* Start the coordinator, find its address, and start the workers, which join soon after. An enum
 * exit_code; EXIT_SIGNAL + n if a signal (of signals_open()) came first. The caller stops the
 * cluster in any case. */
int demo_cluster_start(int workers, int signals, struct demo_cluster *cluster, struct error *err);
/* Kill the worker of this node, as a power failure would; false if there is none. Its end is then
 * no longer unexpected. */
bool demo_cluster_kill(struct demo_cluster *cluster, const char *node);
/* Start the worker of this node again; it joins soon after. False if it runs, or there was none. */
bool demo_cluster_revive(struct demo_cluster *cluster, const char *node);
/* The process of this node's worker; 0: it does not run. */
pid_t demo_cluster_worker_pid(const struct demo_cluster *cluster, const char *node);
/* Describe which process has ended unexpectedly, how, and what it printed last; EXIT_FAILED. */
int demo_cluster_explain_end(struct demo_cluster *cluster, struct error *err);
/* Highest resident memory of any of our executors so far; 0 if unknown. */
uint64_t demo_cluster_executor_bytes(void);

/* Stop everything and wait. *left names what remains and should not, in lines owned by the caller;
 * NULL: nothing. The folder is removed unless `keep` is true. */
void demo_cluster_stop(struct demo_cluster *cluster, bool keep, char **left);

#endif
