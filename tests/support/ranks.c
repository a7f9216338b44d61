/* ranks.c - a job of threads; a job of processes, with a pipe to each, which is closed when it
 * ends, however it ends; and a rendezvous for both, a fixed table under a process-shared lock. */
#include "tests/support/ranks.h"

#include "common/base/clock.h"
#include "common/base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct thread {
    pthread_t thread;
    struct test_rank rank;
    struct fabric_config config;
    test_rank_cb *body;
};

static void *thread_run(void *context)
{
    struct thread *thread = context;
    struct test_rank *rank = &thread->rank;
    struct error err;
    if (rank->library->open(&thread->config, &rank->fabric, &err) < 0) {
        fprintf(stderr, "rank %d does not open: %s\n", rank->rank, err.text);
        exit(EXIT_FAILURE);
    }
    pthread_barrier_wait(rank->barrier);
    thread->body(rank);
    rank->library->close(rank->fabric);
    return NULL;
}

void test_ranks_run(const struct collectives *library, int count, double timeout_s,
                    test_rank_cb *body, void *argument)
{
    test_ranks_run_on(NULL, library, count, timeout_s, body, argument);
}

void test_ranks_run_on(const struct accelerator *accelerator, const struct collectives *library,
                       int count, double timeout_s, test_rank_cb *body, void *argument)
{
    struct rendezvous *rendezvous = test_rendezvous_create(10);
    struct local_hub *hub = local_hub_create(count);
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    struct thread *threads = xcalloc((size_t)count, sizeof *threads);
    for (int i = 0; i < count; i++) {
        threads[i] = (struct thread){
            .rank = {library, NULL, i, count, &barrier, argument},
            .config = {.rank = i,
                       .count = count,
                       .timeout_s = timeout_s,
                       .rendezvous = rendezvous,
                       .shared = hub,
                       .accelerator = accelerator},
            .body = body,
        };
        if (pthread_create(&threads[i].thread, NULL, thread_run, &threads[i]) != 0)
            abort();
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i].thread, NULL);
    free(threads);
    pthread_barrier_destroy(&barrier);
    local_hub_destroy(hub);
    test_rendezvous_destroy(rendezvous);
}

static pid_t process_start(int rank, test_process_cb *body, void *context, int *end)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        abort();
    fflush(NULL); /* or it is printed twice */
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int rc = body(rank, context);
        fflush(NULL);
        _exit(rc < 0);
    }
    close(ends[1]);
    *end = ends[0];
    return pid;
}

static int process_judge(int rank, int status, struct error *err)
{
    if (WIFSIGNALED(status))
        return error_set(err, -ECHILD, "the process of rank %d was ended by signal %d (%s)", rank,
                         WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status) != 0)
        return error_set(err, -ECHILD, "the process of rank %d ended with status %d", rank,
                         WEXITSTATUS(status));
    return 0;
}

/* Waits for one of those that are left, whose pipes are not -1, and forgets it. */
static int processes_await(pid_t *pids, struct pollfd *ends, int count, double deadline,
                           struct error *err)
{
    int status, ready;
    double left_s = deadline - clock_s();
    do
        ready = poll(ends, (nfds_t)count, left_s > 0 ? (int)(left_s * 1e3) + 1 : 0);
    while (ready < 0 && errno == EINTR);
    for (int i = 0; i < count; i++) {
        if (ends[i].fd < 0 || !ends[i].revents)
            continue;
        waitpid(pids[i], &status, 0);
        close(ends[i].fd);
        ends[i].fd = -1;
        return process_judge(i, status, err);
    }
    for (int i = 0; i < count; i++)
        if (ends[i].fd >= 0)
            return error_set(err, -ETIMEDOUT, "the process of rank %d has not ended in time", i);
    abort();
}

int test_processes_run(int count, double limit_s, test_process_cb *body, void *context,
                       struct error *err)
{
    int rc = 0;
    double deadline = clock_s() + limit_s;
    pid_t *pids = xcalloc((size_t)count, sizeof *pids);
    struct pollfd *ends = xcalloc((size_t)count, sizeof *ends);
    for (int i = 0; i < count; i++)
        pids[i] = process_start(i, body, context, &ends[i].fd);
    for (int i = 0; i < count && rc == 0; i++)
        rc = processes_await(pids, ends, count, deadline, err);
    for (int i = 0; i < count; i++) {
        if (ends[i].fd < 0)
            continue;
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        close(ends[i].fd);
    }
    free(ends);
    free(pids);
    return rc;
}

#define ENTRIES 256
#define KEY_SIZE 64
#define VALUE_SIZE 4096

struct entry {
    char key[KEY_SIZE];
    char value[VALUE_SIZE];
    size_t size;
};

struct store {
    pthread_mutex_t lock;
    pthread_cond_t added;
    double limit_s;
    int count;
    struct entry entries[ENTRIES];
};

static struct entry *find(struct store *store, const char *key)
{
    for (int i = 0; i < store->count; i++)
        if (strcmp(store->entries[i].key, key) == 0)
            return &store->entries[i];
    return NULL;
}

static int put(void *context, const char *key, const void *value, size_t size, struct error *err)
{
    struct store *store = context;
    if (size > VALUE_SIZE || strlen(key) >= KEY_SIZE)
        return error_set(err, -E2BIG, "put '%s': %zu bytes, %d is the most", key, size, VALUE_SIZE);
    int rc = 0;
    pthread_mutex_lock(&store->lock);
    struct entry *entry = find(store, key);
    if (!entry && store->count < ENTRIES) {
        entry = &store->entries[store->count++];
        snprintf(entry->key, sizeof entry->key, "%s", key);
    }
    if (entry) {
        if (size > 0)
            memcpy(entry->value, value, size);
        entry->size = size;
        pthread_cond_broadcast(&store->added);
    } else {
        rc = error_set(err, -ENOSPC, "put '%s': %d keys is the most", key, ENTRIES);
    }
    pthread_mutex_unlock(&store->lock);
    return rc;
}

static int get(void *context, const char *key, void *value, size_t *size, struct error *err)
{
    struct store *store = context;
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    long limit_ns = deadline.tv_nsec + (long)(store->limit_s * 1e9);
    deadline.tv_sec += limit_ns / 1000000000;
    deadline.tv_nsec = limit_ns % 1000000000;
    int rc = 0;
    struct entry *entry;
    pthread_mutex_lock(&store->lock);
    while (!(entry = find(store, key)) && rc == 0)
        rc = pthread_cond_timedwait(&store->added, &store->lock, &deadline);
    if (!entry)
        rc = error_set(err, -ETIMEDOUT, "get '%s': nobody has put it", key);
    else if (entry->size > *size)
        rc = error_set(err, -E2BIG, "get '%s': %zu bytes, room for %zu", key, entry->size, *size);
    else {
        rc = 0;
        memcpy(value, entry->value, entry->size);
        *size = entry->size;
    }
    pthread_mutex_unlock(&store->lock);
    return rc;
}

struct rendezvous *test_rendezvous_create(double limit_s)
{
    struct store *store =
        mmap(NULL, sizeof *store, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (store == MAP_FAILED)
        abort();
    pthread_mutexattr_t lock;
    pthread_mutexattr_init(&lock);
    pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&store->lock, &lock);
    pthread_mutexattr_destroy(&lock);
    pthread_condattr_t added;
    pthread_condattr_init(&added);
    pthread_condattr_setpshared(&added, PTHREAD_PROCESS_SHARED);
    pthread_cond_init(&store->added, &added);
    pthread_condattr_destroy(&added);
    store->limit_s = limit_s;

    struct rendezvous *rendezvous = xcalloc(1, sizeof *rendezvous);
    *rendezvous = (struct rendezvous){.context = store, .put = put, .get = get};
    return rendezvous;
}

void test_rendezvous_destroy(struct rendezvous *rendezvous)
{
    if (!rendezvous)
        return;
    munmap(rendezvous->context, sizeof(struct store));
    free(rendezvous);
}
