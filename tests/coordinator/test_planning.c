/* test_planning.c - granted devices to plans: their order, their speed, plans that were given,
 * and how many devices would do. */
#include "common/base/memory.h"
#include "common/program/lower.h"
#include "coordinator/planner/check.h"
#include "coordinator/planning/fleet.h"
#include "tests/coordinator/planning_scene.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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
        ck_assert_uint_eq(scene.planning.hashes[rank], program_hash(program));
        program_destroy(program);
    }
    ck_assert_ptr_nonnull(strstr(scene.planning.candidates, scene.planning.plan->id));
    planning_scene_close(&scene);
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
    planning_scene_close(&scene);
}
END_TEST

START_TEST(what_was_measured_goes_over_peak_rates_unless_asked_otherwise)
{
    struct scene scene;
    scene_open(&scene, "devices: {max: 1}\nplan: {search: uniform}\n");
    ck_assert_int_eq(scene_plan(&scene), 0);
    double peak_s = scene.planning.plan->predicted.step_time_s;
    struct hardware_link link = {1e-6, 1e-9};
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
    planning_scene_close(&scene);
}
END_TEST

/* On the devices that it names, in its order, whichever there are besides. */
START_TEST(a_picture_is_of_the_given_plan)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 2, max: 2}\nplan: {search: uniform}\n");
    ck_assert_int_eq(scene_plan(&scene), 0);
    double step_s = scene.planning.plan->predicted.step_time_s;
    char *given = xstrdup(scene.planning.json);
    scene.request.given = given;
    scene.request.picture = true;
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    ck_assert_ptr_null(scene.planning.plan);
    ck_assert_uint_eq(scene.planning.picture->count, 2);
    ck_assert_str_eq(scene.planning.picture->why.text, "");
    ck_assert_double_eq(scene.planning.picture->predicted.step_s, step_s);

    scene.request.device_count = 1;
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    ck_assert_double_eq(scene.planning.picture->predicted.step_s, 0);
    ck_assert_ptr_nonnull(strstr(scene.planning.picture->why.text, "for 2 devices, there are 1"));
    ck_assert_uint_ge(scene.planning.picture->outline_count, 1);

    scene.request.device_count = DEVICES;
    scene.devices[3].flops = 0;
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    ck_assert_ptr_nonnull(strstr(scene.planning.picture->why.text, "node-3/0 has neither"));

    scene.request.given = "{}";
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_null(scene.planning.picture);
    free(given);
    planning_scene_close(&scene);
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
    ck_assert_int_eq(scene_plan(&scene), -ESTALE);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "rank 1 of the given plan is on node-2/0"));
    scene.request.device_count = 1;
    ck_assert_int_eq(scene_plan(&scene), -ESTALE);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "is for 2 devices, there are 1"));
    scene.request.device_count = DEVICES;
    scene.batch = 8;
    ck_assert_int_eq(scene_plan(&scene), -EINVAL);
    ck_assert_ptr_nonnull(strstr(scene.err.text, "a global batch of 4, the job's is 8"));
    free(given);
    free(id);
    planning_scene_close(&scene);
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
    planning_scene_close(&scene);
}
END_TEST

static uint64_t state_bytes(const struct scene *scene, int rank)
{
    struct program *program;
    uint64_t bytes = 0;
    ck_assert_int_eq(lower(scene->graph, scene->planning.plan, rank, &program, NULL), 0);
    for (size_t i = 0; i < program->parameter_count; i++)
        bytes += 3 * (uint64_t)box_count(&program->parameters[i].box) * sizeof(float);
    program_destroy(program);
    return bytes;
}

START_TEST(a_plan_says_what_a_lost_node_costs)
{
    static const struct {
        const char *more;
        enum safety_kind kind;
    } cases[] = {
        {"devices: {min: 2, max: 2}\n"
         "plan: {search: uniform, pin: {dp: 2}, forbid: {zero: [1, 2, 3]}}\n",
         SAFETY_REPLICAS},
        {"devices: {min: 2, max: 2}\nplan: {search: uniform, pin: {pp: 2}}\n", SAFETY_COPIES},
        {"devices: {min: 2, max: 2}\nplan: {search: uniform, pin: {dp: 2}, forbid: {zero: [0]}}\n",
         SAFETY_COPIES},
        {"devices: {min: 2, max: 2}\nplan: {search: uniform, pin: {pp: 2}}\n"
         "elastic: {copy_every: 0}\n",
         SAFETY_CHECKPOINT},
    };
    struct scene scene;
    scene_open(&scene, cases[_i].more);
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    const struct safety *safety = &scene.planning.safety;
    ck_assert_int_eq(safety->kind, cases[_i].kind);
    if (safety->kind == SAFETY_COPIES) { /* two of its own, two of its neighbour's */
        ck_assert_double_gt(safety->copy_s, 0);
        ck_assert_uint_ge(safety->copy_every, 1);
        if (_i == 1)
            ck_assert_uint_eq(safety->copy_bytes,
                              2 * (state_bytes(&scene, 0) + state_bytes(&scene, 1)));
    } else {
        ck_assert_uint_eq(safety->copy_bytes, 0);
    }
    planning_scene_close(&scene);
}
END_TEST

/* So often that they take no more than their share, but no more often than is asked for. */
START_TEST(copies_are_made_as_often_as_is_cheap)
{
    static const struct {
        const char *elastic;
        double share; /* of a step's time; 0: any */
        uint64_t least;
    } cases[] = {{"", 0.1, 1},
                 {"elastic: {copy_share: 0.5}\n", 0.5, 1},
                 {"elastic: {copy_share: 0.5, copy_every: 400}\n", 0.5, 400},
                 {"elastic: {copy_share: 0, copy_every: 7}\n", 0, 7},
                 {"elastic: {copy_share: 1.0e-9}\n", 0, 1000}};
    char more[200];
    struct scene scene;
    snprintf(more, sizeof more,
             "devices: {min: 2, max: 2}\nplan: {search: uniform, pin: {pp: 2}}\n%s",
             cases[_i].elastic);
    scene_open(&scene, more);
    char *steps = strstr(scene.text, "steps: 3,");
    char *text = xasprintf("%.*ssteps: 1000,%s", (int)(steps - scene.text), scene.text,
                           steps + strlen("steps: 3,"));
    free(scene.text);
    scene.text = text;
    for (int i = 0; i < DEVICES; i++) {
        scene.views[i].network = (struct hardware_link){1e-4, 1e-8};
    }
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    const struct safety *safety = &scene.planning.safety;
    double share_s = cases[_i].share * scene.planning.plan->predicted.step_time_s;
    ck_assert_uint_ge(safety->copy_every, cases[_i].least);
    if (cases[_i].share > 0 && safety->copy_every < 1000) {
        ck_assert_double_le(safety_seconds(safety), share_s * (1 + 1e-9));
        if (safety->copy_every > cases[_i].least)
            ck_assert_double_gt(safety->copy_s / (double)(safety->copy_every - 1), share_s);
    } else {
        ck_assert_uint_eq(safety->copy_every, cases[_i].least);
    }
    planning_scene_close(&scene);
}
END_TEST

/* However fast devices exchange what programs have in their memory. */
START_TEST(copies_go_from_one_host_s_memory_to_another_s)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 2, max: 2}\nplan: {search: uniform, pin: {pp: 2}}\n");
    scene.views[2].host = "host-3"; /* each has its own */
    scene.views[3].host = "host-4";
    for (int i = 0; i < DEVICES; i++)
        scene.views[i].network = (struct hardware_link){1e-5, 1e-12};
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    double step_s = scene.planning.plan->predicted.step_time_s;
    double copy_s = scene.planning.safety.copy_s;
    ck_assert_int_eq(scene.planning.safety.kind, SAFETY_COPIES);
    for (int i = 0; i < DEVICES; i++)
        scene.views[i].host_network = (struct hardware_link){1e-5, 1e-6};
    ck_assert_int_eq(scene_plan(&scene), 0);
    ck_assert_double_eq(scene.planning.plan->predicted.step_time_s, step_s);
    ck_assert_double_ge(scene.planning.safety.copy_s,
                        copy_s + 0.9e-6 * (double)state_bytes(&scene, 0));
    planning_scene_close(&scene);
}
END_TEST

#define DEEP 5000

/* A plan of the small model for DEEP layers that are divided like its own. */
static struct plan *deepen(const struct plan *plan)
{
    struct plan *deep = plan_copy(plan);
    int count = plan->block_count - 2 + DEEP;
    deep->blocks = xrealloc(deep->blocks, (size_t)count * sizeof *deep->blocks);
    deep->block_count = deep->stages[0].block_count = count;
    deep->blocks[count - 1] = plan->blocks[plan->block_count - 1];
    for (int i = 1; i < count - 1; i++)
        deep->blocks[i] = plan->blocks[1];
    return deep;
}

/* Of this thread alone, so that a crowded machine changes nothing. */
static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* In less time than the ranks' programs take. With a look at all others for each slice it would be
 * minutes, in which a thread plans nothing else, whether the job is cancelled or not. */
START_TEST(a_deep_plan_says_it_at_once)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 2, max: 2}\n"
                       "plan: {search: uniform, pin: {dp: 2}, forbid: {zero: [1, 2, 3]}}\n");
    ck_assert_msg(scene_plan(&scene) == 0, "%s", scene.err.text);
    char *layers = strstr(scene.text, "layers: 2") + strlen("layers: ");
    char *text = xasprintf("%.*s%d%s", (int)(layers - scene.text), scene.text, DEEP, layers + 1);
    struct job_config *job;
    struct graph *graph;
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job", &job, &scene.err), 0);
    ck_assert_int_eq(planner_graph(job, &graph, &scene.err), 0);
    struct plan *plan = deepen(scene.planning.plan);
    const struct planner_device devices[2] = {{.name = plan_device(plan, 0)},
                                              {.name = plan_device(plan, 1)}};
    struct planner_request request = {
        .graph = graph, .job = job, .devices = devices, .device_count = 2};
    ck_assert_msg(plan_check(plan, graph, &scene.err) == 0, "%s", scene.err.text);
    double began_s = processor_s();
    for (int rank = 0; rank < 2; rank++) {
        struct program *program;
        ck_assert_int_eq(lower(graph, plan, rank, &program, NULL), 0);
        program_destroy(program);
    }
    double lowered_s = processor_s();
    ck_assert_int_eq(safety_of(&request, plan).kind, SAFETY_REPLICAS);
    double lowering_s = lowered_s - began_s, safety_s = processor_s() - lowered_s;
    ck_assert_msg(safety_s < lowering_s, "%g s, and %g s to lower", safety_s, lowering_s);
    plan_destroy(plan);
    graph_destroy(graph);
    job_config_destroy(job);
    free(text);
    planning_scene_close(&scene);
}
END_TEST

/* Devices by their place in the views: "1 3 0 2". */
static void fleet_is(const struct scene *scene, const char *expected)
{
    struct fleet fleet;
    char order[32] = "";
    ck_assert_int_eq(fleet_open(&fleet, scene->views, DEVICES, PLANNING_BEST, NULL), 0);
    for (size_t i = 0; i < fleet.count; i++) {
        size_t used = strlen(order);
        snprintf(order + used, sizeof order - used, "%s%u", i ? " " : "",
                 (unsigned)fleet.refs[i].instance - 1);
        ck_assert_str_eq(fleet.devices[i].host, fleet.refs[i].instance % 2 ? "host-1" : "host-2");
    }
    fleet_finish(&fleet);
    ck_assert_str_eq(order, expected);
}

/* What is left out of a plan is what comes last. */
START_TEST(fast_hosts_come_first_and_equal_ones_by_their_names)
{
    struct scene scene;
    scene_open(&scene, "");
    fleet_is(&scene, "0 2 1 3");
    scene.devices[1].flops = scene.devices[3].flops = 3e11;
    fleet_is(&scene, "1 3 0 2");
    scene.views[1].slowdown = scene.views[3].slowdown = 4; /* than it should be */
    fleet_is(&scene, "0 2 1 3");
    planning_scene_close(&scene);
}
END_TEST

/* On the network that was measured, as a plan for it takes no longer than one for a faster one does
 * there. */
START_TEST(the_network_that_was_measured_is_planned_for)
{
    struct scene scene;
    scene_open(&scene, "devices: {min: 4}\n");
    ck_assert_int_eq(scene_plan(&scene), 0);
    double fast_s = scene.planning.plan->predicted.step_time_s;
    char *present = xstrdup(scene.planning.json);
    ck_assert(scene.planning.present_s == 0);
    scene.request.present = present;
    ck_assert_int_eq(scene_plan(&scene), 0);
    ck_assert_double_eq_tol(scene.planning.present_s, fast_s, 1e-12);
    for (int i = 0; i < DEVICES; i++) {
        scene.views[i].network = (struct hardware_link){1e-3, 1e-7};
    }
    ck_assert_int_eq(scene_plan(&scene), 0);
    ck_assert_double_eq(scene.planning.networks[0], 1e-7);
    ck_assert_double_gt(scene.planning.present_s, 2 * fast_s);
    ck_assert_double_le(scene.planning.plan->predicted.step_time_s, scene.planning.present_s);
    free(present);
    planning_scene_close(&scene);
}
END_TEST

/* Ranks on cores meet at one address; an old worker does not tell of cards. */
START_TEST(devices_share_the_network_cards_of_their_host)
{
    struct scene scene;
    struct fleet fleet;
    scene_open(&scene, "");
    for (unsigned i = 0; i < DEVICES; i++) {
        scene.devices[i].kind = i < 2 ? HARDWARE_GPU : HARDWARE_CPU;
        scene.views[i].network = (struct hardware_link){1e-5, 1e-9};
        scene.views[i].network_cards = i == 1 ? 0 : 4;
    }
    ck_assert_int_eq(fleet_open(&fleet, scene.views, DEVICES, PLANNING_BEST, &scene.err), 0);
    static const struct {
        const char *name;
        double cards;
    } expected[] = {{"node-0/0", 4}, {"node-1/0", 0}, {"node-2/0", 1}, {"node-3/0", 1}};
    for (unsigned i = 0; i < DEVICES; i++) {
        const struct planner_device *device = &fleet.devices[fleet_find(&fleet, expected[i].name)];
        ck_assert_double_eq(device->profile->network_cards, expected[i].cards);
    }
    fleet_finish(&fleet);
    planning_scene_close(&scene);
}
END_TEST

/* Of the two ranks on the core of node-0, one is of the job itself. */
START_TEST(ranks_of_other_jobs_on_the_same_cores_count)
{
    struct scene scene;
    struct fleet fleet;
    scene_open(&scene, "");
    for (int i = 0; i < DEVICES; i++) {
        scene.devices[i].cpuset = (char *)"0";
        scene.views[i].crowded = true;
        scene.views[i].holder = i == 2 ? "j-1" : "";
    }
    scene.views[0].busy = 2;
    scene.views[1].busy = scene.views[3].busy = 1;
    scene.views[3].slowdown = 2; /* has been measured with those that were there */
    ck_assert_int_eq(fleet_open(&fleet, scene.views, DEVICES, PLANNING_BEST, &scene.err), 0);
    static const double expected[] = {1, 0, 1, 0}; /* hosts side by side: 0, 2, 1, 3 */
    for (int i = 0; i < DEVICES; i++) {
        ck_assert_str_eq(fleet.devices[i].cores, "0");
        ck_assert_double_eq(fleet.devices[i].others, expected[i]);
    }
    fleet_finish(&fleet);

    /* a worker that was told of no others on its cores is believed */
    scene.views[0].crowded = false;
    ck_assert_int_eq(fleet_open(&fleet, scene.views, DEVICES, PLANNING_BEST, &scene.err), 0);
    ck_assert_ptr_null(fleet.devices[0].cores);
    fleet_finish(&fleet);
    planning_scene_close(&scene);
}
END_TEST

/* By what was measured; peak rates are taken as they are told. */
START_TEST(devices_of_one_make_are_planned_as_equally_fast)
{
    struct scene scene;
    struct fleet fleet;
    scene_open(&scene, "");
    for (int i = 0; i < DEVICES; i++) {
        const struct hardware_link link = {1e-6, 1e-9};
        struct profile profile = profile_analytic(1e11 + 1e9 * i, 2e10, 0.5, link, link);
        scene.devices[i].name = (char *)"EPYC";
        scene.devices[i].flops = 1e11 + 1e9 * i;
        scene.devices[i].profile = profile_encode(&profile);
    }
    ck_assert_int_eq(fleet_open(&fleet, scene.views, DEVICES, PLANNING_BEST, &scene.err), 0);
    ck_assert_uint_eq(fleet.profile_count, 1);
    fleet_finish(&fleet);
    ck_assert_int_eq(fleet_open(&fleet, scene.views, DEVICES, PLANNING_ANALYTIC, &scene.err), 0);
    ck_assert_uint_eq(fleet.profile_count, DEVICES);
    fleet_finish(&fleet);
    for (int i = 0; i < DEVICES; i++)
        free(scene.devices[i].profile);
    planning_scene_close(&scene);
}
END_TEST

SUITE(planning)
{
    TCase *tcase = tcase_create("planning"), *deep = tcase_create("deep");
    tcase_add_test(deep, a_deep_plan_says_it_at_once);
    tcase_set_timeout(deep, 60);
    tcase_add_test(tcase, devices_of_one_host_are_neighbours);
    tcase_add_test(tcase, devices_of_one_make_are_planned_as_equally_fast);
    tcase_add_test(tcase, ranks_of_other_jobs_on_the_same_cores_count);
    tcase_add_test(tcase, a_device_without_any_speed_is_refused_by_name);
    tcase_add_test(tcase, what_was_measured_goes_over_peak_rates_unless_asked_otherwise);
    tcase_add_test(tcase, a_picture_is_of_the_given_plan);
    tcase_add_test(tcase, a_given_plan_is_taken_as_it_is);
    tcase_add_test(tcase, memory_that_is_short_says_how_many_devices_would_do);
    tcase_add_loop_test(tcase, a_plan_says_what_a_lost_node_costs, 0, 4);
    tcase_add_loop_test(tcase, copies_are_made_as_often_as_is_cheap, 0, 5);
    tcase_add_test(tcase, copies_go_from_one_host_s_memory_to_another_s);
    tcase_add_test(tcase, fast_hosts_come_first_and_equal_ones_by_their_names);
    tcase_add_test(tcase, the_network_that_was_measured_is_planned_for);
    tcase_add_test(tcase, devices_share_the_network_cards_of_their_host);
    return suite_run("planning", tcase, deep, NULL);
}
