/* run.c - measures how accurate the planner's predictions are: step times by simulation against
 * step times as they are.
 *
 * For each job this machine is profiled as an executor would profile it. Then a spread of plans,
 * and those that the searches `exact` and `uniform` choose, are predicted as the planner predicts
 * them, and all of them are trained by turns, in rounds. Ranks are threads, each bound to its share
 * of the cores, over the collectives library that the job names.
 *
 * usage: run [JOB|all [plans]]; `plans` adds a line for each plan, and the instructions with the
 * largest errors. */
#include "bench/bench.h"
#include "bench/regret/plans.h"
#include "bench/regret/score.h"
#include "bench/regret/trial.h"
#include "bench/regret/where.h"
#include "common/base/memory.h"
#include "coordinator/planner/check.h"
#include "coordinator/planner/costs/shared_cores.h"
#include "coordinator/planner/costs/simulate.h"
#include "coordinator/planning/alike.h"
#include "worker/hardware/cpuset.h"
#include "worker/probe/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TRIALS_MAX (PLANS_MAX + 2) /* the spread, and what searches choose */
#define MEMORY_BYTES (1ull << 30)  /* of a device */
#define CLASSES_PRINTED 12
/* proc(5): user, nice, system, idle, iowait, irq, softirq, steal. */
#define FIELDS 8
#define IDLE 3
#define IOWAIT 4

static const struct subject {
    const char *name, *fabric;
    int ranks;
    const char *model, *dtype;
    int64_t seq;
    int batch;
} subjects[] = {
    {"gpt_f32", "local", 2, "family: gpt, layers: 4, hidden: 128, heads: 4", "f32", 64, 32},
    {"gpt_bf16", "local", 2, "family: gpt, layers: 4, hidden: 256, heads: 4", "bf16", 64, 8},
    {"gpt_long_f32", "local", 2, "family: gpt, layers: 2, hidden: 128, heads: 4", "f32", 512, 8},
    {"llama_f32", "local", 2, "family: llama, layers: 4, hidden: 192, heads: 6", "f32", 128, 8},
    {"llama_bf16", "local", 2, "family: llama, layers: 3, hidden: 256, heads: 4", "bf16", 128, 8},
    {"gpt_gloo", "gloo", 2, "family: gpt, layers: 4, hidden: 128, heads: 4", "f32", 64, 32},
    {"gpt_gloo_crowd", "gloo", 4, "family: gpt, layers: 4, hidden: 128, heads: 4", "f32", 64, 32},
};
#define SUBJECTS (sizeof subjects / sizeof *subjects)

/* How much of the processor time others take while something is measured: the time account of the
 * processors in /proc/stat, less what this process has used. */
struct busy {
    double elsewhere;       /* share of all cores' time taken by other processes and other guests */
    double load;            /* load average of the last minute */
    double all_s, others_s; /* internal: the counters at busy_begin() */
};

static double own_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void read_processors(double *all_s, double *others_s)
{
    unsigned long long ticks[FIELDS] = {0};
    double all = 0;
    FILE *file = fopen("/proc/stat", "re");
    if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1],
                        &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7]) != FIELDS)
        perror("/proc/stat");
    if (file)
        fclose(file);
    for (int i = 0; i < FIELDS; i++)
        all += (double)ticks[i];
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK);
    *all_s = all * tick_s;
    *others_s = (all - (double)ticks[IDLE] - (double)ticks[IOWAIT]) * tick_s - own_s();
}

static void busy_begin(struct busy *busy)
{
    read_processors(&busy->all_s, &busy->others_s);
}

static void busy_end(struct busy *busy)
{
    double all_s, others_s;
    read_processors(&all_s, &others_s);
    busy->elsewhere = (others_s - busy->others_s) / (all_s - busy->all_s);
    busy->elsewhere = busy->elsewhere > 0 ? busy->elsewhere : 0;
    if (getloadavg(&busy->load, 1) != 1)
        busy->load = 0;
}

/* Of all jobs. */
struct totals {
    double errors[SUBJECTS * TRIALS_MAX], taus[SUBJECTS], exact[SUBJECTS], uniform[SUBJECTS];
    double least_errors[SUBJECTS * TRIALS_MAX], least_taus[SUBJECTS]; /* of the best rounds */
    double memory_error, resident_error;
    size_t plans, jobs;
};

/* A job, and what was predicted and measured of it. */
struct bout {
    const struct subject *subject;
    struct graph *graph;
    struct job_config *job;
    struct profile profiles[TRIAL_RANKS_MAX];
    struct planner_device devices[TRIAL_RANKS_MAX];
    char cores[TRIAL_RANKS_MAX][512];
    struct planner_request request;
    struct planner_result predicted; /* the candidates, in the order of the trials */
    struct trial trials[TRIALS_MAX];
    struct verdict verdicts[TRIALS_MAX], least[TRIALS_MAX]; /* by the median and the best round */
    size_t exact, uniform;                                  /* of the candidates */
};

static void open_job(const struct subject *subject, struct bout *bout)
{
    struct error err;
    char *text = xasprintf("apiVersion: gimbal/v1\nname: regret\n"
                           "model: {%s, seq: %lld, vocab: %d}\n"
                           "data: {tokens: [x.bin]}\n"
                           "train: {steps: 1, global_batch: %d, lr: 0.001, dtype: %s}\n",
                           subject->model, (long long)subject->seq, BENCH_VOCAB, subject->batch,
                           subject->dtype);
    bout->subject = subject;
    bench_need(job_config_parse(text, strlen(text), "regret", &bout->job, &err), &err);
    bench_need(planner_graph(bout->job, &bout->graph, &err), &err);
    free(text);
}

/* As in "0,1,2". */
static void print_set(const cpu_set_t *set, char *out, size_t size)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t cpu = 0; cpu < CPU_SETSIZE && used < size; cpu++)
        if (CPU_ISSET(cpu, set))
            used += (size_t)snprintf(out + used, size - used, used ? ",%zu" : "%zu", cpu);
}

/* As an executor does for the workers of this machine. */
static void measure_machine(struct bout *bout)
{
    static const char *const names[TRIAL_RANKS_MAX] = {"here/0", "here/1", "here/2", "here/3"};
    static const char *const makes[TRIAL_RANKS_MAX] = {"core", "core", "core", "core"};
    int ranks = bout->subject->ranks;
    struct error err;
    cpu_set_t sets[CPUSETS_MAX];
    double share;
    cpuset_share(ranks, sets);
    bench_need(probe_run(sets, ranks, &device_cpu, collectives_find(bout->subject->fabric),
                         bout->profiles, &share, &err),
               &err);
    profiles_level(bout->profiles, makes, (size_t)ranks);
    for (int i = 0; i < ranks; i++) {
        print_set(&sets[i], bout->cores[i], sizeof bout->cores[i]);
        bout->devices[i] =
            (struct planner_device){.name = names[i],
                                    .host = "here",
                                    .cores = bout->cores[i],
                                    .memory_bytes = MEMORY_BYTES,
                                    .profile = profiles_first(bout->profiles, (size_t)i)};
    }
    bout->request = (struct planner_request){bout->graph, bout->job, bout->devices, ranks};
}

static void predict(struct bout *bout, struct plan *plan)
{
    struct shared_cores used;
    struct error err;
    bench_need(shared_cores_order(&bout->request, plan, &used, &err), &err);
    struct planner_request ask = shared_cores_ask(&bout->request, &used);
    bench_need(simulate_programs(&ask, plan, &bout->predicted, &err), &err);
    shared_cores_finish(&used);
}

/* What a search chooses, if it is none of the spread as one more candidate; its index. */
static size_t choose(struct bout *bout, const char *search)
{
    struct planner_result result = {0};
    struct error err;
    free(bout->job->plan.search);
    bout->job->plan.search = xstrdup(search);
    bench_need(planner_run(&bout->request, &result, &err), &err);
    size_t i = 0;
    while (i < bout->predicted.count && !plan_same(bout->predicted.candidates[i].plan, result.best))
        i++;
    if (i == bout->predicted.count)
        predict(bout, plan_copy(result.best));
    candidates_finish(&result);
    return i;
}

static void predict_all(struct bout *bout)
{
    struct plan *plans[PLANS_MAX];
    size_t count = plans_make(bout->graph, bout->subject->ranks, bout->subject->batch, plans);
    for (size_t i = 0; i < count; i++)
        predict(bout, plans[i]);
    bout->exact = choose(bout, "exact");
    bout->uniform = choose(bout, "uniform");
}

static void measure_all(struct bout *bout)
{
    const struct trial_setting setting = {.graph = bout->graph,
                                          .library = collectives_find(bout->subject->fabric),
                                          .ranks = bout->subject->ranks,
                                          .seq = bout->subject->seq};
    for (size_t i = 0; i < bout->predicted.count; i++)
        bout->trials[i].plan = bout->predicted.candidates[i].plan;
    trials_run(&setting, bout->trials, bout->predicted.count);
    for (size_t i = 0; i < bout->predicted.count; i++) {
        double predicted = bout->trials[i].plan->predicted.step_time_s;
        bout->verdicts[i] = (struct verdict){predicted, bout->trials[i].step_s};
        bout->least[i] = (struct verdict){predicted, bout->trials[i].best_step_s};
    }
}

static void print_plan(const struct bout *bout, size_t plan, struct where *where)
{
    struct where_times kinds[WHERE_KINDS] = {0};
    const struct trial *trial = &bout->trials[plan];
    const struct verdict *verdict = &bout->verdicts[plan];
    char line[96];
    where_add(where, &bout->request, trial, kinds);
    printf("#   %-38s %8.3f ms predicted %8.3f measured %+6.1f %%, least %8.3f;",
           plan_print(line, sizeof line, trial->plan), verdict->predicted * 1e3,
           verdict->measured * 1e3, 100 * (verdict->predicted / verdict->measured - 1),
           trial->best_step_s * 1e3);
    for (int kind = 0; kind < WHERE_KINDS; kind++)
        printf(" %s %.2f/%.2f", where_names[kind], kinds[kind].predicted * 1e3,
               kinds[kind].measured * 1e3);
    printf("%s%s%s\n", trial->plan->overlap ? "" : ", one queue",
           plan == bout->exact ? " <- exact" : "", plan == bout->uniform ? " <- uniform" : "");
}

static void print_plans(const struct bout *bout)
{
    struct where where = {0};
    for (int i = 0; i < bout->subject->ranks; i++) {
        char *text = profile_encode(&bout->profiles[i]);
        printf("#   %s %s\n", bout->devices[i].name, text);
        free(text);
    }
    for (size_t i = 0; i < bout->predicted.count; i++)
        print_plan(bout, i, &where);
    where_print(&where, CLASSES_PRINTED);
    where_finish(&where);
}

/* Of the reservation that was predicted: to what was reserved, and to what of it was touched. */
static void judge_memory(const struct bout *bout, struct totals *totals)
{
    for (size_t i = 0; i < bout->predicted.count; i++) {
        const struct trial *trial = &bout->trials[i];
        double predicted = (double)trial->plan->predicted.memory_bytes_max;
        double reserved = (double)trial->reserved_bytes, resident = (double)trial->resident_bytes;
        totals->memory_error = fmax(totals->memory_error, fabs(predicted - reserved) / reserved);
        totals->resident_error =
            fmax(totals->resident_error, fabs(predicted - resident) / resident);
    }
}

static void judge(const struct bout *bout, struct totals *totals, const struct busy *busy)
{
    const char *name = bout->subject->name;
    size_t count = bout->predicted.count, best = 0;
    double errors[TRIALS_MAX];
    char chosen[96], fastest[96];
    for (size_t i = 0; i < count; i++) {
        errors[i] = totals->errors[totals->plans] = score_error(&bout->verdicts[i]);
        totals->least_errors[totals->plans++] = score_error(&bout->least[i]);
        best = bout->verdicts[i].measured < bout->verdicts[best].measured ? i : best;
    }
    totals->least_taus[totals->jobs] = score_tau(bout->least, count);
    double tau = totals->taus[totals->jobs] = score_tau(bout->verdicts, count);
    double exact = totals->exact[totals->jobs] = score_regret(bout->verdicts, count, bout->exact);
    double uniform = totals->uniform[totals->jobs++] =
        score_regret(bout->verdicts, count, bout->uniform);
    double median = bench_median(errors, count);
    printf("bench regret/%s_step_time_error_median %.3f ratio  # of %zu plans; %d ranks, %s\n",
           name, median, count, bout->subject->ranks, bout->subject->fabric);
    printf("bench regret/%s_step_time_error_max %.3f ratio\n", name, errors[count - 1]);
    printf("bench regret/%s_kendall_tau %.3f ratio  # by the best round of each plan %.3f\n", name,
           tau, score_tau(bout->least, count));
    printf("bench regret/%s_exact_regret %.3f ratio  # %s; %s was measured fastest, %.2f ms\n",
           name, exact, plan_print(chosen, sizeof chosen, bout->trials[bout->exact].plan),
           plan_print(fastest, sizeof fastest, bout->trials[best].plan),
           bout->verdicts[best].measured * 1e3);
    printf("bench regret/%s_uniform_regret %.3f ratio  # %s\n", name, uniform,
           plan_print(chosen, sizeof chosen, bout->trials[bout->uniform].plan));
    printf("bench regret/%s_busy_elsewhere %.3f ratio  # of all cores, by other processes and "
           "other machines; load %.1f\n",
           name, busy->elsewhere, busy->load);
    judge_memory(bout, totals);
}

static void close_job(struct bout *bout)
{
    for (size_t i = 0; i < bout->predicted.count; i++)
        trial_finish(&bout->trials[i]);
    candidates_finish(&bout->predicted);
    graph_destroy(bout->graph);
    job_config_destroy(bout->job);
}

static void run_subject(const struct subject *subject, bool plans, struct totals *totals)
{
    struct bout bout = {0};
    struct busy busy;
    if (!collectives_find(subject->fabric)) {
        printf("bench regret/%s_step_time_error_median - skipped %s is not in this build\n",
               subject->name, subject->fabric);
        return;
    }
    open_job(subject, &bout);
    busy_begin(&busy);
    measure_machine(&bout);
    predict_all(&bout);
    measure_all(&bout);
    busy_end(&busy);
    judge(&bout, totals, &busy);
    if (plans)
        print_plans(&bout);
    close_job(&bout);
    fflush(stdout);
}

static void print_totals(struct totals *totals)
{
    double median = bench_median(totals->errors, totals->plans);
    printf("bench regret/step_time_error_median %.3f ratio  # of %zu plans of %zu jobs\n", median,
           totals->plans, totals->jobs);
    printf("bench regret/step_time_error_max %.3f ratio\n", totals->errors[totals->plans - 1]);
    printf(
        "bench regret/least_step_time_error_median %.3f ratio  # to the best round of each plan: "
        "who disturbs does not count\n",
        bench_median(totals->least_errors, totals->plans));
    printf("bench regret/least_step_time_error_max %.3f ratio\n",
           totals->least_errors[totals->plans - 1]);
    printf("bench regret/least_kendall_tau %.3f ratio\n",
           bench_median(totals->least_taus, totals->jobs));
    printf("bench regret/memory_error_max %.5f ratio  # predicted, to what was reserved\n",
           totals->memory_error);
    printf("bench regret/memory_resident_error_max %.3f ratio  # predicted, to what of it was "
           "touched\n",
           totals->resident_error);
    printf("bench regret/kendall_tau %.3f ratio  # the median of the jobs\n",
           bench_median(totals->taus, totals->jobs));
    median = bench_median(totals->exact, totals->jobs);
    printf("bench regret/exact_regret_median %.3f ratio\n", median);
    printf("bench regret/exact_regret_max %.3f ratio\n", totals->exact[totals->jobs - 1]);
    printf("bench regret/uniform_regret_median %.3f ratio\n",
           bench_median(totals->uniform, totals->jobs));
}

int main(int argc, char **argv)
{
    static struct totals totals;
    for (size_t i = 0; i < SUBJECTS; i++)
        if (argc < 2 || strcmp(argv[1], subjects[i].name) == 0 || strcmp(argv[1], "all") == 0)
            run_subject(&subjects[i], argc > 2 && strcmp(argv[2], "plans") == 0, &totals);
    if (totals.jobs == 0) {
        fprintf(stderr, "bench regret: there is no job '%s' here\n", argc > 1 ? argv[1] : "");
        return EXIT_FAILURE;
    }
    print_totals(&totals);
    printf("bench regret done\n");
    return EXIT_SUCCESS;
}
