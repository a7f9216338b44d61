/* inventory.h - the devices of a cluster that is only written down: a cluster file, or what
 * `gimbal nodes -o json` recorded. */
#ifndef COORDINATOR_PLANNING_INVENTORY_H
#define COORDINATOR_PLANNING_INVENTORY_H

#include "common/profile/profile.h"
#include "coordinator/membership/devices.h"

struct inventory {
    struct hardware_report **reports;
    struct profile *profiles;  /* of all devices; NULL: recorded, reports have their own */
    struct device_view *views; /* all grantable */
    size_t report_count, view_count;
};

/* Read size bytes of text, which errors call name. -EINVAL: file:line:column, key, value and what
 * would be right; of a recorded cluster the member that is wrong. */
int inventory_parse(const char *text, size_t size, const char *name, struct inventory *out,
                    struct error *err);
/* Accepts a zeroed one. */
void inventory_finish(struct inventory *inventory);

#endif
