/* devices.c - finds the devices that a job trains on, and free ones that it might get in
 * addition. */
#include "coordinator/service/internal.h"
#include "coordinator/service/plans/plans.h"

#include <string.h>

size_t service_own_devices(const struct job *job, const struct device_view *all, size_t count,
                           struct device_view *out)
{
    size_t own = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].holder, job->id) == 0 && job_trains_on(job, &all[i].ref))
            out[own++] = all[i];
    return own;
}

size_t service_free_devices(const struct device_view *all, size_t count, enum hardware_kind kind,
                            struct device_view *out)
{
    size_t free = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i].grantable && !all[i].holder[0] && all[i].device->kind == kind)
            out[free++] = all[i];
    return free;
}
