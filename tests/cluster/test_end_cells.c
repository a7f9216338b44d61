/* test_end_cells.c - real processes: every fault that may befall the end of a run, at its last
 * steps, right behind them, and in the save that follows, under plans whose state is on two nodes
 * or on one, with and without checkpoints. None costs more than docs/recovery.md says.
 *
 * A cell is one of each. All there are come in an order that is drawn, one after another, and then
 * in another order: so of any number of cells every pair occurs as often as it can. A run does a
 * few; tests/soak/ends does as many as it is told, in several clusters at a time. */
#include "common/base/random.h"
#include "tests/cluster/trio.h"
#include "tests/support/suite.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CELLS 4 /* of a run that is no soak */
#define STEPS 60
#define LAST_STEPS 20
#define EVENT(kind) "\"event\":\"" kind "\""

enum place { AT_LAST_STEPS, AT_THE_END, IN_THE_SAVE, PLACES };
static const char *const place_names[PLACES] = {"last-steps", "end", "save"};

enum means { STOP, CUT, KILL_WORKER, KILL_EXECUTOR, KILL_COORDINATOR };
static const struct fault {
    const char *name;
    enum means means;
    int for_s;
} faults[] = {
    {"stopped-2s", STOP, 2},
    {"stopped-7s", STOP, 7},
    {"stopped-10s", STOP, 10},
    {"cut-off-7s", CUT, 7},
    {"worker-killed", KILL_WORKER, 0},
    {"executor-killed", KILL_EXECUTOR, 0},
    {"coordinator-killed", KILL_COORDINATOR, 0},
};
#define FAULTS (sizeof faults / sizeof *faults)

/* lost_max: steps that the loss of a node may cost; that of a process costs none. */
static const struct division {
    const char *name, *plan;
    int lost_max;
} divisions[] = {
    {"dp2", "pin: {dp: 2, pp: 1, tp: 1}, forbid: {zero: [1, 2, 3]}", 0},
    {"pp2", "pin: {dp: 1, pp: 2, tp: 1}", 1},
    {"zero2", "pin: {dp: 2, pp: 1, tp: 1}, forbid: {zero: [0, 1, 3]}", 1},
};
#define DIVISIONS (sizeof divisions / sizeof *divisions)

#define COMBINATIONS (PLACES * FAULTS * DIVISIONS * 2)

struct cell {
    enum place place;
    const struct fault *fault;
    const struct division *division;
    bool saves;
};

static const char *const drills[] = {"--drills", "true", NULL};
static double undisturbed[DIVISIONS]; /* 0: not known yet */

static size_t draw(uint64_t stream, uint64_t number, size_t bound)
{
    return (size_t)random_below(test_seed(), stream, number, bound);
}

/* In round r of all combinations, a permutation of them that is drawn. */
static struct cell draw_cell(size_t number)
{
    size_t order[COMBINATIONS], round = number / COMBINATIONS;
    for (size_t i = 0; i < COMBINATIONS; i++) {
        size_t at = draw(round, i, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
    size_t of = order[number % COMBINATIONS];
    return (struct cell){
        .place = (enum place)(of % PLACES),
        .fault = &faults[of / PLACES % FAULTS],
        .division = &divisions[of / PLACES / FAULTS % DIVISIONS],
        .saves = of / PLACES / FAULTS / DIVISIONS > 0,
    };
}

static void await(const char *words)
{
    ck_assert_msg(command_pass(&trio.job, words), "no %s in %s", words, command_last(&trio.job));
}

/* Steps take long enough for a fault to hit one of the last; the end takes its time, too. */
static void write_job(const struct cell *cell)
{
    FILE *file = fopen(trio.job_path, "we");
    ck_assert_ptr_nonnull(file);
    fprintf(file,
            "apiVersion: gimbal/v1\n"
            "name: ends\n"
            "model: {family: gpt, layers: 2, hidden: 64, heads: 4, seq: 64}\n"
            "data: {text: ['%s/text'], tokenizer: bytes}\n"
            "train: {steps: %d, global_batch: 16, lr: 0.001}\n"
            "devices: {min: 2, max: 2}\n"
            "plan: {%s}\n"
            "elastic: {copy_every: 1, copy_share: 0}\n"
            "eval: {every: %d, holdout: 0.3, sample: 2000}\n",
            trio.folder, STEPS, cell->division->plan, STEPS);
    if (cell->saves)
        fprintf(file, "checkpoint: {dir: '%s', every: 20}\n", trio.checkpoints);
    ck_assert_int_eq(fclose(file), 0);
}

/* The number behind the next such key, once its line is there. */
static int await_number(const char *key)
{
    await(key);
    while (!strpbrk(trio.job.out, ",}"))
        ck_assert(command_await(&trio.job, "\n"));
    return atoi(trio.job.out);
}

/* Returns the step that it has reached. */
static int await_place(const struct cell *cell)
{
    int step = 0, wanted = cell->place == AT_LAST_STEPS ? STEPS - LAST_STEPS : STEPS;
    while (step < wanted) {
        await(EVENT("step"));
        step = await_number("\"step\":");
    }
    if (cell->place == IN_THE_SAVE)
        await(EVENT("evaluation"));
    return step;
}

/* The nodes with a rank; returns their number. */
static int find_ranked(int ranked[TRIO_NODES])
{
    int count = 0;
    for (int node = 0; node < TRIO_NODES; node++)
        if (command_child(trio.workers[node].pid) > 0)
            ranked[count++] = node;
    return count;
}

static void signal_child(int node, int signal)
{
    pid_t executor = command_child(trio.workers[node].pid);
    if (executor > 0)
        kill(executor, signal);
}

static void cut_off(int node, int for_s)
{
    static struct command drill;
    char name[16], time[16];
    snprintf(name, sizeof name, "node-%c", 'a' + node);
    snprintf(time, sizeof time, "%ds", for_s);
    command_start(&drill, (const char *const[]){GIMBAL, "drill", trio.name, "cut-link", "--node",
                                                name, "--for", time, NULL});
    command_finish(&drill); /* a job that has ended by then cannot be hit any more */
}

static void strike(const struct cell *cell, size_t number)
{
    int ranked[TRIO_NODES], count = find_ranked(ranked);
    if (count == 0)
        return; /* it was faster: there is nobody left to be hit */
    int victim = ranked[draw(1000, number, (size_t)count)];
    const struct fault *fault = cell->fault;
    switch (fault->means) {
    case STOP:
        ck_assert_int_eq(kill(trio.workers[victim].pid, SIGSTOP), 0);
        poll(NULL, 0, fault->for_s * 1000);
        ck_assert_int_eq(kill(trio.workers[victim].pid, SIGCONT), 0);
        break;
    case CUT:
        cut_off(victim, fault->for_s);
        break;
    case KILL_WORKER:
        ck_assert_int_eq(kill(trio.workers[victim].pid, SIGKILL), 0);
        trio_collect_worker(victim, 128 + SIGKILL);
        trio_start_worker(victim);
        break;
    case KILL_EXECUTOR:
        signal_child(victim, SIGKILL);
        break;
    case KILL_COORDINATOR:
        cluster_kill(&trio.cluster);
        cluster_restart(&trio.cluster, drills);
        break;
    }
}

/* No step is trained again but those: each that is told of is behind the one before. */
static void check_steps(int reached, int most)
{
    for (const char *at = trio.job.out; (at = strstr(at, EVENT("step"))); at++) {
        const char *number = strstr(at, "\"step\":");
        int step = number ? atoi(strchr(number, ':') + 1) : reached;
        ck_assert_msg(step >= reached - most, "step %d follows on step %d", step, reached);
        reached = step > reached ? step : reached;
    }
}

/* What was lost, in all that is left to read: as the coordinator says, and as the steps show. */
static void check_lost(const struct cell *cell, int reached)
{
    bool node = cell->fault->means <= KILL_WORKER;
    int most = node ? cell->division->lost_max : 0;
    check_steps(reached, most);
    for (const char *at = trio.job.out; (at = strstr(at, EVENT("job-replanned"))); at++) {
        const char *lost = strstr(at, "\"steps_lost\":");
        ck_assert_msg(lost && atoi(strchr(lost, ':') + 1) <= most, "%.*s", (int)strcspn(at, "\n"),
                      at);
    }
    ck_assert_ptr_null(strstr(trio.job.out, "begins at its first step again"));
    ck_assert_ptr_null(strstr(trio.job.out, "from the disk"));
}

static void check_saved(void)
{
    static struct command list;
    char words[32];
    command_start(
        &list, (const char *const[]){GIMBAL, "checkpoint", "list", trio.name, "-o", "json", NULL});
    ck_assert_int_eq(command_finish(&list), 0);
    snprintf(words, sizeof words, "step-%d.", STEPS);
    ck_assert_msg(strstr(list.out, words) != NULL, "%s", list.out);
}

/* Each step is in the curve, once and in order. What a node had not told when it was lost comes
 * when it is back. */
static void check_curve(void)
{
    static struct command curve;
    int next = 0;
    command_start(&curve, (const char *const[]){GIMBAL, "curve", trio.name, "-o", "jsonl", NULL});
    ck_assert_int_eq(command_finish(&curve), 0);
    for (const char *at = curve.out; (at = strstr(at, "\"step\":")); at++)
        ck_assert_msg(atoi(strchr(at, ':') + 1) == ++next, "no step %d in %s", next, curve.out);
    ck_assert_int_eq(next, STEPS);
    ck_assert_msg(!strstr(curve.out, "\"loss\":null"), "%s", curve.out);
}

/* The loss that the job itself tells, whoever was heard of. */
static double read_loss(void)
{
    static struct command jobs;
    size_t i;
    json_t *job;
    double loss = NAN;
    command_start(&jobs, (const char *const[]){GIMBAL, "jobs", "-a", "-o", "json", NULL});
    ck_assert_int_eq(command_finish(&jobs), 0);
    json_t *list = json_loads(jobs.out, 0, NULL);
    json_array_foreach(json_object_get(list, "jobs"), i, job)
    {
        if (strcmp(json_string_value(json_object_get(job, "job")), trio.name) == 0)
            loss = json_number_value(json_object_get(job, "loss"));
    }
    json_decref(list);
    return loss;
}

static double finish(void)
{
    int status = command_finish(&trio.job);
    ck_assert_msg(status == 0, "%d: %s", status, command_last(&trio.job));
    return read_loss();
}

static double know_undisturbed(const struct cell *cell)
{
    double *known = &undisturbed[cell->division - divisions];
    if (*known > 0)
        return *known;
    write_job(&(struct cell){.division = cell->division});
    trio_submit();
    return *known = finish();
}

static void run_cell(size_t number)
{
    const struct cell cell = draw_cell(number);
    double expected = know_undisturbed(&cell);
    printf("%zu: %s at %s of %s, %s checkpoints\n", number, cell.fault->name,
           place_names[cell.place], cell.division->name, cell.saves ? "with" : "without");
    fflush(stdout);
    write_job(&cell);
    trio_submit();
    int reached = await_place(&cell);
    strike(&cell, number);
    double loss = finish();
    ck_assert_msg(fabs(loss - expected) < TRIO_LOSS_LIMIT, "the loss is %g, undisturbed %g", loss,
                  expected);
    check_lost(&cell, reached);
    if (cell.saves)
        check_saved();
    trio_await_all();
    check_curve();
}

static size_t first, count;

START_TEST(a_fault_at_the_end_costs_no_more_than_at_any_step)
{
    for (size_t number = first; number < first + count; number++)
        run_cell(number);
}
END_TEST

static void set_up(void)
{
    trio_start_with(drills);
}

/* Without arguments some cells are drawn; otherwise from number FIRST on, COUNT of them. */
int main(int argc, char **argv)
{
    TCase *tcase = tcase_create("end cells");
    count = (size_t)test_share(CELLS);
    first = draw(2000, 0, COMBINATIONS);
    if (argc == 3) {
        first = (size_t)strtoul(argv[1], NULL, 10);
        count = (size_t)strtoul(argv[2], NULL, 10);
    }
    tcase_add_checked_fixture(tcase, set_up, trio_stop);
    tcase_set_timeout(tcase, 60 + 60 * (double)count);
    tcase_add_test(tcase, a_fault_at_the_end_costs_no_more_than_at_any_step);
    return suite_run("end_cells", tcase, NULL);
}
