/* disk.c - coordinator/store in memory: what was put is lost with its coordinator, what was
 * committed is not. A commit is an effect, before which the coordinator may die; and it may fail.
 *
 * What becomes durable is compared with what was: see check_job_commit. */
#include "tests/simulation/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/message.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"

#define SLOW_MS_MAX 20000 /* of a commit */
#define FULL_MS_MAX 60000 /* of a full disk */
#define ROOM_LOOK_MS 2000

enum put_kind { PUT_JOB, PUT_PLAN, PUT_CORPUS, PUT_WORKER, DELETE_WORKER, PUT_EVENT };

struct put {
    enum put_kind kind;
    struct job *job;
    struct worker *worker;
    struct disk_plan plan;
    struct disk_corpus corpus;
    char name[HARDWARE_NAME_SIZE];
    uint64_t revision;
    struct disk_event event;
};

struct disk *disk_create(void)
{
    struct disk *disk = xcalloc(1, sizeof *disk);
    disk->cluster = 1 + world_draw(UINT64_MAX - 1);
    return disk;
}

static void *copy_bytes(const void *bytes, size_t size)
{
    void *copy = xcalloc(1, size + 1);
    memcpy(copy, bytes, size);
    return copy;
}

struct store_plan disk_copy_plan(const struct store_plan *plan)
{
    struct store_plan copy = {
        xstrdup(plan->json), xstrdup(plan->candidates ? plan->candidates : ""),
        copy_bytes(plan->hashes, plan->rank_count * sizeof *plan->hashes), plan->rank_count,
        copy_bytes(plan->compute_s, plan->rank_count * sizeof *plan->compute_s)};
    return copy;
}

struct disk_corpus disk_copy_corpus(uint64_t number, const struct corpus *from)
{
    struct disk_corpus copy = {number, corpus_create(from->node, from->epoch)};
    for (size_t i = 0; i < from->count; i++)
        corpus_add(copy.corpus, from->files[i].path, from->files[i].size, from->files[i].hash);
    return copy;
}

struct disk *disk_copy(const struct disk *disk)
{
    struct disk *copy = disk_create();
    copy->cluster = disk->cluster;
    copy->term = disk->term;
    for (; copy->corpus_count < disk->corpus_count; copy->corpus_count++) {
        const struct disk_corpus *corpus = &disk->corpora[copy->corpus_count];
        copy->corpora =
            grow(copy->corpora, copy->corpus_count, &copy->corpus_capacity, sizeof *corpus);
        copy->corpora[copy->corpus_count] = disk_copy_corpus(corpus->number, corpus->corpus);
    }
    for (; copy->job_count < disk->job_count; copy->job_count++) {
        copy->jobs = grow(copy->jobs, copy->job_count, &copy->job_capacity, sizeof *copy->jobs);
        copy->jobs[copy->job_count] = job_copy(disk->jobs[copy->job_count]);
    }
    for (; copy->plan_count < disk->plan_count; copy->plan_count++) {
        const struct disk_plan *plan = &disk->plans[copy->plan_count];
        copy->plans = grow(copy->plans, copy->plan_count, &copy->plan_capacity, sizeof *plan);
        copy->plans[copy->plan_count] =
            (struct disk_plan){plan->number, plan->epoch, disk_copy_plan(&plan->plan)};
    }
    for (; copy->worker_count < disk->worker_count; copy->worker_count++) {
        copy->workers =
            grow(copy->workers, copy->worker_count, &copy->worker_capacity, sizeof *copy->workers);
        copy->workers[copy->worker_count] = worker_copy(disk->workers[copy->worker_count]);
    }
    for (; copy->event_count < disk->event_count; copy->event_count++) {
        const struct disk_event *event = &disk->events[copy->event_count];
        copy->events =
            grow(copy->events, copy->event_count, &copy->event_capacity, sizeof *copy->events);
        copy->events[copy->event_count] =
            (struct disk_event){copy_bytes(event->bytes, event->size), event->size};
    }
    return copy;
}

void disk_destroy(struct disk *disk)
{
    if (!disk)
        return;
    for (size_t i = 0; i < disk->job_count; i++)
        job_destroy(disk->jobs[i]);
    for (size_t i = 0; i < disk->plan_count; i++)
        store_plan_finish(&disk->plans[i].plan);
    for (size_t i = 0; i < disk->corpus_count; i++)
        corpus_destroy(disk->corpora[i].corpus);
    for (size_t i = 0; i < disk->worker_count; i++)
        worker_destroy(disk->workers[i]);
    for (size_t i = 0; i < disk->event_count; i++)
        free(disk->events[i].bytes);
    free(disk->corpora);
    free(disk->jobs);
    free(disk->plans);
    free(disk->workers);
    free(disk->events);
    free(disk);
}

/* The place of the number, or where it would be. */
static size_t job_place(const struct disk *disk, uint64_t number)
{
    size_t low = 0, high = disk->job_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (disk->jobs[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct job *disk_job(const struct disk *disk, const char *id)
{
    uint64_t number = strtoull(id[0] && id[1] ? id + 2 : "0", NULL, 10);
    size_t at = job_place(disk, number);
    return at < disk->job_count && disk->jobs[at]->number == number ? disk->jobs[at] : NULL;
}

/* As job_place; workers lie by name. */
static size_t worker_place(const struct disk *disk, const char *name, bool *known)
{
    size_t low = 0, high = disk->worker_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(disk->workers[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *known = low < disk->worker_count && strcmp(disk->workers[low]->name, name) == 0;
    return low;
}

const struct worker *disk_worker(const struct disk *disk, const char *name)
{
    bool known;
    size_t at = worker_place(disk, name, &known);
    return known ? disk->workers[at] : NULL;
}

struct store *store_on(struct disk *disk, struct actor *owner)
{
    struct store *store = xcalloc(1, sizeof *store);
    store->disk = disk;
    store->owner = owner;
    return store;
}

size_t store_pending(const struct store *store)
{
    return store->put_count;
}

bool store_failed(const struct store *store)
{
    return store->failed != 0;
}

static void forget_put(struct put *put)
{
    job_destroy(put->job);
    worker_destroy(put->worker);
    store_plan_finish(&put->plan.plan);
    corpus_destroy(put->corpus.corpus);
    free(put->event.bytes);
}

static void forget_puts(struct store *store)
{
    for (size_t i = 0; i < store->put_count; i++)
        forget_put(&store->puts[i]);
    store->put_count = 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    forget_puts(store);
    free(store->puts);
    free(store);
}

int store_begin_term(struct store *store, uint64_t *term, struct error *err)
{
    (void)err;
    *term = store->disk->term + 1;
    if (actor_effect(store->owner))
        store->disk->term = *term;
    return 0;
}

static struct put *put(struct store *store, enum put_kind kind)
{
    store->puts = grow(store->puts, store->put_count, &store->put_capacity, sizeof *store->puts);
    struct put *new = &store->puts[store->put_count++];
    *new = (struct put){.kind = kind};
    return new;
}

void store_put_job(struct store *store, const struct job *job)
{
    put(store, PUT_JOB)->job = job_copy(job);
}

void store_put_plan(struct store *store, const struct job *job, const char *id,
                    const struct store_plan *plan)
{
    (void)id;
    put(store, PUT_PLAN)->plan = (struct disk_plan){job->number, job->epoch, disk_copy_plan(plan)};
}

void store_put_corpus(struct store *store, const struct job *job, const struct corpus *corpus)
{
    put(store, PUT_CORPUS)->corpus = disk_copy_corpus(job->number, corpus);
}

void store_put_worker(struct store *store, const struct worker *worker)
{
    put(store, PUT_WORKER)->worker = worker_copy(worker);
}

void store_delete_worker(struct store *store, const char *name)
{
    snprintf(put(store, DELETE_WORKER)->name, HARDWARE_NAME_SIZE, "%s", name);
}

void store_put_event(struct store *store, uint64_t revision, const Gimbal__Event *event)
{
    struct put *new = put(store, PUT_EVENT);
    new->revision = revision;
    new->event.bytes = message_pack(&event->base, &new->event.size);
}

/* Each of these takes what it keeps out of the put. */

static void apply_job(struct disk *disk, struct put *from)
{
    size_t at = job_place(disk, from->job->number);
    bool known = at < disk->job_count && disk->jobs[at]->number == from->job->number;
    check_job_commit(known ? disk->jobs[at] : NULL, from->job);
    if (from->job->state == JOB_STARTING && disk == cluster->coordinator.disk)
        scenario_job_starts();
    if (known) {
        job_destroy(disk->jobs[at]);
    } else {
        disk->jobs = grow(disk->jobs, disk->job_count, &disk->job_capacity, sizeof *disk->jobs);
        memmove(disk->jobs + at + 1, disk->jobs + at,
                (disk->job_count++ - at) * sizeof *disk->jobs);
    }
    disk->jobs[at] = from->job;
    from->job = NULL;
}

static void apply_plan(struct disk *disk, struct put *from)
{
    size_t at = 0;
    while (at < disk->plan_count && disk->plans[at].number != from->plan.number)
        at++;
    if (at == disk->plan_count) {
        disk->plans =
            grow(disk->plans, disk->plan_count, &disk->plan_capacity, sizeof *disk->plans);
        disk->plan_count++;
    } else {
        store_plan_finish(&disk->plans[at].plan);
    }
    disk->plans[at] = from->plan;
    from->plan = (struct disk_plan){0};
}

static void apply_corpus(struct disk *disk, struct put *from)
{
    disk->corpora =
        grow(disk->corpora, disk->corpus_count, &disk->corpus_capacity, sizeof *disk->corpora);
    disk->corpora[disk->corpus_count++] = from->corpus;
    from->corpus.corpus = NULL;
}

static void apply_worker(struct disk *disk, struct put *from)
{
    bool known;
    size_t at = worker_place(disk, from->worker->name, &known);
    if (known) {
        worker_destroy(disk->workers[at]);
    } else {
        disk->workers =
            grow(disk->workers, disk->worker_count, &disk->worker_capacity, sizeof *disk->workers);
        memmove(disk->workers + at + 1, disk->workers + at,
                (disk->worker_count++ - at) * sizeof *disk->workers);
    }
    disk->workers[at] = from->worker;
    from->worker = NULL;
}

static void delete_worker(struct disk *disk, const char *name)
{
    bool known;
    size_t at = worker_place(disk, name, &known);
    if (!known)
        return;
    worker_destroy(disk->workers[at]);
    memmove(disk->workers + at, disk->workers + at + 1,
            (--disk->worker_count - at) * sizeof *disk->workers);
}

static void apply_event(struct disk *disk, struct put *from)
{
    if (from->revision != disk->event_count + 1)
        world_fail("revision %llu is stored behind %zu", (unsigned long long)from->revision,
                   disk->event_count);
    disk->events =
        grow(disk->events, disk->event_count, &disk->event_capacity, sizeof *disk->events);
    check_event_commit(disk, &from->event);
    disk->events[disk->event_count++] = from->event;
    from->event = (struct disk_event){0};
}

static void apply(struct disk *disk, struct put *from)
{
    switch (from->kind) {
    case PUT_JOB:
        apply_job(disk, from);
        break;
    case PUT_PLAN:
        apply_plan(disk, from);
        break;
    case PUT_CORPUS:
        apply_corpus(disk, from);
        break;
    case PUT_WORKER:
        apply_worker(disk, from);
        break;
    case DELETE_WORKER:
        delete_worker(disk, from->name);
        break;
    case PUT_EVENT:
        apply_event(disk, from);
        break;
    }
}

/* It fills up, and somebody makes room. */
enum store_room store_room(struct store *store, uint64_t now_ms, struct error *err)
{
    uint64_t here_ms = world_now_ms();
    store->looked_ms = now_ms;
    if (world->calm || here_ms >= store->full_until_ms)
        store->room = STORE_ROOM_ENOUGH;
    if (!world->calm && world_chance(world->faults.full)) {
        store->room = world_chance(500) ? STORE_ROOM_LITTLE : STORE_ROOM_NONE;
        store->full_until_ms = here_ms + world_between(1, FULL_MS_MAX);
        world_trace("has a full disk");
    }
    if (store->room != STORE_ROOM_ENOUGH)
        error_set(err, -ENOSPC, "the disk is full");
    return store->room;
}

uint64_t store_room_next_ms(const struct store *store)
{
    return store->room == STORE_ROOM_ENOUGH ? UINT64_MAX : store->looked_ms + ROOM_LOOK_MS;
}

int store_commit(struct store *store, struct error *err)
{
    if (store->put_count == 0 && !store->failed)
        return 0;
    if (store->room == STORE_ROOM_NONE)
        world_fail("%zu changes are made where there is no room", store->put_count);
    if (!world->calm && world_chance(world->faults.commit_slow)) {
        world->busy_ms += world_between(1, SLOW_MS_MAX);
        world_trace("has waited %llu ms for the disk", (unsigned long long)world->busy_ms);
    }
    if (!world->calm && world_chance(world->faults.commit))
        store->failed = -EIO;
    if (store->failed)
        return error_set(err, store->failed, "the disk is broken");
    if (actor_effect(store->owner)) {
        world->tally.commits++;
        for (size_t i = 0; i < store->put_count; i++)
            apply(store->disk, &store->puts[i]);
        check_dirty();
    }
    forget_puts(store);
    return 0;
}
