/* speeds.c - rounds speeds to classes, so that workers of about the same speed share one, whatever
 * their probes measured exactly. */
#include "coordinator/jobs/speeds.h"

#include "common/base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ratio of the time per flop between adjacent classes */
#define STEP 1.5

/* Seconds per flop, including the current slowdown; 0: unknown. */
static double pace_of(const struct device_view *view)
{
    return view->device->flops > 0 ? fmax(view->slowdown, 1) / view->device->flops : 0;
}

/* Devices [first, end) belong to one worker: each counts as fast as the slowest of its kind there,
 * for which all would wait. */
static void find_paces(const struct device_view *devices, size_t first, size_t end, double *paces)
{
    for (size_t i = first; i < end; i++)
        for (size_t j = first; j < end; j++)
            if (devices[j].device->kind == devices[i].device->kind)
                paces[i] = fmax(paces[i], pace_of(&devices[j]));
}

static double least_pace(const struct device_view *devices, const double *paces, size_t count,
                         enum hardware_kind kind)
{
    double least = INFINITY;
    for (size_t i = 0; i < count; i++)
        if (devices[i].device->kind == kind && paces[i] > 0)
            least = fmin(least, paces[i]);
    return least;
}

int *speeds_classify(const struct device_view *devices, size_t count)
{
    int *classes = xcalloc(count, sizeof *classes);
    double *paces = xcalloc(count, sizeof *paces);
    for (size_t first = 0, end = 0; first < count; first = end) {
        while (end < count && strcmp(devices[end].ref.worker, devices[first].ref.worker) == 0)
            end++;
        find_paces(devices, first, end, paces);
    }
    for (int kind = HARDWARE_CPU; kind <= HARDWARE_GPU; kind++) {
        double least = least_pace(devices, paces, count, (enum hardware_kind)kind);
        for (size_t i = 0; i < count; i++)
            if (devices[i].device->kind == (enum hardware_kind)kind && paces[i] > 0)
                classes[i] = (int)lround(log(paces[i] / least) / log(STEP));
    }
    free(paces);
    return classes;
}
