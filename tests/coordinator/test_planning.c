/* test_planning.c - granted devices to plans: their order, their speed, plans that were given,
 * and how many devices would do. */
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planning/planning.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 4

/* Devices 0 and 2 are of one host, 1 and 3 of another. */
struct scene {
    struct job_config *config;
    struct graph *graph;
    struct hardware_device devices[DEVICES];
    struct device_view views[DEVICES];
    struct planning_request request;
    struct planning planning;
    struct error err;
};

static uint64_t no_time(void)
{
    return 0;
}

static void scene_open(struct scene *scene, const char *more)
{
    char *text = xasprintf("apiVersion: gimbal/v1\n"
                           "name: small\n"
                           "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16}\n"
                           "data: {text: [corpus.txt]}\n"
                           "train: {steps: 3, global_batch: 4, lr: 0.001}\n"
                           "%s",
                           more);
    *scene = (struct scene){0};
    int rc = job_config_parse(text, strlen(text), "job", &scene->config, &scene->err);
    ck_assert_msg(rc == 0, "%s", scene->err.text);
    ck_assert_int_eq(planner_graph(scene->config, &scene->graph, NULL), 0);
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
    scene->request = (struct planning_request){.job = scene->config,
                                               .graph = scene->graph,
                                               .devices = scene->views,
                                               .device_count = DEVICES,
                                               .devices_max = DEVICES,
                                               .clock_cb = no_time};
    free(text);
}

static int scene_plan(struct scene *scene)
{
    planning_finish(&scene->planning);
    return planning_run(&scene->request, &scene->planning, &scene->err);
}

static void scene_close(struct scene *scene)
{
    planning_finish(&scene->planning);
    graph_destroy(scene->graph);
    job_config_destroy(scene->config);
}

START_TEST(devices_of_one_host_are_neighbours)
{
    struct scene scene;
    static const char *const names[] = {"node-0/0", "node-2/0", "node-1/0", "node-3/0"};
    scene_open(&scene, "devices: {min: 4}\nplan: {search: uniform}\n");
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    ck_assert_uint_eq(scene.planning.rank_count, DEVICES);
    for (int rank = 0; rank < DEVICES; rank++) {
        struct program *program;
        ck_assert_str_eq(plan_device(scene.planning.plan, rank), names[rank]);
        ck_assert_int_eq(strncmp(scene.planning.devices[rank].worker, names[rank], 6), 0);
        ck_assert_int_eq(lower(scene.graph, scene.planning.plan, rank, &program, NULL), 0);
        ck_assert_uint_eq(scene.planning.hashes[rank], program->hash);
        program_destroy(program);
    }
    ck_assert_ptr_nonnull(strstr(scene.planning.candidates, scene.planning.plan->id));
    scene_close(&scene);
}
END_TEST

START_TEST(a_device_without_any_speed_is_refused_by_name)
{
    struct scene scene;
    scene_open(&scene, "plan: {search: uniform}\n");
    scene.devices[3].flops = 0;
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "node-3/0 has neither a measured profile nor"));
    scene.devices[3].profile = (char *)"{\"rates\": 3}";
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "node-3/0: profile: "));
    scene_close(&scene);
}
END_TEST

START_TEST(what_was_measured_goes_over_peak_rates_unless_asked_otherwise)
{
    struct scene scene;
    scene_open(&scene, "devices: {max: 1}\nplan: {search: uniform}\n");
    ck_assert_int_eq(scene_plan(&scene), 0);
    double peak_s = scene.planning.plan->predicted.step_time_s;
    struct profile_link link = {1e-6, 1e-9};
    struct profile slow = profile_analytic(1e6, 1e6, 1, link, link);
    for (int i = 0; i < DEVICES; i++)
        scene.devices[i].profile = profile_encode(&slow);
    ck_assert_int_eq(scene_plan(&scene), 0);
    ck_assert(scene.planning.plan->predicted.step_time_s > 100 * peak_s);
    scene.request.cost = PLANNING_ANALYTIC;
    ck_assert_int_eq(scene_plan(&scene), 0);
    ck_assert_double_eq(scene.planning.plan->predicted.step_time_s, peak_s);
    for (int i = 0; i < DEVICES; i++)
        free(scene.devices[i].profile);
    enum planning_cost cost;
    ck_assert_int_eq(planning_cost_parse("galactic", &cost, &scene.err), -EINVAL);
    ck_assert_int_eq(planning_cost_parse("measured", &cost, &scene.err), 0);
    ck_assert_int_eq(cost, PLANNING_MEASURED);
    scene_close(&scene);
}
END_TEST

START_TEST(a_given_plan_is_taken_as_it_is)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 2, max: 2}\nplan: {search: uniform}\n");
    ck_assert_int_eq(scene_plan(&scene), 0);
    char *given = xstrdup(scene.planning.json);
    char *id = xstrdup(scene.planning.plan->id);
    scene.request.given = given;
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    ck_assert_str_eq(scene.planning.plan->id, id);
    ck_assert_str_eq(scene.planning.devices[1].worker, "node-2");
    /* Its devices must be there, and enough of them; so must its batch be the job's. */
    scene.request.device_count = 2;
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "rank 1 of the given plan is on node-2/0"));
    scene.request.device_count = 1;
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "is for 2 devices, there are 1"));
    scene.request.device_count = DEVICES;
    scene.config->train.global_batch = 8;
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "a global batch of 4, the job's is 8"));
    free(given);
    free(id);
    scene_close(&scene);
}
END_TEST

START_TEST(memory_that_is_short_says_how_many_devices_would_do)
{
    struct scene scene;
    scene_open(&scene, "plan: {search: uniform}\n");
    scene.request.device_count = 1;
    scene.devices[0].memory_bytes = 0;
    /* The least that one device needs, and then a byte less. */
    ck_assert_int_eq(scene_plan(&scene), -ENOSPC);
    ck_assert_uint_eq(scene.planning.devices_needed, 0);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "no plan fits"));
    const char *least = strstr(scene.err.text, "at least ");
    ck_assert_ptr_nonnull(least);
    scene.devices[0].memory_bytes = strtoull(least + strlen("at least "), NULL, 10) - 1;
    ck_assert_int_eq(scene_plan(&scene), -ENOSPC);
    ck_assert_uint_eq(scene.planning.devices_needed, 2);
    ck_assert_ptr_nonnull(strstr(scene.planning.candidates, "does not fit"));
    /* But not more than the job may have. */
    scene.request.devices_max = 1;
    ck_assert_int_eq(scene_plan(&scene), -ENOSPC);
    ck_assert_uint_eq(scene.planning.devices_needed, 0);
    scene_close(&scene);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("planning");
    tcase_add_test(tcase, devices_of_one_host_are_neighbours);
    tcase_add_test(tcase, a_device_without_any_speed_is_refused_by_name);
    tcase_add_test(tcase, what_was_measured_goes_over_peak_rates_unless_asked_otherwise);
    tcase_add_test(tcase, a_given_plan_is_taken_as_it_is);
    tcase_add_test(tcase, memory_that_is_short_says_how_many_devices_would_do);
    return suite_run("planning", tcase, NULL);
}
