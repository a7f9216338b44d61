/* kills.c - death to the next finished step: a coordinator and four workers on this machine train
 * the demo's model, and at random moments an executor or a worker with its executors is killed; a
 * worker is started again. Times are those of the coordinator's events; detection counts from the
 * kill. A restart from the newest checkpoint, of every 20 steps, is measured in the same way. */
#include "bench/recovery/recovery.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/rpc/message.h"
#include "coordinator/cli/cluster.h"
#include "coordinator/cli/exit.h"
#include "coordinator/cli/history.h"
#include "coordinator/cli/submission.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WORKERS 4
#define DELAY_MS_MOST 500 /* of a kill, once training goes on */
#define NAP_MS 10

enum phase { DETECT, QUIESCE, WAIT, PLAN, START, MOVE, STEP, WHOLE, LOST, PHASES };

static const struct {
    const char *name, *key, *unit;
    double scale;
} phases[PHASES] = {
    [DETECT] = {"detect", NULL, "ms", 1},
    [QUIESCE] = {"quiesce", "quiesce_s", "ms", 1e3},
    [WAIT] = {"wait_for_devices", "wait_s", "ms", 1e3},
    [PLAN] = {"plan", "plan_s", "ms", 1e3},
    [START] = {"start", "start_s", "ms", 1e3},
    [MOVE] = {"of_start_move", "move_s", "ms", 1e3},
    [STEP] = {"first_step", "step_s", "ms", 1e3},
    [WHOLE] = {"death_to_step", NULL, "ms", 1},
    [LOST] = {"steps_lost", "steps_lost", "steps", 1},
};

struct kills {
    struct cluster cluster;
    struct client client;
    struct submission submission;
    bool replans;
    int wanted, count;
    uint64_t draws;
    char victim[32]; /* whose worker or executor was killed; "": nobody is dead */
    bool worker;     /* ... the worker itself */
    uint64_t killed_ms, noticed_ms;
    uint64_t step; /* that was reached then */
    double (*measured)[PHASES];
};

static void need(int code, const struct error *err)
{
    if (code == EXIT_DONE)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(EXIT_FAILURE);
}

static uint64_t now_unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void nap(uint64_t ms)
{
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

static uint64_t draw(struct kills *kills, uint64_t bound)
{
    return random_below(7, 0, kills->draws++, bound);
}

/* Yours, by message_free. */
static Gimbal__GetJobReply *get_job(struct kills *kills)
{
    Gimbal__GetJobRequest request = GIMBAL__GET_JOB_REQUEST__INIT;
    ProtobufCMessage *message;
    struct error err;
    request.job = kills->submission.job;
    need(client_call(&kills->client, COORDINATOR_GET_JOB, &request.base, 0, &message, &err), &err);
    return (Gimbal__GetJobReply *)message;
}

/* A job that breaks twice behind the same step is taken for a bad one: let it get further. The
 * node of one of its ranks is the next victim. */
static void choose(struct kills *kills)
{
    for (;; nap(NAP_MS)) {
        Gimbal__GetJobReply *reply = get_job(kills);
        const Gimbal__JobStatus *status = reply->status;
        bool further = status->step > kills->step + 1 && status->n_devices > 1;
        if (further) {
            const char *device = status->devices[draw(kills, status->n_devices)];
            snprintf(kills->victim, sizeof kills->victim, "%.*s", (int)strcspn(device, "/"),
                     device);
            kills->step = status->step;
        }
        message_free(&reply->base);
        if (further)
            return;
    }
}

static pid_t executor_of(const struct kills *kills)
{
    char path[64];
    int worker = (int)cluster_worker_pid(&kills->cluster, kills->victim), executor = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", worker, worker);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &executor) != 1)
        executor = 0;
    if (file)
        fclose(file);
    return executor;
}

/* Every other victim is a worker. */
static void strike(struct kills *kills)
{
    choose(kills);
    nap(draw(kills, DELAY_MS_MOST));
    kills->worker = kills->count % 2 == 1;
    kills->noticed_ms = 0;
    pid_t executor = executor_of(kills);
    kills->killed_ms = now_unix_ms();
    if (kills->worker)
        cluster_kill(&kills->cluster, kills->victim);
    else if (executor > 0)
        kill(executor, SIGKILL);
}

static double since_kill(const struct kills *kills, uint64_t unix_ms)
{
    return unix_ms > kills->killed_ms ? (double)(unix_ms - kills->killed_ms) : 0;
}

static void measure(struct kills *kills, const Gimbal__Event *event)
{
    double *measured = kills->measured[kills->count++];
    json_t *json = json_loads(event->json, 0, NULL);
    for (int phase = 0; phase < PHASES; phase++)
        if (phases[phase].key)
            measured[phase] =
                phases[phase].scale * json_number_value(json_object_get(json, phases[phase].key));
    measured[DETECT] = since_kill(kills, kills->noticed_ms);
    measured[WHOLE] = since_kill(kills, event->unix_ms);
    json_decref(json);
}

static bool is_kind(const Gimbal__Event *event, const char *replan, const char *restart)
{
    return strcmp(event->kind, replan) == 0 || strcmp(event->kind, restart) == 0;
}

/* A worker that was killed comes back before anything else happens. */
static bool take(void *data, const Gimbal__Event *event)
{
    struct kills *kills = data;
    if (kills->victim[0] && is_kind(event, "job-replanning", "job-failing") && !kills->noticed_ms)
        kills->noticed_ms = event->unix_ms;
    if (is_kind(event, "job-failed", "job-cancelled")) {
        fprintf(stderr, "%s\n", event->text);
        exit(EXIT_FAILURE);
    }
    bool next = !kills->victim[0] && strcmp(event->kind, "job-running") == 0;
    if (kills->victim[0] && is_kind(event, "job-replanned", "job-restarted")) {
        measure(kills, event);
        next = !kills->worker;
        if (kills->worker)
            cluster_revive(&kills->cluster, kills->victim);
    }
    if (kills->victim[0] && kills->worker && strcmp(event->kind, "node-joined") == 0)
        next = true;
    if (next && kills->count < kills->wanted)
        strike(kills);
    return kills->count == kills->wanted;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print(const struct kills *kills)
{
    const char *what = kills->replans ? "replan" : "restart";
    double *values = xcalloc((size_t)kills->count, sizeof *values);
    for (int phase = 0; phase < PHASES; phase++) {
        for (int i = 0; i < kills->count; i++)
            values[i] = kills->measured[i][phase];
        qsort(values, (size_t)kills->count, sizeof *values, ascending);
        printf("bench recovery/%s_%s_median %.1f %s  # of %d kills, half of them of a worker%s\n",
               what, phases[phase].name, values[kills->count / 2], phases[phase].unit, kills->count,
               phase == WHOLE && kills->replans ? "; the bar is 500" : "");
        printf("bench recovery/%s_%s_worst %.1f %s%s\n", what, phases[phase].name,
               values[kills->count - 1], phases[phase].unit,
               phase == WHOLE && kills->replans ? "  # the bar is 1500" : "");
    }
    free(values);
}

static char *write_job(const struct kills *kills)
{
    return xasprintf("apiVersion: gimbal/v1\n"
                     "name: recovery\n"
                     "model: {family: gpt, layers: 4, hidden: 128, heads: 4, seq: 64}\n"
                     "data: {text: [/usr/share/games/fortunes/riddles]}\n"
                     "train: {steps: 1000000, global_batch: 32, lr: 2.0e-3, warmup: 50}\n"
                     "devices: {min: 2, max: %d}\n"
                     "plan: {pin: {pp: 1, tp: 1}}\n"
                     "elastic: {max_restarts: 1000000, replan: %s}\n"
                     "checkpoint: {dir: '%s/checkpoints', every: 20, keep: 2}\n",
                     WORKERS, kills->replans ? "true" : "false", kills->cluster.folder);
}

static void run(bool replans, int wanted)
{
    struct kills kills = {.replans = replans, .wanted = wanted};
    struct common common = {0};
    struct error err;
    char *left;
    if (wanted == 0)
        return;
    kills.measured = xcalloc((size_t)wanted, sizeof *kills.measured);
    need(cluster_start(WORKERS, -1, &kills.cluster, &err), &err);
    common.address = kills.cluster.address;
    need(client_open(&common, &kills.client, &err), &err);
    char *yaml = write_job(&kills);
    need(submission_send(&kills.client, "recovery", yaml, NULL, false, &kills.submission, &err),
         &err);
    const struct history_options options = {
        .client = &kills.client, .signals = -1, .end_fd = kills.cluster.ended};
    need(history_follow(&options, take, &kills, &err), &err);
    print(&kills);
    client_close(&kills.client);
    cluster_stop(&kills.cluster, false, &left);
    submission_finish(&kills.submission);
    free(left);
    free(yaml);
    free(kills.measured);
}

void bench_kills(int replans, int restarts)
{
    setenv("GIMBAL_COORDINATOR", COORDINATOR, 0);
    setenv("GIMBAL_WORKER", WORKER, 0);
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 0);
    unsetenv("GIMBAL_TLS");
    run(true, replans);
    run(false, restarts);
}
