/* queue.c - two threads, a lock, and a list of requests. */
#include "coordinator/planning/queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/base/memory.h"

#define THREADS 2

enum stage { WAITS, RUNS, ENDED };

struct entry {
    enum planning_kind kind;
    enum stage stage;
    bool withdrawn;
    struct planning_task *task;
    struct planning_answer answer;
};

struct planning_queue {
    pthread_t threads[THREADS];
    size_t thread_count;
    int fd; /* its counter is above 0 while there is an answer to take */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock; a running task belongs to its thread, except for `stop`. */
    bool closing;
    struct entry **entries; /* in the order in which they were added */
    size_t count, capacity;
};

static void entry_destroy(struct entry *entry)
{
    planning_finish(&entry->answer.planning);
    planning_task_destroy(entry->task);
    free(entry);
}

static void queue_remove_at(struct planning_queue *queue, size_t index)
{
    memmove(&queue->entries[index], &queue->entries[index + 1],
            (--queue->count - index) * sizeof *queue->entries);
}

static void queue_remove_entry(struct planning_queue *queue, const struct entry *entry)
{
    size_t i = 0;
    while (queue->entries[i] != entry)
        i++;
    queue_remove_at(queue, i);
}

/* The first waiting job, or else the first question if none is being searched. */
static struct entry *queue_choose(const struct planning_queue *queue)
{
    struct entry *question = NULL;
    bool questioned = false;
    for (size_t i = 0; i < queue->count; i++) {
        struct entry *entry = queue->entries[i];
        if (entry->kind == PLANNING_JOB && entry->stage == WAITS)
            return entry;
        if (entry->kind == PLANNING_QUESTION && entry->stage == WAITS && !question)
            question = entry;
        if (entry->kind == PLANNING_QUESTION && entry->stage == RUNS)
            questioned = true;
    }
    return questioned ? NULL : question;
}

/* Called without the lock. */
static void queue_search(struct entry *entry)
{
    struct planning_answer *answer = &entry->answer;
    answer->rc = planning_run(entry->task, &answer->planning, &answer->err);
}

/* Called with the lock. */
static void queue_end(struct planning_queue *queue, struct entry *entry)
{
    if (entry->withdrawn) {
        queue_remove_entry(queue, entry);
        entry_destroy(entry);
    } else {
        entry->stage = ENDED;
        eventfd_write(queue->fd, 1);
    }
    pthread_cond_broadcast(&queue->changed); /* a question may be next */
}

static void *queue_work(void *data)
{
    struct planning_queue *queue = data;
    pthread_mutex_lock(&queue->lock);
    while (!queue->closing) {
        struct entry *entry = queue_choose(queue);
        if (!entry) {
            pthread_cond_wait(&queue->changed, &queue->lock);
            continue;
        }
        entry->stage = RUNS;
        pthread_mutex_unlock(&queue->lock);
        queue_search(entry);
        pthread_mutex_lock(&queue->lock);
        queue_end(queue, entry);
    }
    pthread_mutex_unlock(&queue->lock);
    return NULL;
}

int planning_queue_create(struct planning_queue **out, struct error *err)
{
    struct planning_queue *queue = xcalloc(1, sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = queue->fd < 0 ? error_set(err, -errno, "eventfd: %s", strerror(errno)) : 0;
    while (rc == 0 && queue->thread_count < THREADS) {
        int code = pthread_create(&queue->threads[queue->thread_count], NULL, queue_work, queue);
        if (code == 0)
            queue->thread_count++;
        else
            rc = error_set(err, -code, "a thread for plans: %s", strerror(code));
    }
    if (rc < 0)
        planning_queue_destroy(queue);
    else
        *out = queue;
    return rc;
}

void planning_queue_destroy(struct planning_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&queue->lock);
    queue->closing = true;
    for (size_t i = 0; i < queue->count; i++)
        atomic_store(&queue->entries[i]->task->stop, true);
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    for (size_t i = 0; i < queue->thread_count; i++)
        pthread_join(queue->threads[i], NULL);
    for (size_t i = 0; i < queue->count; i++)
        entry_destroy(queue->entries[i]);
    free(queue->entries);
    if (queue->fd >= 0)
        close(queue->fd);
    pthread_cond_destroy(&queue->changed);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

int planning_queue_fd(const struct planning_queue *queue)
{
    return queue->fd;
}

void planning_queue_add(struct planning_queue *queue, enum planning_kind kind,
                        struct planning_task *task, void *asker)
{
    struct entry *entry = xcalloc(1, sizeof *entry);
    entry->kind = kind;
    entry->task = task;
    entry->answer.asker = asker;
    pthread_mutex_lock(&queue->lock);
    queue->entries = grow(queue->entries, queue->count, &queue->capacity, sizeof entry);
    queue->entries[queue->count++] = entry;
    pthread_cond_signal(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

void planning_queue_withdraw(struct planning_queue *queue, const void *asker)
{
    pthread_mutex_lock(&queue->lock);
    for (size_t i = queue->count; i-- > 0;) {
        struct entry *entry = queue->entries[i];
        if (entry->answer.asker != asker || entry->withdrawn)
            continue;
        entry->withdrawn = true;
        atomic_store(&entry->task->stop, true);
        if (entry->stage == RUNS)
            continue; /* its thread removes it */
        queue_remove_at(queue, i);
        entry_destroy(entry);
    }
    pthread_mutex_unlock(&queue->lock);
}

bool planning_queue_take(struct planning_queue *queue, struct planning_answer *answer)
{
    eventfd_t ignored;
    struct entry *entry = NULL;
    pthread_mutex_lock(&queue->lock);
    for (size_t i = 0; i < queue->count && !entry; i++)
        if (queue->entries[i]->stage == ENDED) {
            entry = queue->entries[i];
            queue_remove_at(queue, i);
        }
    if (!entry)
        eventfd_read(queue->fd, &ignored);
    pthread_mutex_unlock(&queue->lock);
    if (!entry)
        return false;
    *answer = entry->answer;
    entry->answer.planning = (struct planning){0};
    entry_destroy(entry);
    return true;
}
