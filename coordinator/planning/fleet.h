/* fleet.h - devices as the planner needs them.
 *
 * An inventory has the devices of a cluster that exists only on paper: from a cluster file, or from
 * the output of `gimbal nodes -o json`. A fleet is made from devices as the cluster knows them, or
 * as an inventory has them: copied, with known speeds, those of one host adjacent, and fast hosts
 * first, since a plan with fewer devices than there are uses the first ones. */
#ifndef COORDINATOR_PLANNING_FLEET_H
#define COORDINATOR_PLANNING_FLEET_H

#include "common/hardware/hardware.h"
#include "common/profile/profile.h"
#include "coordinator/membership/devices.h"
#include "coordinator/planner/planner.h"

struct inventory {
    struct hardware_report **reports;
    /* of all devices; NULL for a recorded cluster, whose reports contain their own */
    struct profile *profiles;
    struct device_view *views; /* all of them grantable */
    size_t report_count, view_count;
};

/* Parse `size` bytes of text; `name` is for messages. -EINVAL with file:line:column, key, value and
 * what would be right; for a recorded cluster with the member that is wrong. */
int inventory_parse(const char *text, size_t size, const char *name, struct inventory *out,
                    struct error *err);
/* The nodes as they report themselves; takes ownership of the reports. */
void inventory_take(struct inventory *inventory, struct hardware_report **reports, size_t count);
/* Accepts a zeroed inventory. */
void inventory_finish(struct inventory *inventory);

/* The source of a device's speed. */
enum planning_cost {
    PLANNING_BEST,     /* what its probe measured, or else its peak rates */
    PLANNING_MEASURED, /* what its probe measured; a device without a profile is refused */
    PLANNING_ANALYTIC, /* its peak rates, whatever was measured */
};

extern const char *const planning_costs[]; /* their names; ends with NULL */

/* Parse "best" (or ""), "measured" or "analytic"; -EINVAL with a message. */
int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err);

struct fleet {
    struct planner_device *devices;
    struct device_ref *refs;  /* [device] */
    double *slowdowns;        /* [device]: slowdown included in its profile; 1: none */
    struct profile *profiles; /* each distinct profile once */
    size_t count, profile_count;
};

/* Put a link between hosts, as measured by ranks on devices of this kind, into a profile. cards: of
 * the host; 0: unknown. */
void fleet_set_network(struct profile *profile, enum hardware_kind kind,
                       const struct hardware_link *link, unsigned cards);

/* Choose the devices that a job of `least` to `most` devices could have in an idle cluster: GPUs if
 * there are enough, otherwise CPU devices. Fills `picked`, which has room for count, and returns
 * how many; 0: too few. */
size_t fleet_pick(const struct device_view *views, size_t count, unsigned least, unsigned most,
                  struct device_view *picked);

/* -EINVAL names the device of unknown speed. The caller finishes the fleet in any case. */
int fleet_open(struct fleet *fleet, const struct device_view *views, size_t count,
               enum planning_cost cost, struct error *err);
void fleet_finish(struct fleet *fleet);
/* The index of the device with this name; the fleet's count if there is none. */
size_t fleet_find(const struct fleet *fleet, const char *name);

#endif
