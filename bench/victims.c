/* victims.c - starts the cluster as `gimbal demo` does, and finds executors through /proc. */
#include "bench/victims.h"

#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/message/message.h"
#include "coordinator/cli/exit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void victims_need(int code, const struct error *err)
{
    if (code == EXIT_DONE)
        return;
    fprintf(stderr, "%s\n", err->text);
    exit(EXIT_FAILURE);
}

uint64_t victims_now_unix_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void victims_nap(uint64_t ms)
{
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

uint64_t victims_draw(struct victims *victims, uint64_t bound)
{
    return random_below(7, 0, victims->draws++, bound);
}

double victims_draw_share(struct victims *victims)
{
    return random_uniform(7, 0, victims->draws++);
}

Gimbal__GetJobReply *victims_job(struct victims *victims)
{
    Gimbal__GetJobReply *reply = NULL;
    struct error err;
    victims_need(client_get_job(&victims->client, victims->submission.job, &reply, &err), &err);
    return reply;
}

void victims_give_up(struct victims *victims)
{
    Gimbal__GetJobReply *reply = victims_job(victims);
    fprintf(stderr, "the job is in state %d at step %llu: %s\n", (int)reply->status->state,
            (unsigned long long)reply->status->step, reply->status->reason);
    message_free(&reply->base);
    exit(EXIT_FAILURE);
}

bool victims_choose(struct victims *victims, uint64_t behind)
{
    Gimbal__GetJobReply *reply = victims_job(victims);
    const Gimbal__JobStatus *status = reply->status;
    bool trains = status->state == GIMBAL__JOB_STATUS__STATE__RUNNING && status->step > behind &&
                  status->n_devices > 1;
    if (status->finished_unix_ms)
        victims_give_up(victims);
    if (trains) {
        const char *device = status->devices[victims_draw(victims, status->n_devices)];
        snprintf(victims->node, sizeof victims->node, "%.*s", (int)strcspn(device, "/"), device);
        victims->step = status->step;
        victims->usual_s = status->step_time_s;
    }
    message_free(&reply->base);
    return trains;
}

pid_t victims_executor(const struct victims *victims)
{
    char path[64];
    int worker = (int)demo_cluster_worker_pid(&victims->cluster, victims->node), executor = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", worker, worker);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &executor) != 1)
        executor = 0;
    if (file)
        fclose(file);
    return executor;
}

static char *write_job(const struct victims *victims, enum way way)
{
    return xasprintf("apiVersion: gimbal/v1\n"
                     "name: losses\n"
                     "model: {family: gpt, layers: 4, hidden: 128, heads: 4, seq: 64}\n"
                     "data: {text: [/usr/share/games/fortunes/riddles]}\n"
                     "train: {steps: 1000000, global_batch: 32, lr: 2.0e-3, warmup: 50}\n"
                     "devices: {min: 2, max: %d}\n"
                     "plan: {pin: {pp: 1, tp: 1}%s}\n"
                     "elastic: {max_restarts: 1000000, copy_share: 0, replan: %s}\n"
                     "checkpoint: {dir: '%s/checkpoints', every: 20, keep: 2}\n",
                     VICTIMS_WORKERS, way == WAY_COPIES ? ", forbid: {zero: [0]}" : "",
                     way == WAY_RESTARTS ? "false" : "true", victims->cluster.folder);
}

void victims_start(struct victims *victims, enum way way)
{
    struct common common = {0};
    struct error err;
    setenv("GIMBAL_COORDINATOR_PROGRAM", COORDINATOR, 0);
    setenv("GIMBAL_WORKER", WORKER, 0);
    setenv("GIMBAL_EXECUTOR", EXECUTOR, 0);
    unsetenv("GIMBAL_TLS");
    *victims = (struct victims){0};
    victims_need(demo_cluster_start(VICTIMS_WORKERS, -1, &victims->cluster, &err), &err);
    common.address = victims->cluster.address;
    victims_need(client_open(&common, &victims->client, &err), &err);
    char *yaml = write_job(victims, way);
    victims_need(submission_send(&victims->client,
                                 &(struct submitting){.name = "losses", .yaml = yaml},
                                 &victims->submission, &err),
                 &err);
    free(yaml);
}

void victims_stop(struct victims *victims)
{
    char *left;
    client_close(&victims->client);
    demo_cluster_stop(&victims->cluster, false, &left);
    submission_finish(&victims->submission);
    free(left); /* its checkpoints */
}
