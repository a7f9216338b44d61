/* run.c - times the planner's searches and compares exact with uniform, on analytic profiles of
 * accelerators with 100 TFLOP/s and 1.5 TB/s, eight per host, with links of 200 GB/s within a host
 * and 25 GB/s between hosts.
 *
 * Wall time is that of planner_run(), search and confirmation together; CPU time is the one to
 * trust on a shared machine. Each case runs in a process of its own, so that its largest resident
 * set can be measured. Cases are named by their devices and layers, replans by the devices before
 * one or eight of them were lost. The jobs of examples/ follow.
 *
 * Each job and search of the examples runs in a process of its own, too, with limited CPU time:
 * after CPU_S seconds the search is told to stop, and the best plan found so far counts; after
 * three times as many its process ends, with no plan. So twelve jobs and five searches take some
 * minutes, and at most a quarter of an hour of CPU time.
 *
 * usage: run [CASE [SEARCH]], or run examples [JOB [SEARCH]], by their names. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/process.h"
#include "common/base/units.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/evaluate.h"
#include "coordinator/planner/planner.h"
#include "coordinator/planning/fleet.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOST_DEVICES 8

static double seconds_of(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

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
        profile_analytic(100e12, 1.5e12, 0.5, (struct hardware_link){10e-6, 1 / 200e9},
                         (struct hardware_link){20e-6, 1 / 25e9});
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
    double began = seconds_of(CLOCK_MONOTONIC), cpu_began = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    char line[128];
    rc = planner_run(&request, &result, &err);
    report_work(c, rc == 0 ? plan_print(line, sizeof line, result.best) : err.text,
                seconds_of(CLOCK_MONOTONIC) - began,
                seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_began);
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

#define CPU_S 5
#define PATH_SIZE 256

static const struct {
    const char *job, *cluster;
} examples[] = {
    {"bert-huge-32", "rtx-titan-8"}, {"bert-huge-48", "rtx-titan-8"},
    {"vit-huge-32", "rtx-titan-8"},  {"vit-huge-48", "rtx-titan-8"},
    {"bert-huge-32", "lab-mixed"},   {"gpt3-1.3b", "a100-2x8"},
    {"gpt3-2.7b", "a100-2x8"},       {"gpt3-6.7b", "a100-2x8"},
    {"llama-7b", "a100-2x8"},        {"gpt3-13b", "a100-2x8"},
    {"llama2-70b", "h100-64x8"},     {"gpt3-175b", "h100-64x8"},
};
/* exact first: the others are compared with it. */
static const char *const compared[] = {"exact", "bmw", "tensoropt", "autoddl", "uniform"};
#define COMPARED (sizeof compared / sizeof *compared)

/* What a search's process tells; step_s 0: it has no plan. */
struct told {
    double step_s, formula_s, wall_s, cpu_s, balance_time, balance_memory;
    double gap; /* by the formula; of exact alone */
    uint64_t memory_bytes;
    bool stopped;
    char referee[16];
    char words[256]; /* the plan, or why there is none */
};

static atomic_bool stop;

static void stop_now(int signal)
{
    (void)signal;
    atomic_store_explicit(&stop, true, memory_order_relaxed);
}

static void bound_time(void)
{
    const struct itimerval after = {.it_value = {.tv_sec = CPU_S}};
    const rlim_t end_s = (rlim_t)3 * CPU_S;
    const struct rlimit end = {end_s, end_s};
    signal(SIGPROF, stop_now);
    setitimer(ITIMER_PROF, &after, NULL);
    setrlimit(RLIMIT_CPU, &end);
}

/* The shortest that fits of what there is; NULL: none. */
static const struct plan *find_best(const struct planner_result *result)
{
    const struct plan *best = NULL;
    for (size_t i = 0; i < result->count; i++) {
        const struct plan *plan = result->candidates[i].plan;
        if (result->candidates[i].fits &&
            (!best || plan->predicted.step_time_s < best->predicted.step_time_s))
            best = plan;
    }
    return best;
}

static void tell_plan(const struct planner_request *request, const struct plan *plan,
                      struct told *told)
{
    struct costs costs;
    double bound_s, seconds = 0, longest = 0, bytes = 0, largest = 0;
    bool fits;
    told->step_s = plan->predicted.step_time_s;
    told->memory_bytes = plan->predicted.memory_bytes_max;
    told->gap = plan->predicted.formula_gap;
    strcpy(told->referee, plan->predicted.referee);
    plan_print(told->words, sizeof told->words, plan);
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        seconds += stage->time_s;
        bytes += (double)stage->memory_bytes;
        longest = fmax(longest, stage->time_s);
        largest = fmax(largest, (double)stage->memory_bytes);
    }
    told->balance_time = 1 - longest / seconds;
    told->balance_memory = 1 - largest / bytes;
    if (costs_init(&costs, request, NULL) == 0)
        evaluate_plan(&costs, plan, &told->formula_s, &bound_s, &fits, NULL);
    costs_finish(&costs);
}

/* Job and cluster, as the search is asked. What is read stays until the process ends. */
static int read_example(size_t example, struct planner_request *request, struct error *err)
{
    static struct inventory inventory;
    static struct fleet fleet;
    struct job_config *job;
    struct graph *graph;
    char path[PATH_SIZE], *text;
    snprintf(path, sizeof path, EXAMPLES "/jobs/%s.yaml", examples[example].job);
    int rc = job_config_load(path, &job, err);
    if (rc == 0)
        rc = planner_graph(job, &graph, err);
    snprintf(path, sizeof path, EXAMPLES "/clusters/%s.yaml", examples[example].cluster);
    if (rc == 0)
        rc = file_read(path, &text, err);
    if (rc == 0)
        rc = inventory_parse(text, strlen(text), path, &inventory, err);
    if (rc == 0)
        rc = fleet_open(&fleet, inventory.views, inventory.view_count, PLANNING_ANALYTIC, err);
    if (rc < 0)
        return rc;
    *request = (struct planner_request){.graph = graph,
                                        .job = job,
                                        .devices = fleet.devices,
                                        .device_count = (int)fleet.count,
                                        .stop = &stop};
    return 0;
}

/* A process of its own: nothing is freed. */
static int search_example(size_t example, const char *search, struct told *told)
{
    struct planner_request request;
    struct planner_result result;
    struct job_config job;
    struct error err = {0};
    if (read_example(example, &request, &err) < 0) {
        fprintf(stderr, "bench planner: %s\n", err.text);
        return 1;
    }
    job = *request.job;
    job.plan.search = (char *)search;
    request.job = &job;
    bound_time();
    double wall_s = seconds_of(CLOCK_MONOTONIC), cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    int rc = planner_run(&request, &result, &err);
    told->wall_s = seconds_of(CLOCK_MONOTONIC) - wall_s;
    told->cpu_s = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    told->stopped = rc == -ECANCELED;
    const struct plan *best = find_best(&result);
    if (best)
        tell_plan(&request, best, told);
    else
        snprintf(told->words, sizeof told->words, "%s",
                 told->stopped ? "no plan yet when it was stopped" : err.text);
    return 0;
}

/* false: it could not be read. */
static bool ask(size_t example, const char *search, struct told *told)
{
    int ends[2], status = 0;
    *told = (struct told){.words = "no plan within three times the bound"};
    if (pipe(ends) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        int code = search_example(example, search, told);
        bool sent = write(ends[1], told, sizeof *told) == (ssize_t)sizeof *told;
        _exit(code || !sent);
    }
    close(ends[1]);
    struct told heard;
    if (read(ends[0], &heard, sizeof heard) == (ssize_t)sizeof heard)
        *told = heard;
    close(ends[0]);
    waitpid(child, &status, 0);
    return !WIFEXITED(status) || WEXITSTATUS(status) == 0;
}

static void print_told(const char *name, const struct told *told, const struct told *exact)
{
    char memory[32];
    if (told->step_s == 0) {
        printf("bench planner/%s_step_s - skipped %s\n", name, told->words);
        return;
    }
    printf("bench planner/%s_step_s %.4f s  # by %s; by the formula %.4f; %s; a_t %.2f, a_m %.2f; "
           "%.2f s of search%s, %.2f of CPU; %s\n",
           name, told->step_s, told->referee, told->formula_s,
           units_print_bytes(memory, sizeof memory, (double)told->memory_bytes), told->balance_time,
           told->balance_memory, told->wall_s, told->stopped ? ", stopped" : "", told->cpu_s,
           told->words);
    if (told == exact)
        printf("bench planner/%s_gap %.4f ratio  # by the formula\n", name, told->gap);
    else if (exact->step_s > 0)
        printf("bench planner/%s_vs_exact %.4f ratio  # by the formula; of the steps %.4f\n", name,
               told->formula_s / exact->formula_s, told->step_s / exact->step_s);
}

/* *gap: of exact; infinity: it has no plan. */
static bool run_example(size_t example, const char *search, double *gap)
{
    struct told told[COMPARED] = {0};
    bool done = true;
    for (size_t s = 0; s < COMPARED; s++) {
        char name[128];
        if (search && strcmp(search, compared[s]) != 0)
            continue;
        snprintf(name, sizeof name, "%s_%s_on_%s", compared[s], examples[example].job,
                 examples[example].cluster);
        done = ask(example, compared[s], &told[s]) && done;
        print_told(name, &told[s], &told[0]);
        fflush(stdout);
    }
    *gap = told[0].step_s > 0 ? told[0].gap : INFINITY;
    return done;
}

static int by_size(const void *first, const void *second)
{
    double a = *(const double *)first, b = *(const double *)second;
    return (a > b) - (a < b);
}

/* How far from the best plan exact may be: sorts the gaps. */
static void print_gaps(double *gaps, size_t count)
{
    qsort(gaps, count, sizeof *gaps, by_size);
    double median = (gaps[(count - 1) / 2] + gaps[count / 2]) / 2;
    printf("bench planner/exact_examples_gap_median %.4f ratio  # of %zu:", median, count);
    for (size_t i = 0; i < count; i++)
        printf(" %.4f", gaps[i]);
    printf("\nbench planner/exact_examples_gap_worst %.4f ratio\n", gaps[count - 1]);
}

/* Run every search on the jobs of examples/, each with a cluster of examples/ of fitting size;
 * `job` and `search` limit the run to one of each, by name; NULL: all. Returns 0, or 1 when
 * something failed. */
static int examples_run(const char *job, const char *search)
{
    double gaps[sizeof examples / sizeof *examples];
    size_t count = 0;
    bool done = true;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        if (!job || strcmp(job, examples[i].job) == 0)
            done = run_example(i, search, &gaps[count++]) && done;
    if (count > 0 && (!search || strcmp(search, compared[0]) == 0))
        print_gaps(gaps, count);
    return done ? 0 : 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : NULL;
    bool only_examples = what && strcmp(what, "examples") == 0;
    int failed = 0;
    process_keep_memory(); /* as the coordinator does */
    if (!only_examples)
        failed |= run_cases(what, argc > 2 ? argv[2] : NULL);
    if (only_examples || !what)
        failed |= examples_run(argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
    printf("bench planner done\n");
    return failed;
}
