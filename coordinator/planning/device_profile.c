/* device_profile.c - see device_profile.h. */
#include "coordinator/planning/device_profile.h"

#include <errno.h>

/* A device known by its peak rates alone: kernels reach half of them, and links are those of
 * a process beside another and of 10 Gbit/s Ethernet. */
#define SHARE_OF_PEAK 0.5
static const struct profile_link link_host = {20e-6, 1 / 5e9}, link_network = {60e-6, 1 / 1.1e9};

int device_profile(const struct hardware_device *device, const char *name, bool measured,
                   struct profile *out, struct error *err)
{
    if (device->profile && measured) {
        int rc = profile_decode(device->profile, out, err);
        return rc < 0 ? error_prefix(err, rc, "%s", name) : 0;
    }
    if (!(device->flops > 0) || !(device->bandwidth > 0))
        return error_set(err, -EINVAL,
                         "%s has neither a measured profile nor peak rates: its worker must probe "
                         "it, or be told its flops and bandwidth",
                         name);
    *out =
        profile_analytic(device->flops, device->bandwidth, SHARE_OF_PEAK, link_host, link_network);
    return 0;
}
