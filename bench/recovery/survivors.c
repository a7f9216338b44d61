/* survivors.c - compares the plan for the devices that are left after a loss with the best possible
 * one. Some of several virtual devices are lost; the search that a replan runs is asked for a plan,
 * in a hurry as when executors wait for it; and every plan of its space is simulated.
 *
 * The model is of the demo's kind, and some choices are forbidden to keep the space small enough to
 * search completely. Throughput is samples per second by the predicted step. It is printed next to
 * (N-f)/N, what would be left if throughput fell in proportion to the devices. */
#include "bench/bench.h"
#include "bench/recovery/recovery.h"
#include "coordinator/planner/check.h"

#include "common/base/memory.h"
#include "coordinator/planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_DEVICES 4
#define DEVICES_MAX 8

static const struct loss {
    int before, after;
} losses[] = {{4, 3}, {8, 7}, {8, 6}};

struct fleet_of {
    struct profile profile;
    struct planner_device devices[DEVICES_MAX];
    char names[DEVICES_MAX][8], hosts[2][4];
};

static void make_fleet(struct fleet_of *fleet)
{
    const struct hardware_link host = {20e-6, 1 / 4e9}, network = {60e-6, 1 / 1e9};
    fleet->profile = profile_analytic(50e9, 10e9, 0.5, host, network);
    for (int i = 0; i < DEVICES_MAX; i++) {
        int of = i / HOST_DEVICES;
        snprintf(fleet->hosts[of], sizeof fleet->hosts[of], "n%d", of);
        snprintf(fleet->names[i], sizeof fleet->names[i], "n%d/%d", of, i % HOST_DEVICES);
        fleet->devices[i] = (struct planner_device){.name = fleet->names[i],
                                                    .host = fleet->hosts[of],
                                                    .memory_bytes = 1u << 30,
                                                    .profile = &fleet->profile};
    }
}

/* The best that the search finds for so many devices, at most all of them: samples a second. */
static double ask(const struct fleet_of *fleet, const char *search, int count, size_t *plans)
{
    struct error err = {0};
    struct job_config *job;
    struct graph *graph;
    struct planner_result result = {0};
    char *text =
        xasprintf("apiVersion: gimbal/v1\nname: survivors\n"
                  "model: {family: gpt, layers: 2, hidden: 128, heads: 4, seq: 64, vocab: 256}\n"
                  "data: {tokens: [x.bin]}\n"
                  "train: {steps: 1, global_batch: 24, lr: 0.001}\n"
                  "plan: {search: %s, forbid: {roles: [tensor_seq, ulysses, context, "
                  "hidden], zero: [1, 2, 3], recompute: [selective, full]}}\n",
                  search);
    bench_need(job_config_parse(text, strlen(text), "bench", &job, &err), &err);
    bench_need(planner_graph(job, &graph, &err), &err);
    struct planner_request request = {graph, job, fleet->devices, count, .hurry = true};
    bench_need(planner_run(&request, &result, &err), &err);
    double samples_per_s = (double)job->train.global_batch / result.best->predicted.step_time_s;
    *plans = result.looked_at > result.count ? result.looked_at : result.count;
    candidates_finish(&result);
    graph_destroy(graph);
    job_config_destroy(job);
    free(text);
    return samples_per_s;
}

void bench_survivors(void)
{
    struct fleet_of fleet;
    make_fleet(&fleet);
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        int before = losses[i].before, after = losses[i].after;
        size_t looked_at, all;
        double whole = ask(&fleet, "exact", before, &looked_at),
               found = ask(&fleet, "exact", after, &looked_at),
               best = ask(&fleet, "exhaustive", after, &all);
        printf("bench recovery/survivors_%d_to_%d %.4f ratio  # of the best of %zu plans; %.3f of "
               "the throughput before, where (N-f)/N is %.3f; the bar is 0.95\n",
               before, after, found / best, all, found / whole, (double)after / before);
    }
}
