/* task.c - devices of a membership as a search may keep them: copied, their speed known, and those
 * of one host next to each other. */
#include "coordinator/planning/task.h"

#include "common/base/memory.h"
#include "coordinator/planner/device_profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int planning_cost_parse(const char *text, enum planning_cost *cost, struct error *err)
{
    static const char *const words[] = {[PLANNING_BEST] = "best",
                                        [PLANNING_MEASURED] = "measured",
                                        [PLANNING_ANALYTIC] = "analytic"};
    *cost = PLANNING_BEST;
    for (size_t i = 0; text[0] && i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], text) == 0) {
            *cost = (enum planning_cost)i;
            return 0;
        }
    if (!text[0])
        return 0;
    return error_set(err, -EINVAL, "cost '%.64s' is unknown; known: best, measured, analytic",
                     text);
}

static int find_profile(const struct hardware_device *device, const char *name,
                        enum planning_cost cost, struct profile *out, struct error *err)
{
    if (cost == PLANNING_MEASURED && !device->profile)
        return error_set(err, -EINVAL, "%s has no measured profile yet", name);
    return device_profile(device, name, cost != PLANNING_ANALYTIC, out, err);
}

/* The first device without a speed is the task's refusal. */
static void add_device(struct planning_task *task, const struct device_view *view,
                       enum planning_cost cost)
{
    struct planning_device *device = &task->devices[task->device_count++];
    device->ref = view->ref;
    snprintf(device->name, sizeof device->name, "%s/%u", view->ref.worker, view->ref.index);
    device->host = xstrdup(view->host);
    device->memory_bytes = view->device->memory_bytes;
    if (task->refusal == 0)
        task->refusal =
            find_profile(view->device, device->name, cost, &device->profile, &task->refusal_words);
}

/* Hosts in the order of their first devices. */
static void add_devices(struct planning_task *task, const struct planning_request *request)
{
    size_t count = request->device_count;
    bool *taken = xcalloc(count, sizeof *taken);
    for (size_t first = 0; first < count; first++) {
        if (taken[first])
            continue;
        for (size_t i = first; i < count; i++) {
            if (strcmp(request->devices[i].host, request->devices[first].host) != 0)
                continue;
            taken[i] = true;
            add_device(task, &request->devices[i], request->cost);
        }
    }
    free(taken);
}

struct planning_task *planning_task_create(const struct planning_request *request)
{
    struct planning_task *task = xcalloc(1, sizeof *task);
    task->job = request->job;
    task->graph = request->graph;
    task->given = request->given ? xstrdup(request->given) : NULL;
    task->devices = xcalloc(request->device_count, sizeof *task->devices);
    task->devices_max = request->devices_max;
    task->clock_cb = request->clock_cb;
    add_devices(task, request);
    return task;
}

void planning_task_destroy(struct planning_task *task)
{
    if (!task)
        return;
    for (size_t i = 0; i < task->device_count; i++)
        free(task->devices[i].host);
    free(task->devices);
    free(task->given);
    graph_destroy(task->graph);
    job_config_destroy(task->job);
    free(task);
}
