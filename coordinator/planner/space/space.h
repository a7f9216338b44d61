/* space.h - the plans that a search may choose from: just those that lowering accepts, the job
 * allows, and no other of them is by the exchange of like things.
 *
 * From the outside in: how many devices; how many stages, and how the devices are divided into
 * runs for them; micro-batches and the schedule (together a point); which blocks lie on which
 * stage; and of every block the roles of its stage's axes, zero, and recompute (a strategy).
 * A stage's axes are the prime factors of its devices, those inside a host first. */
#ifndef COORDINATOR_PLANNER_SPACE_SPACE_H
#define COORDINATOR_PLANNER_SPACE_SPACE_H

#include "coordinator/planner/costs/block_costs.h"

/* Where devices do not divide equally into stages, some have one more. */
enum space_extra { EXTRA_NONE, EXTRA_FIRST, EXTRA_LAST };

struct space_point {
    int devices, stages;
    enum space_extra extra; /* which stages have one device more */
    bool weighted;          /* samples by the devices' speeds, not equally */
    int micro_batches;
    int64_t samples; /* of a micro-batch */
    const struct schedule *schedule;
};

/* All points, on `least` to `most` devices; the array is the caller's to free. */
struct space_point *space_points(const struct planner_request *request, int least, int most,
                                 size_t *count);
/* Of these only numbers of devices that are so many less than `most`, again and again, and stages
 * that divide them: where all would be too many. */
struct space_point *space_points_even(const struct planner_request *request, int least, int most,
                                      int step, size_t *count);
/* How many there are at most. */
double space_points_most(const struct planner_request *request, int least, int most);
/* Devices of a stage of it; are all of these devices of one speed; does a pin rule this out? */
int space_stage_devices(const struct space_point *point, int stage);
bool space_same_speed(const struct planner_request *request, int first, int count);
bool space_pinned(int64_t pin, int64_t value);
/* The site of each stage (point->stages of them); lent by costs. */
void space_sites(struct costs *costs, const struct space_point *point, const struct site **sites);
/* Strategies of a block on a site; the array is the caller's to free. err (optional): why lowering
 * refused what the job would have allowed. */
struct strategy *space_strategies(struct costs *costs, const struct site *site, int block,
                                  int64_t samples, size_t *count, struct error *err);

/* "batch, tensor": the roles that strategies have; "" if that is all there are. */
void space_roles(const struct costs *costs, char *text, size_t size);

/* Is this strategy one of them, but for the order of like axes? */
bool space_allows(struct costs *costs, const struct site *site, int block,
                  const struct strategy *strategy, int64_t samples);

/* A plan of this point with no blocks on its stages yet. */
struct plan *space_plan(struct costs *costs, const struct space_point *point);
/* Plans of a point, as a number; large ones are no longer whole. */
double space_count(struct costs *costs, const struct space_point *point);
/* Every plan of a point: calls with each, lent, until it returns false. */
void space_walk(struct costs *costs, const struct space_point *point,
                bool (*found)(void *context, const struct plan *plan), void *context);

#endif
