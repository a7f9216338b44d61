/* single_device.h - what one device alone would take, and keep, for all blocks of the model; if the
 * devices of the request differ, the minimum of each value. Seconds and bytes. */
#ifndef COORDINATOR_PLANNER_EXACT_SINGLE_DEVICE_H
#define COORDINATOR_PLANNER_EXACT_SINGLE_DEVICE_H

#include "coordinator/planner/exact/shares.h"

struct run_floor;

/* fixed_s: per-kernel overhead of a micro-batch's forward and backward; shared_s: the rest of it,
 * which devices can share; once_s: what follows once per step. */
struct single_device {
    int64_t samples; /* per micro-batch */
    bool unlike;     /* the devices differ, and each value is the least of all */
    double fixed_s, shared_s, once_s;
    double back_fixed_s, back_shared_s; /* what of fixed_s and shared_s is the backward's */
    double state_bytes, tied_bytes;
    /* saved_bytes: kept per micro-batch; room_bytes: transient room of the largest block */
    double saved_bytes, room_bytes;
    /* The longest run of equal blocks: its length, its last block, and values of each block. */
    int run, run_last;
    double run_fixed_s, run_shared_s, run_state_bytes;
    double run_back_fixed_s, run_back_shared_s;
    /* Per recomputation, of each block: extra time over the fastest, and bytes kept. */
    double run_more_s[RECOMPUTES], run_saved_bytes[RECOMPUTES];
    struct run_floor *floors; /* [devices - 1]: cache of run_floor_find(); zero: not known yet */
    double *shares;           /* [place][devices - 1]: cache of shares_least(); 0: not known yet */
    /* [n], for the first n devices: their combined speed at a block of the run, in units of the
     * fastest device, and the speed of the slowest; n and 1 if all are alike. weighed_s: all
     * shareable work of a micro-batch in seconds of a device of speed 1, each block counted as on
     * the device that does least for it in proportion to its speed. */
    double *speeds, *slowest, weighed_s;
};

/* samples: per micro-batch. */
void single_device_init(struct single_device *alone, struct costs *costs, int64_t samples);
void single_device_finish(struct single_device *alone);
/* shares_least() of the blocks of a place of the short model, cached. */
double single_device_share(const struct single_device *alone, struct splits *splits, int place,
                           int devices);
/* Least bytes that all devices sharing the model keep together with this many micro-batches in
 * flight: every element lies somewhere, once. */
double single_device_bytes(const struct single_device *alone, int in_flight);
/* Mean extra seconds per block of the run, over the fastest way to compute it, that are needed
 * because all devices together have only this much memory. */
double single_device_recompute(const struct single_device *alone, double memory_bytes,
                               int in_flight);

#endif
