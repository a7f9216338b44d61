/* crew_scene.c - the files of a job, a folder of modules, and a thread that reads what ranks say.
 */
#include "tests/worker/executor/crew_scene.h"

#include "common/base/memory.h"
#include "common/message/message.h"
#include "tests/support/engine.h"
#include "tests/support/ranks.h"
#include "worker/kernels/devices.h"

#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAMPLES 4 /* of a micro-batch; the job's batch is two of them */

static const struct job_model model = {
    .family = "gpt", .layers = 1, .hidden = 8, .heads = 1, .seq = 8, .vocab = 256};

static const char *const modules[] = {"gimbal-cuda.so", "libemulated-cuda.so", "gimbal-nccl.so"};
static const char *const places[] = {MODULES, MODULES, MODULES "/nccl"};

static void link_modules(const char *folder, bool nccl)
{
    for (int i = 0; i < 2 + nccl; i++) {
        char *from = xasprintf("%s/%s", places[i], modules[i]);
        char *to = xasprintf("%s/%s", folder, modules[i]);
        ck_assert_int_eq(symlink(from, to), 0);
        free(from);
        free(to);
    }
    setenv("GIMBAL_MODULES", folder, 1);
}

static void unlink_modules(const char *folder)
{
    for (int i = 0; i < 3; i++) {
        char *path = xasprintf("%s/%s", folder, modules[i]);
        unlink(path); /* or it was not there */
        free(path);
    }
}

static void hear_stopped(struct crew_scene *scene, const Gimbal__StoppedRequest *stopped)
{
    ck_assert_uint_lt(stopped->rank, CREW_RANKS);
    ck_assert(!scene->stopped[stopped->rank]);
    scene->stopped[stopped->rank] = true;
    snprintf(scene->reasons[stopped->rank], sizeof scene->reasons[0], "%s", stopped->reason);
}

static void hear_telemetry(struct crew_scene *scene, const Gimbal__TelemetryRecord *record)
{
    scene->steps += record->record_case == GIMBAL__TELEMETRY_RECORD__RECORD_STEP;
    if (record->record_case != GIMBAL__TELEMETRY_RECORD__RECORD_LINK)
        return;
    ck_assert_uint_lt(scene->link_count, CREW_LINKS_MAX);
    scene->links[scene->link_count] = *record->link;
    scene->links[scene->link_count++].job = NULL;
}

static void *read_all(void *context)
{
    struct crew_scene *scene = context;
    ProtobufCMessage *message;
    while (channel_read(&scene->channel, &gimbal__executor_event__descriptor, -1, &message, NULL) ==
           1) {
        const Gimbal__ExecutorEvent *event = (const Gimbal__ExecutorEvent *)message;
        pthread_mutex_lock(&scene->lock);
        if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_STOPPED)
            hear_stopped(scene, event->stopped);
        else if (event->event_case == GIMBAL__EXECUTOR_EVENT__EVENT_TELEMETRY)
            hear_telemetry(scene, event->telemetry);
        pthread_cond_broadcast(&scene->changed);
        pthread_mutex_unlock(&scene->lock);
        message_free(message);
    }
    return NULL;
}

static void open_work(struct crew_scene *scene, const char *device)
{
    struct work *work = &scene->work;
    struct error err = {""};
    ck_assert_msg(device_open(device, &work->trainer.device, &err) == 0, "%s", err.text);
    ck_assert_msg(job_config_load(scene->files.job, &work->job, &err) == 0, "%s", err.text);
    ck_assert_msg(work_open(work, &err) == 0, "%s", err.text);
    work->plan = engine_plan(work->graph, 1, (int[]){CREW_RANKS}, 1, (const char *[]){"batch"}, 2,
                             SAMPLES, "1f1b");
    work->trainer.collectives = collectives_find("gloo");
    work->rendezvous = *scene->rendezvous;
    work->reporter = session_reporter(work->session, false);
}

void crew_scene_open(struct crew_scene *scene, const char *device, bool nccl, int steps)
{
    int parent, child;
    struct error err;
    *scene =
        (struct crew_scene){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    executor_job_make_of(&scene->files, steps, &model);
    link_modules(scene->files.directory, nccl);
    scene->rendezvous = test_rendezvous_create(20);
    ck_assert_int_eq(channel_pair(&parent, &child, &err), 0);
    channel_open(&scene->channel, parent);
    scene->work.session = session_create(child);
    session_name(scene->work.session, "job", 1);
    open_work(scene, device);
    ck_assert_int_eq(pthread_create(&scene->reader, NULL, read_all, scene), 0);
}

int crew_scene_run(struct crew_scene *scene, struct error *err)
{
    struct member members[CREW_RANKS];
    for (int i = 0; i < CREW_RANKS; i++) {
        members[i] = (struct member){.work = &scene->work, .rank = i};
        ck_assert_int_eq(sched_getaffinity(0, sizeof members[i].cores, &members[i].cores), 0);
    }
    return crew_run(&scene->work, members, CREW_RANKS, err);
}

void crew_scene_close(struct crew_scene *scene)
{
    work_close(&scene->work); /* its end of the channel, too, which ends the reader */
    pthread_join(scene->reader, NULL);
    channel_close(&scene->channel);
    test_rendezvous_destroy(scene->rendezvous);
    unlink_modules(scene->files.directory);
    executor_job_clean(&scene->files);
}

void crew_scene_await_stopped(struct crew_scene *scene, int rank)
{
    pthread_mutex_lock(&scene->lock);
    while (!scene->stopped[rank])
        pthread_cond_wait(&scene->changed, &scene->lock);
    pthread_mutex_unlock(&scene->lock);
}
