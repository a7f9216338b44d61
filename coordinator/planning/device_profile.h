/* device_profile.h - how fast a device is: as measured, or estimated from its peak rates. */
#ifndef COORDINATOR_PLANNING_DEVICE_PROFILE_H
#define COORDINATOR_PLANNING_DEVICE_PROFILE_H

#include "common/hardware/hardware.h"
#include "common/profile/profile.h"

/* Fill the device's profile. name ("node-a/0") is for messages. If `measured` is false, the profile
 * measured by its probe is ignored. -EINVAL: there is neither a profile nor peak rates, or the
 * profile is invalid. */
int device_profile(const struct hardware_device *device, const char *name, bool measured,
                   struct profile *out, struct error *err);

#endif
