/* rendezvous.c - a list of values under a lock; there are never more values than ranks. */
#include "worker/collectives/rendezvous.h"

#include "common/base/memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct value {
    char *key;
    void *bytes;
    size_t size;
    struct value *next;
};

struct local_rendezvous {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct value *values;
    enum rendezvous_values kind;
    bool abandoned;
};

struct local_rendezvous *local_rendezvous_create(enum rendezvous_values values)
{
    struct local_rendezvous *store = xcalloc(1, sizeof *store);
    store->kind = values;
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->changed, NULL);
    return store;
}

static void value_free(struct value *value)
{
    free(value->key);
    free(value->bytes);
    free(value);
}

void local_rendezvous_destroy(struct local_rendezvous *store)
{
    if (!store)
        return;
    while (store->values) {
        struct value *value = store->values;
        store->values = value->next;
        value_free(value);
    }
    pthread_mutex_destroy(&store->lock);
    pthread_cond_destroy(&store->changed);
    free(store);
}

static int rendezvous_put(void *context, const char *key, const void *bytes, size_t size,
                          struct error *err)
{
    struct local_rendezvous *store = context;
    struct value *value = xcalloc(1, sizeof *value);
    (void)err;
    *value = (struct value){.key = xstrdup(key), .bytes = xcalloc(1, size + 1), .size = size};
    memcpy(value->bytes, bytes, size);
    pthread_mutex_lock(&store->lock);
    value->next = store->values;
    store->values = value;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
    return 0;
}

/* Link to the value of this key, or to the end of the list. */
static struct value **value_find(struct local_rendezvous *store, const char *key)
{
    struct value **link = &store->values;
    while (*link && strcmp((*link)->key, key) != 0)
        link = &(*link)->next;
    return link;
}

static void value_take(struct value **link)
{
    struct value *value = *link;
    *link = value->next;
    value_free(value);
}

static int value_hand_over(const struct value *value, void *bytes, size_t *size, struct error *err)
{
    if (value->size > *size)
        return error_set(err, -EMSGSIZE, "the value of '%s' has %zu bytes, room is for %zu",
                         value->key, value->size, *size);
    memcpy(bytes, value->bytes, value->size);
    *size = value->size;
    return 0;
}

static int rendezvous_get(void *context, const char *key, void *bytes, size_t *size,
                          struct error *err)
{
    struct local_rendezvous *store = context;
    struct value **link;
    pthread_mutex_lock(&store->lock);
    while (!*(link = value_find(store, key)) && !store->abandoned)
        pthread_cond_wait(&store->changed, &store->lock);
    int rc = *link ? value_hand_over(*link, bytes, size, err)
                   : error_set(err, -ECANCELED, "a rank that was waited for has ended");
    if (*link && store->kind == RENDEZVOUS_TAKEN)
        value_take(link);
    pthread_mutex_unlock(&store->lock);
    return rc;
}

struct rendezvous local_rendezvous_lend(struct local_rendezvous *store)
{
    return (struct rendezvous){store, rendezvous_put, rendezvous_get};
}

void local_rendezvous_abandon(struct local_rendezvous *store)
{
    pthread_mutex_lock(&store->lock);
    store->abandoned = true;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}
