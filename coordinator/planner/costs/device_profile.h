/* device_profile.h - how fast a device is: as it was measured, or as its peak rates let one guess.
 */
#ifndef COORDINATOR_PLANNER_COSTS_DEVICE_PROFILE_H
#define COORDINATOR_PLANNER_COSTS_DEVICE_PROFILE_H

#include "common/hardware/hardware.h"
#include "common/profile/profile.h"

/* name: "node-a/0", for the sentence. Without `measured` its probe's profile is not looked at.
 * -EINVAL: there is neither, or the profile is none. */
int device_profile(const struct hardware_device *device, const char *name, bool measured,
                   struct profile *out, struct error *err);

#endif
