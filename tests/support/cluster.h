/* cluster.h - a coordinator's membership and jobs with simulated workers, in virtual time.
 *
 * What main, rpc, store and planner do is done here in memory: actions are carried out in their
 * order, and the coordinator may die between any two of them and start again from what it had
 * stored. Everything is drawn from a seed, and a failure names seed and step. */
#ifndef TESTS_SUPPORT_CLUSTER_H
#define TESTS_SUPPORT_CLUSTER_H

#include <stdint.h>

struct cluster *cluster_create(uint64_t seed);
void cluster_destroy(struct cluster *cluster);

/* Let one thing happen, good or bad, and check what must always hold. */
void cluster_step(struct cluster *cluster);

/* From here on all is well: every job must end, or wait because the cluster is too small. */
void cluster_settle(struct cluster *cluster);

/* How many jobs have ended done, failed and cancelled: so that a test knows that it saw some. */
void cluster_ended(const struct cluster *cluster, unsigned *done, unsigned *failed,
                   unsigned *cancelled);
uint64_t cluster_crashes(const struct cluster *cluster);

#endif
