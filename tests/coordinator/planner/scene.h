/* scene.h - a small job and four devices to search plans for. */
#ifndef TESTS_COORDINATOR_PLANNER_SCENE_H
#define TESTS_COORDINATOR_PLANNER_SCENE_H

#include "coordinator/planner/planner.h"

#define DEVICES 4
#define MEMORY (1ull << 30)

struct scene {
    struct job_config *job;
    struct graph *graph;
    struct planner_device devices[DEVICES];
    struct planner_request request; /* of all that */
    struct planner_result result;
    struct error err;
};

/* Read the job, a step of which is of `batch` samples; `more` is YAML to add to it. The devices are
 * for the caller to fill in. */
void scene_read(struct scene *scene, int batch, const char *more);
void scene_close(struct scene *scene);

#endif
