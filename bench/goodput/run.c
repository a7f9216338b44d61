/* run.c - measures how much of its pace a training job keeps when its processes die: a coordinator
 * and four workers on this machine, and random losses at a given mean distance. By turns an
 * executor dies alone, or a worker with its executor; a worker comes back after a while.
 *
 * Goodput is finished steps per second over those without losses; parts with and without losses
 * alternate, because the machine may do other things as well. Steps that are done twice count once.
 * The total cost of a loss, slower steps on fewer nodes included, says what to expect where losses
 * are rarer. `run SECONDS` trains for SECONDS in each part (240 by default). Losses too rare to
 * wait for are simulated afterwards, or at once by `run simulated` (simulated.c). */
#include "bench/victims.h"

#include "common/message/message.h"
#include "coordinator/cli/process.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAP_MS 5
#define WARM_STEPS 20
#define START_MS 60000
#define AWAY_S 5.0
#define ROUNDS 6

struct losses {
    struct victims victims;
    double between_s;          /* infinity: none */
    uint64_t next_ms, back_ms; /* of the next loss; a worker's return, UINT64_MAX: all are there */
    char away[32];
    unsigned count;
};

static uint64_t step_of(struct victims *victims, bool *trains)
{
    Gimbal__GetJobReply *reply = victims_job(victims);
    uint64_t step = reply->status->step;
    *trains = reply->status->state == GIMBAL__JOB_STATUS__STATE__RUNNING;
    if (reply->status->finished_unix_ms)
        victims_give_up(victims);
    message_free(&reply->base);
    return step;
}

static void await_step(struct victims *victims, uint64_t step)
{
    bool trains;
    uint64_t until_ms = victims_now_unix_ms() + START_MS;
    while (step_of(victims, &trains) < step || !trains) {
        victims_nap(NAP_MS);
        if (victims_now_unix_ms() > until_ms)
            victims_give_up(victims);
    }
}

static void draw_next(struct losses *losses)
{
    double gap_s = -log(1 - victims_draw_share(&losses->victims)) * losses->between_s;
    losses->next_ms = victims_now_unix_ms() + (uint64_t)(gap_s * 1000);
}

/* A job that is just being replanned is hit as well; one whose ranks nobody knows is not. */
static void strike(struct losses *losses)
{
    struct victims *victims = &losses->victims;
    pid_t executor = victims_choose(victims, 0) ? victims_executor(victims) : 0;
    if (executor <= 0)
        return;
    if (losses->count++ % 2 == 0 || losses->back_ms != UINT64_MAX) {
        kill(executor, SIGKILL);
    } else {
        demo_cluster_kill(&victims->cluster, victims->node);
        memcpy(losses->away, victims->node, sizeof losses->away);
        losses->back_ms = victims_now_unix_ms() + (uint64_t)(AWAY_S * 1000);
    }
    draw_next(losses);
}

/* Steps a second while losses come. */
static double train(struct losses *losses, double seconds)
{
    struct victims *victims = &losses->victims;
    bool trains;
    uint64_t begun_ms = victims_now_unix_ms(), now_ms, first = step_of(victims, &trains);
    if (isfinite(losses->between_s))
        draw_next(losses);
    else
        losses->next_ms = UINT64_MAX;
    while ((now_ms = victims_now_unix_ms()) < begun_ms + (uint64_t)(seconds * 1000)) {
        if (now_ms >= losses->next_ms)
            strike(losses);
        if (now_ms >= losses->back_ms) {
            demo_cluster_revive(&victims->cluster, losses->away);
            losses->back_ms = UINT64_MAX;
        }
        victims_nap(NAP_MS);
    }
    uint64_t last = step_of(victims, &trains);
    return (last > first ? (double)(last - first) : 0) * 1000 / (double)(now_ms - begun_ms);
}

/* All workers are there, and the job trains on all of them. */
static void recover(struct losses *losses)
{
    bool trains;
    if (losses->back_ms != UINT64_MAX)
        demo_cluster_revive(&losses->victims.cluster, losses->away);
    losses->back_ms = UINT64_MAX;
    victims_nap((uint64_t)(AWAY_S * 1000));
    await_step(&losses->victims, step_of(&losses->victims, &trains) + WARM_STEPS);
}

static void measure(const char *what, bool replans, double between_s, double seconds)
{
    struct losses losses = {.back_ms = UINT64_MAX};
    double usual = 0, during = 0;
    victims_start(&losses.victims, replans ? WAY_REPLANS : WAY_RESTARTS);
    await_step(&losses.victims, WARM_STEPS);
    for (int round = 0; round < ROUNDS; round++) {
        losses.between_s = INFINITY;
        usual += train(&losses, seconds / ROUNDS / 2) / ROUNDS;
        losses.between_s = between_s;
        during += train(&losses, seconds / ROUNDS) / ROUNDS;
        recover(&losses);
    }
    double cost_s = losses.count > 0 ? (1 - during / usual) * seconds / losses.count : 0;
    printf("bench goodput/%s_mtbf%.0f %.3f ratio  # %u losses in %.0f s; %.2f steps/s for %.2f\n",
           what, between_s, during / usual, losses.count, seconds, during, usual);
    printf("bench goodput/%s_mtbf%.0f_loss_s %.2f s  # that each has cost\n", what, between_s,
           cost_s);
    printf("bench goodput/%s_mtbf600_expected %.4f ratio  # at that cost\n", what,
           600 / (600 + cost_s));
    fflush(stdout);
    victims_stop(&losses.victims);
}

static int simulate(char **argv)
{
    fflush(stdout);
    execv(SIMULATED, argv);
    perror(SIMULATED);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    process_shim(argc, argv);
    if (argc > 1 && strcmp(argv[1], "simulated") == 0)
        return simulate(argv + 1);
    double seconds = argc > 1 ? atof(argv[1]) : 240;
    measure("goodput", true, 15, seconds);
    measure("torchrun_style", false, 15, seconds);
    measure("goodput", true, 60, seconds);
    return simulate((char *[]){(char *)"simulated", NULL});
}
