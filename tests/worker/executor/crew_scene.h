/* crew_scene.h - two ranks of a job in this process, as its crew runs them: on emulated devices,
 * which exchange data by an emulated NCCL or through the host's memory, over Gloo. The other side
 * of their channel is the test's. */
#ifndef TESTS_WORKER_EXECUTOR_CREW_SCENE_H
#define TESTS_WORKER_EXECUTOR_CREW_SCENE_H

#include "common/message/channel.h"
#include "tests/support/executors.h"
#include "worker/executor/crew.h"

#include <pthread.h>

#define CREW_RANKS 2
#define CREW_LINKS_MAX 8

struct crew_scene {
    struct executor_job files;
    struct rendezvous *rendezvous;
    struct work work;
    struct channel channel;
    pthread_t reader;
    pthread_mutex_t lock; /* of what the ranks have said, which follows */
    pthread_cond_t changed;
    bool stopped[CREW_RANKS];
    char reasons[CREW_RANKS][256];
    Gimbal__LinkRecord links[CREW_LINKS_MAX]; /* their texts are lent to nobody */
    size_t link_count;
    int steps;
};

/* A job of so many steps, its batch divided over both ranks. `nccl`: their library is there. The
 * work may be changed until it is run. */
void crew_scene_open(struct crew_scene *scene, const char *device, bool nccl, int steps);
/* To the end of both; what crew_run returned. */
int crew_scene_run(struct crew_scene *scene, struct error *err);
void crew_scene_close(struct crew_scene *scene);
/* Until the other side has heard that this rank has stopped. */
void crew_scene_await_stopped(struct crew_scene *scene, int rank);

#endif
