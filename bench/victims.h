/* victims.h - what the suites about losses share: a cluster on this machine that trains the demo's
 * model, and the choice of the process to kill. Failures end the process with a message. */
#ifndef BENCH_VICTIMS_H
#define BENCH_VICTIMS_H

#include "common/base/error.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/commands/demo/cluster.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VICTIMS_WORKERS 4

struct victims {
    struct demo_cluster cluster;
    struct client client;
    struct submission submission;
    uint64_t draws;
    char node[32];  /* the chosen node; "": none yet */
    uint64_t step;  /* the job's step when it was chosen */
    double usual_s; /* time of a step then */
};

/* What happens after a loss. */
enum way {
    WAY_REPLANS,  /* the job replans; the planner chooses whether it has replicas or copies */
    WAY_COPIES,   /* the same with copies: what a rank holds, no other does */
    WAY_RESTARTS, /* it starts again from its newest checkpoint, which it writes every 20 steps */
};

/* Start a coordinator, workers and the job. */
void victims_start(struct victims *victims, enum way way);
void victims_stop(struct victims *victims);
/* Random numbers below `bound`, the same in every run. */
uint64_t victims_draw(struct victims *victims, uint64_t bound);
double victims_draw_share(struct victims *victims); /* the same, from 0 to 1 */

/* The job's details; freed with message_free(). */
Gimbal__GetJobReply *victims_job(struct victims *victims);
/* Choose the node of a random rank, once the job is running beyond step `behind` on several
 * devices. false: not yet. If the job has ended, so does this process. */
bool victims_choose(struct victims *victims, uint64_t behind);
/* The process of an executor on the chosen node; 0: there is none. */
pid_t victims_executor(const struct victims *victims);
/* Print the state of a job that makes no progress, and end the process. */
void victims_give_up(struct victims *victims);

/* Print the error and end the process, unless exit_code is EXIT_DONE. */
void victims_need(int exit_code, const struct error *err);
void victims_nap(uint64_t ms);
uint64_t victims_now_unix_ms(void);

#endif
