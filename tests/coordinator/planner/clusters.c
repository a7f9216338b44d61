/* clusters.c - drawing. */
#include "tests/coordinator/planner/clusters.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "coordinator/planner/check.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct draw {
    uint64_t seed, next;
};

static int below(struct draw *draw, int bound)
{
    return (int)random_below(draw->seed, 9, draw->next++, (uint64_t)bound);
}

/* Between low and high, as likely in each octave. */
static double between(struct draw *draw, double low, double high)
{
    return low * pow(high / low, random_uniform(draw->seed, 9, draw->next++));
}

static void draw_job(struct cluster *cluster, struct draw *draw, int layers)
{
    static const int batches[] = {2, 4, 6, 8, 12, 16, 24};
    struct error err = {0};
    char *text =
        xasprintf("apiVersion: gimbal/v1\n"
                  "name: drawn\n"
                  "model: {family: %s, layers: %d, hidden: %d, heads: 4, seq: %d, "
                  "vocab: %d}\n"
                  "data: {tokens: [corpus.bin]}\n"
                  "train: {steps: 3, global_batch: %d, lr: 0.001}\n"
                  "elastic: {copy_every: 0}\n",
                  below(draw, 2) ? "gpt" : "llama", 1 + below(draw, layers), 64 << below(draw, 4),
                  16 << below(draw, 4), 512 << below(draw, 5), batches[below(draw, 7)]);
    int rc = job_config_parse(text, strlen(text), "job", &cluster->job, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_int_eq(planner_graph(cluster->job, &cluster->graph, NULL), 0);
    free(text);
}

static void draw_profiles(struct cluster *cluster, struct draw *draw)
{
    struct hardware_link host = {between(draw, 1e-6, 1e-4), between(draw, 1e-11, 1e-9)},
                         network = {between(draw, 1e-5, 1e-3), between(draw, 1e-10, 1e-8)};
    double flops = between(draw, 1e10, 1e13);
    for (int i = 0; i < 3; i++) {
        double own = i ? flops * between(draw, 0.2, 5) : flops;
        cluster->profiles[i] =
            profile_analytic(own, own / between(draw, 5, 200), 0.5, host, network);
        cluster->profiles[i].overhead_s = 3e-6;
        cluster->profiles[i].network_cards = below(draw, 3);
        cluster->profiles[i].overlap = between(draw, 1, PROFILE_OVERLAP_MAX);
    }
}

void cluster_init(struct cluster *cluster, uint64_t seed, int layers, int devices)
{
    static const char *const names[] = {"d0", "d1", "d2", "d3", "d4", "d5", "d6", "d7"},
                             *const hosts[] = {"a", "b", "c"};
    struct draw draw = {seed, 0};
    draw_job(cluster, &draw, layers);
    draw_profiles(cluster, &draw);
    int count = 2 + below(&draw, devices - 1), host = 0;
    int speeds = 1 + below(&draw, 3), host_count = 1 + below(&draw, 3);
    uint64_t memory = (uint64_t)between(&draw, 2e6, 4e8);
    for (int i = 0; i < count; i++) {
        host += i > 0 && host + 1 < host_count && below(&draw, 2);
        cluster->devices[i] = (struct planner_device){
            names[i], hosts[host], below(&draw, 4) ? memory : 2 * memory,
            &cluster->profiles[host_count > 1 ? host % speeds : below(&draw, speeds)]};
    }
    cluster->request =
        (struct planner_request){cluster->graph, cluster->job, cluster->devices, count};
}

void cluster_finish(struct cluster *cluster)
{
    graph_destroy(cluster->graph);
    job_config_destroy(cluster->job);
}

double cluster_step(const struct planner_request *request)
{
    struct planner_result result;
    double step_s = INFINITY;
    if (planner_run(request, &result, NULL) == 0)
        step_s = result.best->predicted.step_time_s;
    candidates_finish(&result);
    return step_s;
}
