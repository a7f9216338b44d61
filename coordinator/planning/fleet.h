/* fleet.h - devices as the planner wants them, from devices as the cluster knows them: copied,
 * their speed known, those of one host next to each other, and fast hosts first: a plan that uses
 * fewer devices than there are uses the first of them. */
#ifndef COORDINATOR_PLANNING_FLEET_H
#define COORDINATOR_PLANNING_FLEET_H

#include "coordinator/membership/devices.h"
#include "coordinator/planner/planner.h"

/* Where a device's speed comes from. */
enum planning_cost {
    PLANNING_BEST,     /* what its probe measured, else its peak rates */
    PLANNING_MEASURED, /* a device without a profile is refused */
    PLANNING_ANALYTIC, /* its peak rates, whatever was measured */
};

/* "best" (or ""), "measured", "analytic"; -EINVAL in words. */
int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err);

struct fleet {
    struct planner_device *devices;
    struct device_ref *refs;  /* of each device */
    double *slowdowns;        /* that its profile has in it; 1: none */
    struct profile *profiles; /* every one once */
    size_t count, profile_count;
};

/* What was measured between hosts, by ranks on devices of that kind, into the profile of one. */
void fleet_set_network(struct profile *profile, enum hardware_kind kind,
                       const struct profile_link *link);

/* Those that a job of `least` to `most` devices could have of an idle cluster: GPUs where there are
 * enough, else CPU devices. Fills picked, as long as views, and returns how many; 0: too few. */
size_t fleet_pick(const struct device_view *views, size_t count, unsigned least, unsigned most,
                  struct device_view *picked);

/* -EINVAL: which device has no speed. Either way the fleet is yours to finish. */
int fleet_open(struct fleet *fleet, const struct device_view *views, size_t count,
               enum planning_cost cost, struct error *err);
void fleet_finish(struct fleet *fleet);
/* The device of that name; the fleet's count when there is none. */
size_t fleet_find(const struct fleet *fleet, const char *name);

#endif
