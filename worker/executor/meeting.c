/* meeting.c - see meeting.h; a list, for there are never more values than ranks. */
#include "worker/executor/meeting.h"

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

struct meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct value *values;
    bool abandoned;
};

struct meeting *meeting_create(void)
{
    struct meeting *meeting = xcalloc(1, sizeof *meeting);
    pthread_mutex_init(&meeting->lock, NULL);
    pthread_cond_init(&meeting->changed, NULL);
    return meeting;
}

static void value_free(struct value *value)
{
    free(value->key);
    free(value->bytes);
    free(value);
}

void meeting_destroy(struct meeting *meeting)
{
    if (!meeting)
        return;
    while (meeting->values) {
        struct value *value = meeting->values;
        meeting->values = value->next;
        value_free(value);
    }
    pthread_mutex_destroy(&meeting->lock);
    pthread_cond_destroy(&meeting->changed);
    free(meeting);
}

static int put(void *context, const char *key, const void *bytes, size_t size, struct error *err)
{
    struct meeting *meeting = context;
    struct value *value = xcalloc(1, sizeof *value);
    (void)err;
    *value = (struct value){.key = xstrdup(key), .bytes = xcalloc(1, size + 1), .size = size};
    memcpy(value->bytes, bytes, size);
    pthread_mutex_lock(&meeting->lock);
    value->next = meeting->values;
    meeting->values = value;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
    return 0;
}

/* Out of the list; NULL when it is not there. Under the lock. */
static struct value *take(struct meeting *meeting, const char *key)
{
    struct value **link = &meeting->values;
    while (*link && strcmp((*link)->key, key) != 0)
        link = &(*link)->next;
    struct value *value = *link;
    if (value)
        *link = value->next;
    return value;
}

static int get(void *context, const char *key, void *bytes, size_t *size, struct error *err)
{
    struct meeting *meeting = context;
    struct value *value;
    pthread_mutex_lock(&meeting->lock);
    while (!(value = take(meeting, key)) && !meeting->abandoned)
        pthread_cond_wait(&meeting->changed, &meeting->lock);
    pthread_mutex_unlock(&meeting->lock);
    if (!value)
        return error_set(err, -ECANCELED, "a rank that was waited for has ended");
    int rc = 0;
    if (value->size > *size) {
        rc = error_set(err, -EMSGSIZE, "the value of '%s' has %zu bytes, room is for %zu", key,
                       value->size, *size);
    } else {
        memcpy(bytes, value->bytes, value->size);
        *size = value->size;
    }
    value_free(value);
    return rc;
}

struct rendezvous meeting_rendezvous(struct meeting *meeting)
{
    return (struct rendezvous){meeting, put, get};
}

void meeting_abandon(struct meeting *meeting)
{
    pthread_mutex_lock(&meeting->lock);
    meeting->abandoned = true;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
}
