/* meeting.c - a list of values under a lock; there are never more values than ranks. */
#include "worker/collectives/meeting.h"

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
    enum meeting_values kind;
    bool abandoned;
};

struct meeting *meeting_create(enum meeting_values values)
{
    struct meeting *meeting = xcalloc(1, sizeof *meeting);
    meeting->kind = values;
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

/* Link to the value of this key, or to the end of the list. */
static struct value **find(struct meeting *meeting, const char *key)
{
    struct value **link = &meeting->values;
    while (*link && strcmp((*link)->key, key) != 0)
        link = &(*link)->next;
    return link;
}

static void take(struct value **link)
{
    struct value *value = *link;
    *link = value->next;
    value_free(value);
}

static int hand_over(const struct value *value, void *bytes, size_t *size, struct error *err)
{
    if (value->size > *size)
        return error_set(err, -EMSGSIZE, "the value of '%s' has %zu bytes, room is for %zu",
                         value->key, value->size, *size);
    memcpy(bytes, value->bytes, value->size);
    *size = value->size;
    return 0;
}

static int get(void *context, const char *key, void *bytes, size_t *size, struct error *err)
{
    struct meeting *meeting = context;
    struct value **link;
    pthread_mutex_lock(&meeting->lock);
    while (!*(link = find(meeting, key)) && !meeting->abandoned)
        pthread_cond_wait(&meeting->changed, &meeting->lock);
    int rc = *link ? hand_over(*link, bytes, size, err)
                   : error_set(err, -ECANCELED, "a rank that was waited for has ended");
    if (*link && meeting->kind == MEETING_TAKEN)
        take(link);
    pthread_mutex_unlock(&meeting->lock);
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
