/* inventory.h - the devices of a cluster that exists only on paper: from a cluster file, or from
 * the output of `gimbal nodes -o json`. */
#ifndef COORDINATOR_PLANNING_INVENTORY_H
#define COORDINATOR_PLANNING_INVENTORY_H

#include "common/profile/profile.h"
#include "coordinator/membership/devices.h"

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

#endif
