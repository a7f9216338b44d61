/* estates.c - what simulated executors leave in the files that their workers hold: the newest step,
 * who has finished it, and its ledger. The worker's own code hands them on. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/simulation/cluster.h"
#include "tests/simulation/world.h"

struct estate {
    char job[32];
    uint64_t step, step_epoch, ledger;
};

void executor_inherit(struct executor *executor)
{
    struct estate left;
    if (executor->state_fd < 0 || pread(executor->state_fd, &left, sizeof left, 0) != sizeof left)
        return;
    if (strcmp(left.job, executor->job) != 0)
        world_fail("%s rank %u on %s is given what an executor of %s has left", executor->job,
                   executor->rank, executor->node->name, left.job);
    executor->step = left.step;
    executor->step_epoch = left.step_epoch;
    executor->ledger = left.ledger;
    world->tally.inherited++;
}

void executor_persist(const struct executor *executor)
{
    struct estate estate = {
        .step = executor->step, .step_epoch = executor->step_epoch, .ledger = executor->ledger};
    memcpy(estate.job, executor->job, sizeof estate.job);
    if (executor->state_fd >= 0 &&
        pwrite(executor->state_fd, &estate, sizeof estate, 0) != sizeof estate)
        world_fail("no memory for the state of %s", executor->job);
}
