/* planning_scene.h - a small job, and four devices on two hosts. */
#ifndef TESTS_COORDINATOR_PLANNING_SCENE_H
#define TESTS_COORDINATOR_PLANNING_SCENE_H

#include "coordinator/planning/planning.h"

#define DEVICES 4

/* Devices 0 and 2 are of one host, 1 and 3 of another. */
struct scene {
    char *text;
    int64_t batch; /* in place of the text's; 0: as it is */
    struct graph *graph;
    struct hardware_device devices[DEVICES];
    struct device_view views[DEVICES];
    struct planning_request request;
    struct planning planning; /* of the last scene_plan */
    struct error err;
};

/* more: YAML that follows the job's text. */
void scene_open(struct scene *scene, const char *more);
void planning_scene_close(struct scene *scene);
/* Of the scene as it is now; yours. */
struct planning_task *scene_task(struct scene *scene);
/* As planning_run. */
int scene_plan(struct scene *scene);

#endif
