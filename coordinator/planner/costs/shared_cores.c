/* shared_cores.c - see shared_cores.h. */
#include "coordinator/planner/costs/shared_cores.h"

#include "common/base/memory.h"
#include "common/hardware/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The part of a device's cores that another one uses as well. */
static double shared_cores_overlap(const struct planner_device *device,
                                   const struct planner_device *other)
{
    bool both = device->cores && other->cores && hosts_same(device, other);
    return both ? hardware_overlap(device->cores, other->cores) : 0;
}

/* How many ranks compute on a device's cores while the first `count` devices are used: at least the
 * one on the device itself. */
static double count_sharers(const struct planner_device *devices, int count, int device)
{
    double sharers = 1 + devices[device].others;
    for (int i = 0; i < count && devices[device].cores; i++)
        sharers += i == device ? 0 : shared_cores_overlap(&devices[device], &devices[i]);
    return sharers;
}

/* The profile of a device that is so many times slower. Equally fast devices share one: the planner
 * recognizes them by its address. */
static const struct profile *slow_down(struct shared_cores *used, const struct profile *profile,
                                       double factor)
{
    if (!(factor > 1))
        return profile;
    struct profile slower = *profile;
    profile_slow_down(&slower, factor);
    for (int i = 0; i < used->profile_count; i++)
        if (profile_equal(&used->profiles[i], &slower))
            return &used->profiles[i];
    used->profiles[used->profile_count] = slower;
    return &used->profiles[used->profile_count++];
}

void shared_cores_init(struct shared_cores *used, const struct planner_device *devices, int count)
{
    *used = (struct shared_cores){
        .devices = xcalloc((size_t)count, sizeof *used->devices),
        .count = count,
        .profiles = xcalloc((size_t)count, sizeof *used->profiles),
    };
    for (int i = 0; i < count; i++) {
        used->devices[i] = devices[i];
        used->devices[i].profile =
            slow_down(used, devices[i].profile, count_sharers(devices, count, i));
        used->devices[i].cores = NULL; /* has been counted */
        used->devices[i].others = 0;
    }
}

struct planner_request shared_cores_ask(const struct planner_request *request,
                                        const struct shared_cores *used)
{
    struct planner_request ask = *request;
    ask.devices = used->devices;
    ask.device_count = used->count;
    return ask;
}

void shared_cores_finish(struct shared_cores *used)
{
    free(used->devices);
    free(used->profiles);
    *used = (struct shared_cores){0};
}

int shared_cores_end(const struct planner_request *request, int least, int most)
{
    int end = least;
    for (; end < most; end++)
        for (int i = 0; i < end; i++)
            if (shared_cores_overlap(&request->devices[i], &request->devices[end]) > 0)
                return end;
    return end;
}

static int find_device(const struct planner_request *request, const char *name)
{
    int i = 0;
    while (i < request->device_count && strcmp(request->devices[i].name, name) != 0)
        i++;
    return i;
}

/* Fill `devices`, one for each rank. */
static int find_devices(const struct planner_request *request, const struct plan *plan,
                        struct planner_device *devices, struct error *err)
{
    int ranks = plan_ranks(plan);
    if (ranks > request->device_count)
        return error_set(err, -ESTALE, "the given plan is for %d devices, there are %d", ranks,
                         request->device_count);
    for (int rank = 0; rank < ranks; rank++) {
        const char *name = plan_device(plan, rank);
        int index = name ? find_device(request, name) : rank;
        if (index == request->device_count)
            return error_set(err, -ESTALE,
                             "rank %d of the given plan is on %s, which is not among the devices "
                             "of the job: make a new plan, or take the devices out of this one",
                             rank, name);
        devices[rank] = request->devices[index];
    }
    return 0;
}

int shared_cores_order(const struct planner_request *request, const struct plan *plan,
                       struct shared_cores *out, struct error *err)
{
    *out = (struct shared_cores){0};
    struct planner_device *devices = xcalloc((size_t)request->device_count, sizeof *devices);
    int rc = find_devices(request, plan, devices, err);
    if (rc == 0)
        shared_cores_init(out, devices, plan_ranks(plan));
    free(devices);
    return rc;
}
