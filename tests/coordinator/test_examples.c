/* test_examples.c - the files that users start from: all are read, every job's model is built, and
 * the small clusters plan what is small. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "coordinator/planner/check.h"
#include "coordinator/planning/fleet.h"
#include "tests/support/suite.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

#define FILES_MAX 64

static char *paths[FILES_MAX];
static int path_count;

static void find(const char *pattern)
{
    glob_t found;
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc && path_count < FILES_MAX; i++)
        paths[path_count++] = xstrdup(found.gl_pathv[i]);
    globfree(&found);
}

static void finish(void)
{
    while (path_count > 0)
        free(paths[--path_count]);
}

static char *read_file(const char *path)
{
    struct error err;
    char *text;
    ck_assert_msg(file_read(path, &text, &err) == 0, "%s", err.text);
    return text;
}

static void read_cluster(const char *path, struct inventory *inventory)
{
    struct error err;
    char *text = read_file(path);
    ck_assert_msg(inventory_parse(text, strlen(text), path, inventory, &err) == 0, "%s", err.text);
    free(text);
}

static struct job_config *read_job(const char *path)
{
    struct error err;
    struct job_config *job;
    ck_assert_msg(job_config_load(path, &job, &err) == 0, "%s", err.text);
    ck_assert_msg(planner_check(job, &err) == 0, "%s: %s", path, err.text);
    return job;
}

START_TEST(every_cluster_is_read)
{
    find(EXAMPLES "/clusters/*.yaml");
    ck_assert_int_ge(path_count, 4);
    for (int i = 0; i < path_count; i++) {
        struct inventory inventory;
        struct fleet fleet;
        struct error err;
        read_cluster(paths[i], &inventory);
        int rc = fleet_open(&fleet, inventory.views, inventory.view_count, PLANNING_ANALYTIC, &err);
        ck_assert_msg(rc == 0, "%s: %s", paths[i], err.text);
        fleet_finish(&fleet);
        inventory_finish(&inventory);
    }
}
END_TEST

START_TEST(every_job_is_read)
{
    find(EXAMPLES "/jobs/*.yaml");
    ck_assert_int_ge(path_count, 11);
    for (int i = 0; i < path_count; i++)
        job_config_destroy(read_job(paths[i]));
}
END_TEST

static const struct {
    const char *cluster, *job;
    uint64_t memory; /* in place of the job's */
    struct job_pin pin;
} small[] = {
    {"rtx-titan-8", "bert-huge-32", UINT64_C(8) << 30, {.micro_batches = 8}},
    {"rtx-titan-8", "bert-huge-48", UINT64_C(12) << 30, {.micro_batches = 8}},
    {"rtx-titan-8", "vit-huge-32", UINT64_C(16) << 30, {.micro_batches = 8}},
    {"rtx-titan-8", "vit-huge-48", UINT64_C(20) << 30, {.micro_batches = 8}},
    {"a100-2x8", "gpt3-1.3b", 0, {.tp = 4, .pp = 2, .micro_batches = 16}},
    {"lab-mixed", "vit-huge-32", 0, {.pp = 1, .micro_batches = 8}},
};

/* By the search that takes any number of devices, on a part of its grid. */
START_TEST(what_is_small_is_planned)
{
    char *paths_of[] = {xasprintf(EXAMPLES "/clusters/%s.yaml", small[_i].cluster),
                        xasprintf(EXAMPLES "/jobs/%s.yaml", small[_i].job)};
    struct inventory inventory;
    struct fleet fleet;
    struct planner_result result;
    struct graph *graph;
    struct error err = {""};
    struct job_config *job = read_job(paths_of[1]);
    read_cluster(paths_of[0], &inventory);
    free(job->plan.search);
    job->plan.search = xstrdup("uniform");
    job->plan.memory = small[_i].memory;
    job->plan.pin = small[_i].pin;
    ck_assert_int_eq(planner_graph(job, &graph, &err), 0);
    ck_assert_int_eq(fleet_open(&fleet, inventory.views, inventory.view_count, PLANNING_BEST, &err),
                     0);
    struct planner_request request = {graph, job, fleet.devices, (int)fleet.count};
    int rc = planner_run(&request, &result, &err);
    ck_assert_msg(rc == 0, "%s on %s: %s", small[_i].job, small[_i].cluster, err.text);
    if (small[_i].memory)
        ck_assert_uint_le(result.best->predicted.memory_bytes_max, small[_i].memory);
    candidates_finish(&result);
    graph_destroy(graph);
    fleet_finish(&fleet);
    inventory_finish(&inventory);
    job_config_destroy(job);
    free(paths_of[0]);
    free(paths_of[1]);
}
END_TEST

SUITE(examples)
{
    TCase *read = tcase_create("read"), *plan = tcase_create("plan");
    tcase_add_checked_fixture(read, NULL, finish);
    tcase_add_test(read, every_cluster_is_read);
    tcase_add_test(read, every_job_is_read);
    tcase_set_timeout(plan, 120);
    tcase_add_loop_test(plan, what_is_small_is_planned, 0, sizeof small / sizeof *small);
    return suite_run("examples", read, plan, NULL);
}
