/* drills.h - the faults that a drill can cause: what they are called, and what has to be said of
 * them. */
#ifndef COORDINATOR_RESOURCES_DRILLS_H
#define COORDINATOR_RESOURCES_DRILLS_H

#include "common/base/error.h"
#include "proto/admin.pb-c.h"

#include <stdbool.h>
#include <stddef.h>

#define DRILL_FOR_S_MAX 3600
#define DRILL_DELAY_S_MAX 60

struct drill_fault {
    const char *name;
    bool lasts;  /* for a time, which has to be given, and ends by itself */
    bool delays; /* by a time that has to be given, too */
};

/* NULL: there is no fault of this number. */
const struct drill_fault *drill_fault(Gimbal__DrillFault number);
/* Find a fault by its name. -EINVAL; the message lists the names. */
int drill_find(const char *name, Gimbal__DrillFault *out, struct error *err);
/* Check that the times are those that the fault needs, and not too long. -EINVAL. */
int drill_check_times(const struct drill_fault *fault, uint32_t for_ms, uint32_t delay_ms,
                      struct error *err);
/* Print how it is done, as in " by 200 ms for 10 s"; "" without times. Returns out. */
char *drill_print_times(const Gimbal__DrillRequest *request, char *out, size_t size);

#endif
