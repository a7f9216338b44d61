/* victims.h - a cluster of this machine that trains the demo's model, and whom to kill in it: what
 * the suites about losses share. */
#ifndef BENCH_VICTIMS_H
#define BENCH_VICTIMS_H

#include "common/base/error.h"
#include "coordinator/cli/client.h"
#include "coordinator/cli/demo/cluster.h"
#include "coordinator/cli/submission.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VICTIMS_WORKERS 4

struct victims {
    struct cluster cluster;
    struct client client;
    struct submission submission;
    uint64_t draws;
    char node[32];  /* of the one that was chosen; "": none was */
    uint64_t step;  /* that was reached then */
    double usual_s; /* a step took */
};

/* A coordinator, workers, and the job; one that replans, or one that begins again at its newest
 * checkpoint, of every 20 steps. Whatever fails ends the process in words. */
void victims_start(struct victims *victims, bool replans);
void victims_stop(struct victims *victims);
/* Random numbers, the same in every run. */
uint64_t victims_draw(struct victims *victims, uint64_t bound);
double victims_draw_share(struct victims *victims); /* from 0 to 1 */

/* Yours, by message_free. */
Gimbal__GetJobReply *victims_job(struct victims *victims);
/* The node of one of the ranks, if the job trains and is behind that step; false: not yet. The
 * process ends where the job has. */
bool victims_choose(struct victims *victims, uint64_t behind);
/* The executor on the chosen node; 0: there is none. */
pid_t victims_executor(const struct victims *victims);
/* Where the job stands that does not go on; ends the process. */
void victims_give_up(struct victims *victims);

void victims_need(int exit_code, const struct error *err);
void victims_nap(uint64_t ms);
uint64_t victims_now_unix_ms(void);

#endif
