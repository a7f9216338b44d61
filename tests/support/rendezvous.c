/* rendezvous.c - a fixed table under a process-shared lock. */
#include "tests/support/rendezvous.h"

#include "common/base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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
