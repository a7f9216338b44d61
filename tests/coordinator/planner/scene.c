/* scene.c - see scene.h. */
#include "tests/coordinator/planner/scene.h"

#include "common/base/memory.h"
#include "coordinator/planner/check.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

void scene_read(struct scene *scene, int batch, const char *more)
{
    char *text = xasprintf("apiVersion: gimbal/v1\n"
                           "name: small\n"
                           "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
                           "data: {text: [corpus.txt]}\n"
                           "train: {steps: 3, global_batch: %d, lr: 0.001}\n"
                           "%s",
                           batch, more);
    *scene = (struct scene){0};
    int rc = job_config_parse(text, strlen(text), "job", &scene->job, &scene->err);
    ck_assert_msg(rc == 0, "%s", scene->err.text);
    free(text);
    ck_assert_int_eq(planner_graph(scene->job, &scene->graph, NULL), 0);
    scene->request = (struct planner_request){scene->graph, scene->job, scene->devices, DEVICES};
}

void scene_close(struct scene *scene)
{
    candidates_finish(&scene->result);
    graph_destroy(scene->graph);
    job_config_destroy(scene->job);
}
