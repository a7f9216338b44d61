/* request.c - see request.h. Hosts are compared by their names. */
#include "coordinator/planner/costs/request.h"

#include <string.h>

bool planner_stopped(const struct planner_request *request)
{
    return request->stop && atomic_load_explicit(request->stop, memory_order_relaxed);
}

void planner_tell_work(const struct planner_request *request)
{
    if (request->progress)
        atomic_fetch_add_explicit(&request->progress->work, 1, memory_order_relaxed);
}

void planner_tell_best(const struct planner_request *request, double best_s)
{
    if (!request->progress)
        return;
    double so_far = atomic_load_explicit(&request->progress->best_s, memory_order_relaxed);
    if (so_far == 0 || best_s < so_far)
        atomic_store_explicit(&request->progress->best_s, best_s, memory_order_relaxed);
}

void planner_limits(const struct planner_request *request, int *least, int *most)
{
    int64_t min = request->job->devices.min, max = request->job->devices.max;
    int count = request->device_count;
    *least = min > 0 ? (int)min : 1;
    *most = max > 0 && max < count ? (int)max : count;
}

uint64_t planner_memory_limit(const struct planner_request *request, int device)
{
    uint64_t has = request->devices[device].memory_bytes, may = request->job->plan.memory;
    return may && may < has ? may : has;
}

bool hosts_same(const struct planner_device *a, const struct planner_device *b)
{
    return strcmp(a->host, b->host) == 0;
}

int hosts_share(const struct planner_device *devices, int count)
{
    int share = 1;
    while (share < count && hosts_same(&devices[share - 1], &devices[share]))
        share++;
    for (int i = 1; i < count; i++)
        if (hosts_same(&devices[i - 1], &devices[i]) != (i % share != 0))
            return 0;
    return count % share == 0 ? share : 0;
}
