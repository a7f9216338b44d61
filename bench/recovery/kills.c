/* kills.c - death to the next finished step: a coordinator and four workers on this machine train
 * the demo's model, and at random moments an executor or a worker with its executors is killed, in
 * turn; a worker is started again. Times are those of the coordinator's events; detection counts
 * from the kill. A restart of everything from the newest checkpoint, of every 20 steps, is measured
 * in the same way.
 *
 * A job that breaks by itself twice behind the same step is taken for a bad one and fails; so who
 * is killed next is chosen when the job was heard of further on. */
#include "bench/recovery/figures.h"
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
#define START_S 60 /* that a cluster may take until its job trains */
#define KILL_S 20  /* that one kill may take, with all that follows */

/* Keys of the event's own figures, in seconds but for the steps. */
static const char *const keys[PHASES] = {
    [QUIESCE] = "quiesce_s", [WAIT] = "wait_s", [PLAN] = "plan_s",       [START] = "start_s",
    [PREPARE] = "prepare_s", [MOVE] = "move_s", [FIRST_STEP] = "step_s", [LOST] = "steps_lost",
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
    uint64_t step;  /* that was reached then */
    double usual_s; /* a step took before */
    struct kill *kills;
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

/* Where the job stands that does not go on. */
static void give_up(struct kills *kills)
{
    Gimbal__GetJobReply *reply = get_job(kills);
    fprintf(stderr, "after %d of %d kills the job is in state %d at step %llu: %s\n", kills->count,
            kills->wanted, (int)reply->status->state, (unsigned long long)reply->status->step,
            reply->status->reason);
    message_free(&reply->base);
    exit(EXIT_FAILURE);
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

/* The node of one of the ranks, if the job trains, and has got further; false: not yet. */
static bool choose(struct kills *kills, uint64_t behind)
{
    Gimbal__GetJobReply *reply = get_job(kills);
    const Gimbal__JobStatus *status = reply->status;
    bool trains = status->state == GIMBAL__JOB_STATUS__STATE__RUNNING;
    if (status->finished_unix_ms) {
        fprintf(stderr, "the job has ended after %d kills: %s\n", kills->count, status->reason);
        exit(EXIT_FAILURE);
    }
    trains = trains && status->step > behind && status->n_devices > 1;
    if (trains) {
        const char *device = status->devices[draw(kills, status->n_devices)];
        snprintf(kills->victim, sizeof kills->victim, "%.*s", (int)strcspn(device, "/"), device);
        kills->step = status->step;
        kills->usual_s = status->step_time_s;
    }
    message_free(&reply->base);
    return trains;
}

/* Every other victim is a worker. The job may have moved meanwhile, onto devices that came back. */
static void strike(struct kills *kills)
{
    pid_t executor = 0;
    uint64_t behind = kills->step + 1, until_ms = now_unix_ms() + KILL_S * 1000;
    while (executor <= 0) {
        while (!choose(kills, behind)) {
            nap(NAP_MS);
            if (now_unix_ms() > until_ms)
                give_up(kills);
        }
        nap(draw(kills, DELAY_MS_MOST));
        executor = choose(kills, behind) ? executor_of(kills) : 0;
    }
    kills->worker = kills->count % 2 == 1;
    kills->noticed_ms = 0;
    kills->killed_ms = now_unix_ms();
    if (kills->worker)
        cluster_kill(&kills->cluster, kills->victim);
    else
        kill(executor, SIGKILL);
}

static double since_kill(const struct kills *kills, uint64_t unix_ms)
{
    return unix_ms > kills->killed_ms ? (double)(unix_ms - kills->killed_ms) * 1e-3 : 0;
}

static void measure(struct kills *kills, const Gimbal__Event *event)
{
    struct kill *kill = &kills->kills[kills->count++];
    json_t *json = json_loads(event->json, 0, NULL);
    *kill = (struct kill){.worker = kills->worker};
    for (int phase = 0; phase < PHASES; phase++)
        if (keys[phase])
            kill->of[phase] = json_number_value(json_object_get(json, keys[phase]));
    kill->of[DETECT] = since_kill(kills, kills->noticed_ms);
    kill->of[WHOLE] = since_kill(kills, event->unix_ms);
    kill->of[USUAL_STEP] = kills->usual_s;
    kill->of[CAUGHT_UP] = kill->of[WHOLE] + kill->of[LOST] * kills->usual_s;
    json_decref(json);
}

static bool is_one_of(const Gimbal__Event *event, const char *a, const char *b, const char *c)
{
    return strcmp(event->kind, a) == 0 || strcmp(event->kind, b) == 0 ||
           strcmp(event->kind, c) == 0;
}

/* A worker that was killed comes back before anything else happens. What the coordinator told
 * before it had heard of the kill is of something else, as a move to a node that came back. */
static bool take(void *data, const Gimbal__Event *event)
{
    struct kills *kills = data;
    bool killed = kills->victim[0] && event->unix_ms >= kills->killed_ms;
    if (is_one_of(event, "job-failed", "job-cancelled", "job-done")) {
        fprintf(stderr, "%s\n", event->text);
        exit(EXIT_FAILURE);
    }
    if (killed && !kills->noticed_ms &&
        is_one_of(event, "job-replanning", "job-failing", "node-lost"))
        kills->noticed_ms = event->unix_ms;
    bool next = !kills->victim[0] && strcmp(event->kind, "job-running") == 0;
    if (killed && kills->noticed_ms &&
        is_one_of(event, "job-replanned", "job-restarted", "job-restarted")) {
        measure(kills, event);
        kills->killed_ms = UINT64_MAX;
        next = !kills->worker;
        if (kills->worker)
            cluster_revive(&kills->cluster, kills->victim);
    }
    if (kills->killed_ms == UINT64_MAX && kills->worker && strcmp(event->kind, "node-joined") == 0)
        next = true;
    if (next && kills->count < kills->wanted)
        strike(kills);
    return kills->count == kills->wanted;
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
    kills.kills = xcalloc((size_t)wanted, sizeof *kills.kills);
    need(cluster_start(WORKERS, -1, &kills.cluster, &err), &err);
    common.address = kills.cluster.address;
    need(client_open(&common, &kills.client, &err), &err);
    char *yaml = write_job(&kills);
    need(submission_send(&kills.client, "recovery", yaml, NULL, false, &kills.submission, &err),
         &err);
    const struct history_options options = {
        .client = &kills.client,
        .signals = -1,
        .end_fd = kills.cluster.ended,
        .timeout_s = START_S + KILL_S * wanted,
    };
    int code = history_follow(&options, take, &kills, &err);
    if (code == EXIT_TIMEOUT)
        give_up(&kills);
    need(code, &err);
    figures_print(replans ? "replan" : "restart", replans, kills.kills, wanted);
    client_close(&kills.client);
    cluster_stop(&kills.cluster, false, &left);
    submission_finish(&kills.submission);
    free(left);
    free(yaml);
    free(kills.kills);
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
