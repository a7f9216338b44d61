/* run.c - times the planner's searches and compares exact with uniform, on analytic profiles of
 * accelerators with 100 TFLOP/s and 1.5 TB/s, eight per host, with links of 200 GB/s within a host
 * and 25 GB/s between hosts.
 *
 * Wall time is that of planner_run(), search and confirmation together; CPU time is the one to
 * trust on a shared machine. Each case runs in a process of its own, so that its largest resident
 * set can be measured. Cases are named by their devices and layers, replans by the devices before
 * one or eight of them were lost. The jobs of examples/ follow (examples.h).
 *
 * usage: run [CASE [SEARCH]], or run examples [JOB [SEARCH]], by their names. */
#include "bench/planner/examples.h"
#include "coordinator/planner/check.h"

#include "common/base/memory.h"
#include "coordinator/planner/planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOST_DEVICES 8

struct bench_case {
    const char *name, *search;
    int devices, layers, hidden, heads, batch;
    double memory_gib;
    const char *more; /* of the job's plan */
    bool hurry;       /* executors stand still meanwhile */
};

static const struct bench_case cases[] = {
    {"8x12", "exact", 8, 12, 768, 12, 64, 16, ""},
    {"8x12", "uniform", 8, 12, 768, 12, 64, 16, ""},
    {"8x12", "bmw", 8, 12, 768, 12, 64, 16, ""},
    {"8x12", "tensoropt", 8, 12, 768, 12, 64, 16, ""},
    {"8x12_tight", "tensoropt", 8, 12, 768, 12, 64, 2, ""},
    {"8x12", "autoddl", 8, 12, 768, 12, 64, 16, ""},
    {"8x12_tight", "autoddl", 8, 12, 768, 12, 64, 2, ""},
    {"8x12_tight", "bmw", 8, 12, 768, 12, 64, 2, ""},
    {"8x12_tight", "exact", 8, 12, 768, 12, 64, 2, ""},
    {"8x12_tight", "uniform", 8, 12, 768, 12, 64, 2, ""},
    {"16x24", "exact", 16, 24, 2048, 16, 64, 16, ""},
    {"16x24", "uniform", 16, 24, 2048, 16, 64, 16, ""},
    {"64x32", "exact", 64, 32, 4096, 32, 128, 40, ""},
    {"120x32", "exact", 120, 32, 4096, 32, 128, 40, ""},
    {"128", "exact", 120, 32, 4096, 32, 128, 40, "", true},
    {"8", "exact", 7, 12, 768, 12, 64, 16, "", true},
    {"8x64_too_large", "exact", 8, 64, 8192, 64, 256, 80, ""},
    {"256x64", "exact", 256, 64, 8192, 64, 256, 80, ""},
    {"1024x128", "exact", 1024, 128, 12288, 96, 1024, 80, ""},
};

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static struct planner_device *make_devices(const struct bench_case *c,
                                           const struct profile *profile)
{
    struct planner_device *devices = xcalloc((size_t)c->devices, sizeof *devices);
    for (int i = 0; i < c->devices; i++)
        devices[i] = (struct planner_device){
            .name = xasprintf("n%d/%d", i / HOST_DEVICES, i % HOST_DEVICES),
            .host = i % HOST_DEVICES ? devices[i - 1].host : xasprintf("n%d", i / HOST_DEVICES),
            .memory_bytes = (uint64_t)(c->memory_gib * (1 << 30)),
            .profile = profile};
    return devices;
}

static double cpu_now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* What the names of its figures begin with. */
static const char *kind(const struct bench_case *c)
{
    return c->hurry ? "replan" : c->search;
}

static void report_work(const struct bench_case *c, const char *what, double wall_s, double cpu_s)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("bench planner/%s_%s_wall_s %.4f s  # %s\n", kind(c), c->name, wall_s, what);
    printf("bench planner/%s_%s_cpu_s %.4f s\n", kind(c), c->name, cpu_s);
    printf("bench planner/%s_%s_rss_bytes %ld bytes\n", kind(c), c->name, usage.ru_maxrss * 1024);
}

static void report(const struct bench_case *c, const struct planner_result *result)
{
    const struct plan *best = result->best;
    const char *name = c->name, *search = kind(c);
    printf("bench planner/%s_%s_step_s %.6f s  # by %s; by the formula %.6f\n", search, name,
           best->predicted.step_time_s, best->predicted.referee, best->predicted.formula_s);
    printf("bench planner/%s_%s_memory_bytes %llu bytes\n", search, name,
           (unsigned long long)best->predicted.memory_bytes_max);
    printf("bench planner/%s_%s_balance_time %.3f ratio  # memory %.3f\n", search, name,
           best->predicted.balance_time, best->predicted.balance_memory);
    if (best->predicted.lower_bound_s <= 0)
        return;
    printf("bench planner/%s_%s_gap %.4f ratio  # by the formula\n", search, name,
           best->predicted.formula_gap);
    printf("bench planner/%s_%s_sim_gap %.4f ratio  # by simulation, %d candidates\n", search, name,
           best->predicted.gap, best->predicted.candidates);
}

static int run_case(const struct bench_case *c)
{
    struct error err = {0};
    struct job_config *job;
    struct planner_result result = {0};
    char *text = xasprintf("apiVersion: gimbal/v1\nname: bench\n"
                           "model: {family: gpt, layers: %d, hidden: %d, heads: %d, seq: 1024, "
                           "vocab: 50304}\n"
                           "data: {tokens: [x.bin]}\n"
                           "train: {steps: 1, global_batch: %d, lr: 0.001}\n"
                           "plan: {search: %s%s}\n",
                           c->layers, c->hidden, c->heads, c->batch, c->search, c->more);
    struct profile profile =
        profile_analytic(100e12, 1.5e12, 0.5, (struct profile_link){10e-6, 1 / 200e9},
                         (struct profile_link){20e-6, 1 / 25e9});
    struct planner_request request = {.job = NULL};
    struct graph *graph;
    int rc = job_config_parse(text, strlen(text), "bench", &job, &err);
    if (rc == 0)
        rc = planner_graph(job, &graph, &err);
    if (rc < 0) {
        fprintf(stderr, "bench planner: %s\n", err.text);
        return 1;
    }
    request = (struct planner_request){graph, job, make_devices(c, &profile), c->devices,
                                       .hurry = c->hurry};
    double began = now(), cpu_began = cpu_now();
    char line[128];
    rc = planner_run(&request, &result, &err);
    report_work(c, rc == 0 ? plan_print(line, sizeof line, result.best) : err.text, now() - began,
                cpu_now() - cpu_began);
    if (rc == 0)
        report(c, &result);
    fflush(stdout);
    return 0;
}

static int run_cases(const char *name, const char *search)
{
    int failed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if ((name && strcmp(name, cases[i].name) != 0) ||
            (search && strcmp(search, cases[i].search) != 0))
            continue;
        pid_t child = fork();
        if (child == 0)
            _exit(run_case(&cases[i]));
        int status = 1;
        waitpid(child, &status, 0);
        failed |= status != 0;
    }
    return failed;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : NULL;
    bool examples = what && strcmp(what, "examples") == 0;
    int failed = 0;
    memory_keep(); /* as the coordinator does */
    if (!examples)
        failed |= run_cases(what, argc > 2 ? argv[2] : NULL);
    if (examples || !what)
        failed |= examples_run(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
    printf("bench planner done\n");
    return failed;
}
