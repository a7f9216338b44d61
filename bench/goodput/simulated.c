/* simulated.c - goodput when losses are rare: many virtual hours of the simulated cluster of
 * tests/simulation, in which coordinator and workers are the real ones. Four nodes train, and
 * events take the time that `bench recovery` measured on four nodes.
 *
 * `simulated [HOURS [SECONDS]]`: HOURS (24) of training, with losses SECONDS (600) apart on
 * average. Goodput is the number of finished steps over that of the same time without losses. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/simulation/measured.h"
#include "tests/simulation/world.h"

#define SEED 1

/* Medians of bench/README.md, "Recovery". A search is what it takes where no plan is ready, and a
 * preparation is `start`, beside which the simulated cluster sends its calls. Of what is detected
 * when nothing is said: real heartbeats and connections tell. */
static const struct measured recovery = {
    .nodes = 4,
    .of_ms = {[DURATION_QUIESCE] = 39,
              [DURATION_PLAN] = 42,
              [DURATION_PREPARE] = 62,
              [DURATION_REDUCE] = 1, /* of a step, in which it is */
              [DURATION_APPLY] = 1,
              [DURATION_RETURN] = 10000},
    .step_ms = 120,
    .first_step_ms = 140,
};

static struct tally train(double hours, double between_s)
{
    struct measured measured = recovery;
    struct tally tally;
    measured.between_s = between_s;
    measured.time_ms = (uint64_t)(hours * 3600000);
    simulate(&(struct world_options){.seed = SEED, .measured = &measured}, &tally);
    return tally;
}

int main(int argc, char **argv)
{
    double hours = argc > 1 ? atof(argv[1]) : 24, between_s = argc > 2 ? atof(argv[2]) : 600;
    if (!(hours > 0) || !(between_s > 0)) {
        fprintf(stderr, "usage: simulated [HOURS [SECONDS]]: both more than 0\n");
        return 64;
    }
    const struct tally usual = train(hours, INFINITY), during = train(hours, between_s);
    double ratio = (double)during.reached / (double)usual.reached;
    printf("bench goodput/goodput_mtbf%.0f %.5f ratio  # %llu losses in %g virtual hours\n",
           between_s, ratio, (unsigned long long)during.struck, hours);
    if (during.struck > 0)
        printf("bench goodput/goodput_mtbf%.0f_loss_s %.2f s  # that each has cost\n", between_s,
               (1 - ratio) * hours * 3600 / (double)during.struck);
    return EXIT_SUCCESS;
}
