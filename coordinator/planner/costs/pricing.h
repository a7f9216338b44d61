/* pricing.h - seconds of an instruction on the devices of a request. */
#ifndef COORDINATOR_PLANNER_COSTS_PRICING_H
#define COORDINATOR_PLANNER_COSTS_PRICING_H

#include "common/program/program.h"
#include "coordinator/planner/costs/request.h"
#include "coordinator/simulation/simulate.h"

/* Maps ranks of a program to devices: the first `split` ranks run on devices[offset[0] + rank], the
 * others on devices[offset[1] + rank - split]. */
struct pricing {
    const struct planner_request *request;
    int split, offset[2];
};

/* The mapping of rank r to device r. */
struct pricing pricing_plain(const struct planner_request *request);
/* Whether all members of a collective, or both ends of a message, are on one host. */
bool pricing_on_one_host(const struct pricing *pricing, const struct program *program,
                         const struct instruction *instruction);
/* Seconds of an instruction by its device's profile and the link it uses. context is a struct
 * pricing, as in struct timing. */
double pricing_seconds(const void *context, const struct program *program,
                       const struct instruction *instruction);
/* Seconds of one micro-batch's forward and backward on the program's rank, without any waiting. */
double pricing_micro_batch(const struct pricing *pricing, const struct program *program);
/* profile_fixed_seconds() of the device. */
double pricing_fixed_seconds(const struct pricing *pricing, const struct program *program,
                             const struct instruction *instruction);
/* By which factor `beside` slows an instruction that runs at the same time; for struct timing. */
double pricing_slowdown(const void *context, const struct program *program,
                        const struct instruction *instruction, const struct instruction *beside);
/* Both of these, as a step is simulated wherever it is. Lends the pricing. */
struct timing pricing_timing(const struct pricing *pricing);
/* The factor by which computing and communication slow each other on the program's rank. */
double pricing_overlap(const struct pricing *pricing, const struct program *program);

#endif
