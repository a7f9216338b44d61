/* disk.c - coordinator/store in memory: what was put is lost with its coordinator, what was
 * committed is not. A commit is an effect, before which the coordinator may die; and it may fail.
 *
 * What becomes durable is compared with what was: see check_job_commit.
 *
 * Of checkpoints and of who may call the store has nothing: simulated executors write none, and on
 * loopback all are trusted. */
#include "tests/simulation/disk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/message/message.h"
#include "coordinator/store/sql.h"
#include "coordinator/store/store.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/world.h"

#define SLOW_MS_MAX 20000 /* of a commit */
#define FULL_MS_MAX 60000 /* of a full disk */
#define ROOM_LOOK_MS 2000

enum put_kind { PUT_JOB, PUT_PLAN, PUT_CORPUS, PUT_STEPS, PUT_WORKER, DELETE_WORKER, PUT_EVENT };

struct put {
    enum put_kind kind;
    struct job *job;
    struct worker *worker;
    struct disk_plan plan;
    struct disk_corpus corpus;
    struct disk_steps steps;
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
    if (size > 0) /* who has none has no address either */
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
    for (; copy->steps_count < disk->steps_count; copy->steps_count++) {
        const struct disk_steps *steps = &disk->steps[copy->steps_count];
        copy->steps = grow(copy->steps, copy->steps_count, &copy->steps_capacity, sizeof *steps);
        copy->steps[copy->steps_count] = (struct disk_steps){
            steps->number, copy_bytes(steps->points, steps->count * sizeof *steps->points),
            steps->count};
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
    for (size_t i = 0; i < disk->steps_count; i++)
        free(disk->steps[i].points);
    for (size_t i = 0; i < disk->worker_count; i++)
        worker_destroy(disk->workers[i]);
    for (size_t i = 0; i < disk->event_count; i++)
        free(disk->events[i].bytes);
    free(disk->corpora);
    free(disk->jobs);
    free(disk->plans);
    free(disk->steps);
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
    free(put->steps.points);
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

/* All points that it has: those of a simulated run are few. Simulated executors report no other
 * measurements. */
void store_put_measured(struct store *store, const struct job *job,
                        const struct job_telemetry *measured)
{
    const struct steps *steps = &measured->steps;
    put(store, PUT_STEPS)->steps = (struct disk_steps){
        job->number, copy_bytes(steps->points, steps->count * sizeof *steps->points), steps->count};
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

static void apply_steps(struct disk *disk, struct put *from)
{
    size_t at = 0;
    while (at < disk->steps_count && disk->steps[at].number != from->steps.number)
        at++;
    if (at == disk->steps_count) {
        disk->steps =
            grow(disk->steps, disk->steps_count, &disk->steps_capacity, sizeof *disk->steps);
        disk->steps_count++;
    }
    free(disk->steps[at].points);
    disk->steps[at] = from->steps;
    from->steps.points = NULL;
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
    case PUT_STEPS:
        apply_steps(disk, from);
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

bool store_changed(const struct store *store)
{
    return store->put_count > 0;
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

/* ---- what a coordinator reads when it begins, and later ---- */

int store_read_workers(struct store *store, store_worker_cb callback, void *data, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < store->disk->worker_count && rc == 0; i++)
        rc = callback(data, store->disk->workers[i], err);
    return rc;
}

int store_read_jobs(struct store *store, size_t ended_max, store_job_cb callback, void *data,
                    struct error *err)
{
    const struct disk *disk = store->disk;
    size_t ended = 0;
    int rc = 0;
    for (size_t i = 0; i < disk->job_count; i++)
        ended += job_ended(disk->jobs[i]) ? 1 : 0;
    for (size_t i = 0; i < disk->job_count && rc == 0; i++)
        if (!job_ended(disk->jobs[i]) || ended-- <= ended_max)
            rc = callback(data, disk->jobs[i], err);
    return rc;
}

/* No run has as many jobs. */
int store_read_overdue(struct store *store, size_t jobs_max, uint64_t before_ms, uint64_t *numbers,
                       size_t most, size_t *count, struct error *err)
{
    (void)numbers, (void)most, (void)err;
    *count = 0;
    if (store->disk->job_count > jobs_max || before_ms > 0)
        world_fail("of %zu jobs, %zu are to be kept", store->disk->job_count, jobs_max);
    return 0;
}

void store_remove_job(struct store *store, uint64_t number)
{
    (void)store;
    world_fail("j-%d is removed", (int)number);
}

int store_find_removed(struct store *store, uint64_t number, struct store_removed *out,
                       struct error *err)
{
    (void)store, (void)number, (void)out, (void)err;
    return 0;
}

int store_find_key(struct store *store, const char *user, const char *key, struct job **out,
                   struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *out = NULL;
    for (size_t i = disk->job_count; i-- > 0 && !*out;)
        if (key[0] && strcmp(disk->jobs[i]->key, key) == 0 &&
            strcmp(disk->jobs[i]->user, user) == 0)
            *out = job_copy(disk->jobs[i]);
    return 0;
}

int store_next_number(struct store *store, uint64_t *number, struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *number = disk->job_count ? disk->jobs[disk->job_count - 1]->number + 1 : 1;
    return 0;
}

int store_read_plan(struct store *store, const struct job *job, struct store_plan *out,
                    struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *out = (struct store_plan){0};
    for (size_t i = 0; i < disk->plan_count; i++)
        if (disk->plans[i].number == job->number && disk->plans[i].epoch == job->epoch)
            *out = disk_copy_plan(&disk->plans[i].plan);
    return 0;
}

int store_read_corpus(struct store *store, const struct job *job, struct corpus **out,
                      struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    *out = NULL;
    for (size_t i = 0; i < disk->corpus_count && !*out; i++)
        if (disk->corpora[i].number == job->number)
            *out = disk_copy_corpus(job->number, disk->corpora[i].corpus).corpus;
    return 0;
}

int store_read_newest_steps(struct store *store, const struct job *job, size_t steps_max,
                            struct job_telemetry *into, struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    for (size_t i = 0; i < disk->steps_count; i++) {
        const struct disk_steps *steps = &disk->steps[i];
        size_t first = steps->count > steps_max ? steps->count - steps_max : 0;
        if (steps->number == job->number)
            steps_restore(&into->steps, steps->points + first, steps->count - first);
    }
    return 0;
}

int store_read_measured(struct store *store, const struct job *job, struct job_telemetry *into,
                        struct error *err)
{
    return store_read_newest_steps(store, job, SIZE_MAX, into, err);
}

uint64_t store_cluster(const struct store *store)
{
    return store->disk->cluster;
}

/* No user of the simulation asks for one: what is to be copied is a database. */
int store_copy(struct store *store, uint64_t now_ms, struct store_copy *out, struct error *err)
{
    (void)store, (void)now_ms, (void)out;
    return error_set(err, -ENOTSUP, "a simulated disk has no database");
}

void store_copy_finish(struct store_copy *copy)
{
    *copy = (struct store_copy){NULL, 0};
}

void store_plan_finish(struct store_plan *plan)
{
    free(plan->json);
    free(plan->candidates);
    free(plan->hashes);
    free(plan->compute_s);
    *plan = (struct store_plan){0};
}

int store_read_events(struct store *store, const struct store_query *query, store_event_cb callback,
                      void *data, struct error *err)
{
    (void)err;
    const struct disk *disk = store->disk;
    size_t first = (size_t)query->after;
    if (query->newest && disk->event_count > first + query->count_max)
        first = disk->event_count - query->count_max;
    for (size_t i = first, n = 0; i < disk->event_count && n < query->count_max; i++, n++) {
        Gimbal__Event *event =
            gimbal__event__unpack(NULL, disk->events[i].size, disk->events[i].bytes);
        int rc = callback(data, i + 1, event);
        gimbal__event__free_unpacked(event, NULL);
        if (rc < 0)
            break;
    }
    return 0;
}

void store_put_checkpoint(struct store *store, const struct job *job,
                          const struct store_checkpoint *checkpoint, size_t keep)
{
    (void)store, (void)checkpoint, (void)keep;
    world_fail("a checkpoint of %s is stored", job->id);
}

void store_damage_checkpoint(struct store *store, const struct job *job, uint64_t step,
                             uint32_t epoch)
{
    (void)store, (void)epoch;
    world_fail("the checkpoint of step %d of %s is damaged", (int)step, job->id);
}

int store_read_checkpoints(struct store *store, const struct job *job,
                           struct store_checkpoint **out, size_t *count, struct error *err)
{
    (void)store, (void)job, (void)err;
    *out = NULL;
    *count = 0;
    return 0;
}

void store_checkpoints_free(struct store_checkpoint *checkpoints, size_t count)
{
    (void)checkpoints, (void)count;
}

void store_put_value(struct store *store, const char *job, uint64_t epoch, const char *key,
                     const void *value, size_t size)
{
    (void)store, (void)epoch, (void)value, (void)size;
    world_fail("%s of %s is stored", key, job);
}

/* There are none. */
void store_delete_values(struct store *store, const char *job, const char *prefix)
{
    (void)store, (void)job, (void)prefix;
}

int store_read_values(struct store *store, store_value_cb callback, void *data, struct error *err)
{
    (void)store, (void)callback, (void)data, (void)err;
    return 0;
}

/* A function of the real store that nobody has simulated would find no database: it is not
 * linked, or says so. */
void sql_put(struct sql *sql, const char *text, const char *types, ...)
{
    (void)sql, (void)types;
    world_fail("the real store is told: %s", text);
}

void store_put_token(struct store *store, const struct identity_token *token)
{
    (void)store, (void)token;
    world_fail("a token is stored");
}

void store_put_credential(struct store *store, const struct identity_credential *credential)
{
    (void)store, (void)credential;
    world_fail("a credential is stored");
}

int store_read_identity(struct store *store, struct identity *identity, struct error *err)
{
    (void)store, (void)identity, (void)err;
    return 0;
}
