/* single_device.h - what one device alone takes for all blocks of the model, and keeps: of the
 * devices of a request, which may be unlike, the least of each. Seconds and bytes. */
#ifndef COORDINATOR_PLANNER_EXACT_SINGLE_DEVICE_H
#define COORDINATOR_PLANNER_EXACT_SINGLE_DEVICE_H

#include "coordinator/planner/costs/block_costs.h"

/* A micro-batch's forward and backward, fixed and otherwise, and what follows once a step. */
struct single_device {
    int64_t samples; /* of the micro-batch */
    bool unlike;     /* the devices, of which each number is the least */
    double fixed_s, shared_s, once_s;
    double state_bytes, tied_bytes;
    double saved_bytes, room_bytes; /* of one micro-batch; of the largest block's room */
    /* The longest run of equal blocks: each of them, and where it ends. */
    int run, run_last;
    double run_fixed_s, run_shared_s, run_state_bytes;
    /* Of each with every recomputation: what it takes more than the fastest, and keeps. */
    double run_more_s[RECOMPUTES], run_saved_bytes[RECOMPUTES];
    double *shares; /* per number of devices less one: see shares_least; 0: not known yet */
    /* Per number of devices, of the first ones: how many times as fast as the fastest of all they
     * are together at a block of the run; and the slowest of them. As many as they are, and 1,
     * where all are alike. All of a micro-batch that can be shared, in seconds of a device of speed
     * 1: of each block what it is to the device to which, counted by its speed, it is least. */
    double *speeds, *slowest, weighed_s;
};

/* samples: of a micro-batch. */
void single_device_init(struct single_device *alone, struct costs *costs, int64_t samples);
void single_device_finish(struct single_device *alone);
/* shares_least of a block of the run, remembered. */
double single_device_share(const struct single_device *alone, const struct graph *graph,
                           int devices);
/* What all devices that share the model keep together, at least, with so many micro-batches in
 * flight: every element lies somewhere, once. */
double single_device_bytes(const struct single_device *alone, int in_flight);
/* Seconds that a block of the run takes more, on the mean, than the fastest way to compute it,
 * because all of them together may keep so much and no more. */
double single_device_recompute(const struct single_device *alone, double memory_bytes,
                               int in_flight);

#endif
