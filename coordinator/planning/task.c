/* task.c - copies what a search needs. In a file of its own because the simulated cluster has
 * another planning.c. */
#include "coordinator/planning/planning.h"

#include <stdlib.h>

#include "common/base/memory.h"
#include "coordinator/planning/fleet.h"

struct planning_task *planning_task_create(const struct planning_request *request)
{
    struct planning_task *task = xcalloc(1, sizeof *task);
    task->job = request->job;
    task->graph = request->graph;
    task->given = request->given ? xstrdup(request->given) : NULL;
    task->present = request->present ? xstrdup(request->present) : NULL;
    task->picture = request->picture;
    task->devices_max = request->devices_max;
    task->hurry = request->hurry;
    task->clock_cb = request->clock_cb;
    task->refusal = fleet_open(&task->fleet, request->devices, request->device_count, request->cost,
                               &task->refusal_words);
    return task;
}

void planning_task_destroy(struct planning_task *task)
{
    if (!task)
        return;
    fleet_finish(&task->fleet);
    free(task->given);
    free(task->present);
    graph_destroy(task->graph);
    job_config_destroy(task->job);
    free(task);
}
