/* space.h - the plans that a search may choose from: exactly those that lowering accepts and the
 * job allows, without duplicates by exchanging like things.
 *
 * From the outside in: the number of devices; the number of stages and how the devices are divided
 * into consecutive runs for them; micro-batches and the schedule (together a point); which blocks
 * are on which stage; and for every block the roles of its stage's axes, zero, and recomputation (a
 * strategy). A stage's axes are the prime factors of its number of devices, those inside a host
 * first. */
#ifndef COORDINATOR_PLANNER_SPACE_SPACE_H
#define COORDINATOR_PLANNER_SPACE_SPACE_H

#include "coordinator/planner/costs/costs.h"

/* If devices do not divide equally into stages, the first or the last stages have one more. */
enum space_extra { EXTRA_NONE, EXTRA_FIRST, EXTRA_LAST };

struct space_point {
    int devices, stages;
    enum space_extra extra; /* which stages have one device more */
    bool weighted;          /* samples are divided by the devices' speeds instead of equally */
    int micro_batches;
    int64_t samples; /* per micro-batch */
    const struct schedule *schedule;
};

/* All points on `least` to `most` devices; the caller frees the array. */
struct space_point *space_points(const struct planner_request *request, int least, int most,
                                 size_t *count);
/* Only those points whose number of devices is `most` less a multiple of `step` and is divided
 * evenly by the stages, for when there would be too many. */
struct space_point *space_points_even(const struct planner_request *request, int least, int most,
                                      int step, size_t *count);
/* An upper bound on the number of points. */
double space_points_most(const struct planner_request *request, int least, int most);
/* The number of devices of a stage; whether these devices have the same speed; whether a pin (0:
 * none) rules out the value; whether the job forbids the role of this name. */
int space_stage_devices(const struct space_point *point, int stage);
bool space_same_speed(const struct planner_request *request, int first, int count);
bool space_pinned(int64_t pin, int64_t value);
bool space_role_forbidden(const struct job_plan *plan, const char *name);
/* Fill the site of each of the point's stages; lent by costs. */
void space_sites(struct costs *costs, const struct space_point *point, const struct site **sites);
/* The strategies of a block on a site; the caller frees the array. err (optional): why lowering
 * refused what the job would have allowed. */
struct strategy *space_strategies(struct costs *costs, const struct site *site, int block,
                                  int64_t samples, size_t *count, struct error *err);
/* Only their roles: all that the job would allow of these, if it forbade nothing of ZeRO and of
 * recomputation; without either. */
struct strategy *space_vectors(struct costs *costs, const struct site *site, int block,
                               int64_t samples, size_t *count, struct error *err);

/* The roles considered, as in "batch, tensor"; "" if no role is left out. */
void space_roles(const struct costs *costs, char *text, size_t size);

/* Whether the strategy is one of space_strategies(), except for the order of like axes. */
bool space_allows(struct costs *costs, const struct site *site, int block,
                  const struct strategy *strategy, int64_t samples);

/* A plan of this point without blocks on its stages yet; owned by the caller. */
struct plan *space_plan(struct costs *costs, const struct space_point *point);
/* The number of plans of a point; large numbers are not exact. */
double space_count(struct costs *costs, const struct space_point *point);
/* Call found() with every plan of a point, lent, until it returns false. */
void space_walk(struct costs *costs, const struct space_point *point,
                bool (*found)(void *context, const struct plan *plan), void *context);

#endif
