/* queues.c - the two threads of a step, and how each learns how far the other has got.
 *
 * A queue publishes the number of its last finished instruction. Whoever needs a later one sleeps
 * on a condition variable; progress is read without the lock, so that the usual case costs one
 * atomic load. */
#include "worker/interpreter/internal.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/program/program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct queues {
    struct interpreter *in;
    struct program_walk walks[QUEUES];
    /* Per queue: number of the last finished instruction, and whether the queue sleeps until the
     * other one gets further. Read without the lock, but sleepers are woken under it. */
    _Atomic uint64_t done[QUEUES];
    atomic_bool sleeps[QUEUES];
    atomic_bool failed;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int rc; /* of the instruction that failed first */
    struct error err;
    /* The thread of the second queue. */
    bool threaded, stopping;
    pthread_t thread;
    uint64_t begun, ended; /* steps started and finished by that thread */
};

static void queues_wake(struct queues *queues)
{
    pthread_mutex_lock(&queues->lock);
    pthread_cond_broadcast(&queues->changed);
    pthread_mutex_unlock(&queues->lock);
}

static void queues_tell(struct queues *queues, enum queue queue, uint64_t number)
{
    atomic_store(&queues->done[queue], number);
    if (atomic_load(&queues->sleeps[program_other_queue(queue)]))
        queues_wake(queues);
}

/* Wait until the other queue has finished instruction `number`; false: it has failed and never
 * will. */
static bool queues_await(struct queues *queues, enum queue queue, uint64_t number)
{
    enum queue other = program_other_queue(queue);
    if (atomic_load(&queues->done[other]) >= number)
        return true;
    footprints_await(queues->in->footprints, queue, other, queues->in->step, clock_s());
    pthread_mutex_lock(&queues->lock);
    atomic_store(&queues->sleeps[queue], true);
    while (atomic_load(&queues->done[other]) < number && !atomic_load(&queues->failed))
        pthread_cond_wait(&queues->changed, &queues->lock);
    atomic_store(&queues->sleeps[queue], false);
    pthread_mutex_unlock(&queues->lock);
    return atomic_load(&queues->done[other]) >= number;
}

/* The first failure is the cause; what fails after it is its consequence. */
static void queues_fail(struct queues *queues, int rc, const struct error *err)
{
    pthread_mutex_lock(&queues->lock);
    if (!atomic_load(&queues->failed)) {
        queues->rc = rc;
        queues->err = *err;
    }
    atomic_store(&queues->failed, true);
    pthread_cond_broadcast(&queues->changed);
    pthread_mutex_unlock(&queues->lock);
}

/* After a failure nobody gets past the metrics, because all ranks take part in their all-reduce. So
 * whatever would be computed up to there is wasted, and other ranks are waiting for this one to
 * leave. */
static bool is_futile(const struct queues *queues, int index)
{
    return atomic_load(&queues->failed) &&
           index < queues->in->program->sections[SECTION_METRICS].first;
}

static void queues_note(struct interpreter *in, const struct program_walk *walk, double begin,
                        double end)
{
    size_t index = (size_t)(walk->cursor.instruction - in->program->instructions);
    in->passed[index]++;
    if (!in->timed)
        return;
    in->seconds[index] += end - begin;
    in->runs[index]++;
    if (in->kind == PROGRAM_TRAIN && walk->number <= in->stamp_count)
        in->stamps[walk->number - 1] = (struct stamp){begin, end};
}

static double now_s(const struct interpreter *in)
{
    return in->config.clock_cb ? in->config.clock_cb() : clock_s();
}

/* What has passed since `begin` was spent waiting before this instruction; returns the time. */
static double note_wait(struct interpreter *in, int index, double begin)
{
    double ready = now_s(in);
    in->waited[index] += ready - begin;
    return ready;
}

/* To the end of the step, to a failure, or until the other queue has failed. */
static void queue_run(struct queues *queues, enum queue queue)
{
    struct interpreter *in = queues->in;
    struct program_walk *walk = &queues->walks[queue];
    double begin = now_s(in);
    while (program_walk_next(walk)) {
        const struct instruction *instruction = walk->cursor.instruction;
        int index = (int)(instruction - in->program->instructions);
        uint64_t number = program_walk_awaits(walk);
        struct error err;
        if (is_futile(queues, index))
            return;
        if (number > 0) {
            bool there = queues_await(queues, queue, number);
            begin = note_wait(in, index, begin);
            if (!there)
                return;
        }
        streams_await(in->streams, walk);
        bool held = false;
        int rc = queue == QUEUE_COMPUTE ? interpreter_reach(in, index, &held, &err) : 0;
        if (held)
            begin = note_wait(in, index, begin);
        footprints_begin(in->footprints, index, in->step, in->passed[index], begin);
        if (rc == 0)
            rc = issue_next(in, walk, &err);
        if (rc == 0 && in->streams && in->timed)
            rc = streams_finish(in->streams, &err);
        double end = now_s(in);
        footprints_end(in->footprints, queue, end);
        if (rc < 0) {
            error_prefix(&err, rc, "rank %d, step %llu, %s", in->program->rank,
                         (unsigned long long)in->step, instruction_name(in->program, instruction));
            queues_fail(queues, rc, &err);
            return;
        }
        queues_note(in, walk, begin, end);
        begin = end;
        streams_pass(in->streams, (int)(walk->cursor.instruction - in->program->instructions));
        queues_tell(queues, queue, walk->number);
    }
}

/* A queue's part of a step, on its own thread; at its end the queue's lane is idle. */
static void queue_run_part(struct queues *queues, enum queue queue)
{
    struct interpreter *in = queues->in;
    struct error err;
    streams_enter(in->streams, queue);
    queue_run(queues, queue);
    int rc = streams_finish(in->streams, &err);
    if (rc == 0)
        rc = interpreter_check(in, &err);
    if (rc < 0) {
        error_prefix(&err, rc, "rank %d, step %llu", in->program->rank,
                     (unsigned long long)in->step);
        queues_fail(queues, rc, &err);
    }
    streams_leave(in->streams);
}

/* ---- the thread of the second queue ---- */

/* Wait until there is a step to run; false: there will be none. */
static bool await_step(struct queues *queues)
{
    pthread_mutex_lock(&queues->lock);
    while (queues->ended == queues->begun && !queues->stopping)
        pthread_cond_wait(&queues->changed, &queues->lock);
    bool stopping = queues->stopping;
    pthread_mutex_unlock(&queues->lock);
    return !stopping;
}

static void *thread_run(void *context)
{
    struct queues *queues = context;
    const struct device *device = queues->in->config.device;
    if (device->threads)
        device->threads(1); /* the other processors belong to the compute queue */
    while (await_step(queues)) {
        queue_run_part(queues, QUEUE_COMMUNICATION);
        pthread_mutex_lock(&queues->lock);
        queues->ended++;
        pthread_cond_broadcast(&queues->changed);
        pthread_mutex_unlock(&queues->lock);
    }
    return NULL;
}

static void begin_beside(struct queues *queues)
{
    pthread_mutex_lock(&queues->lock);
    queues->begun++;
    pthread_cond_broadcast(&queues->changed);
    pthread_mutex_unlock(&queues->lock);
}

static void await_beside(struct queues *queues)
{
    pthread_mutex_lock(&queues->lock);
    while (queues->ended < queues->begun)
        pthread_cond_wait(&queues->changed, &queues->lock);
    pthread_mutex_unlock(&queues->lock);
}

int queues_start(struct interpreter *in, struct queues **out, struct error *err)
{
    struct queues *queues = xcalloc(1, sizeof *queues);
    queues->in = in;
    queues->threaded = program_overlaps(in->program);
    pthread_mutex_init(&queues->lock, NULL);
    pthread_cond_init(&queues->changed, NULL);
    for (int queue = 0; queue < QUEUES; queue++)
        program_walk_init(&queues->walks[queue], in->program, (enum queue)queue);
    int rc = queues->threaded ? pthread_create(&queues->thread, NULL, thread_run, queues) : 0;
    if (rc != 0) {
        queues->threaded = false;
        queues_stop(queues);
        return error_set(err, -rc, "no thread for the queue of communication: %s", strerror(rc));
    }
    *out = queues;
    return 0;
}

void queues_stop(struct queues *queues)
{
    if (!queues)
        return;
    if (queues->threaded) {
        pthread_mutex_lock(&queues->lock);
        queues->stopping = true;
        pthread_cond_broadcast(&queues->changed);
        pthread_mutex_unlock(&queues->lock);
        pthread_join(queues->thread, NULL);
    }
    for (int queue = 0; queue < QUEUES; queue++)
        program_walk_finish(&queues->walks[queue]);
    pthread_cond_destroy(&queues->changed);
    pthread_mutex_destroy(&queues->lock);
    free(queues);
}

int queues_run(struct queues *queues, enum program_kind kind, struct error *err)
{
    for (int queue = 0; queue < QUEUES; queue++) {
        program_walk_begin(&queues->walks[queue], kind);
        atomic_store(&queues->done[queue], 0);
    }
    atomic_store(&queues->failed, false);
    if (queues->threaded)
        begin_beside(queues);
    queue_run_part(queues, QUEUE_COMPUTE);
    if (queues->threaded)
        await_beside(queues);
    if (!atomic_load(&queues->failed))
        return 0;
    return error_set(err, queues->rc, "%s", queues->err.text);
}
