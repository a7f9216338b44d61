/* planning_scene.c - its job is read anew for every task, which takes it. */
#include "tests/coordinator/planning_scene.h"

#include "common/base/memory.h"
#include "coordinator/planner/check.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t no_time(void)
{
    return 0;
}

static struct job_config *read_job(struct scene *scene)
{
    struct job_config *config;
    int rc = job_config_parse(scene->text, strlen(scene->text), "job", &config, &scene->err);
    ck_assert_msg(rc == 0, "%s", scene->err.text);
    if (scene->batch)
        config->train.global_batch = scene->batch;
    return config;
}

void scene_open(struct scene *scene, const char *more)
{
    *scene = (struct scene){0};
    scene->text = xasprintf("apiVersion: gimbal/v1\n"
                            "name: small\n"
                            "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
                            "data: {text: [corpus.txt]}\n"
                            "train: {steps: 3, global_batch: 4, lr: 0.001}\n"
                            "%s",
                            more);
    struct job_config *config = read_job(scene);
    ck_assert_int_eq(planner_graph(config, &scene->graph, NULL), 0);
    job_config_destroy(config);
    for (unsigned i = 0; i < DEVICES; i++) {
        scene->devices[i] = (struct hardware_device){
            .cores = 1, .memory_bytes = 1 << 30, .flops = 1e11, .bandwidth = 2e10};
        scene->views[i] = (struct device_view){
            .ref = {.instance = i + 1, .index = 0},
            .host = i % 2 ? "host-2" : "host-1",
            .device = &scene->devices[i],
        };
        snprintf(scene->views[i].ref.worker, HARDWARE_NAME_SIZE, "node-%u", i);
    }
    scene->request = (struct planning_request){.devices = scene->views,
                                               .device_count = DEVICES,
                                               .devices_max = DEVICES,
                                               .clock_cb = no_time};
}

struct planning_task *scene_task(struct scene *scene)
{
    scene->request.job = read_job(scene);
    ck_assert_int_eq(planner_graph(scene->request.job, &scene->request.graph, NULL), 0);
    return planning_task_create(&scene->request);
}

int scene_plan(struct scene *scene)
{
    struct planning_task *task = scene_task(scene);
    planning_finish(&scene->planning);
    int rc = planning_run(task, &scene->planning, &scene->err);
    planning_task_destroy(task);
    return rc;
}

void planning_scene_close(struct scene *scene)
{
    planning_finish(&scene->planning);
    graph_destroy(scene->graph);
    free(scene->text);
}
