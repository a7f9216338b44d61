/* meet.c - the epoch's key-value store: ranks ask, the other side answers when it can. */
#include "worker/executor/session/internal.h"

#include "common/base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Ask the other side and wait for the answer; asking->value is the caller's to free, even on
 * failure. */
static int ask(struct session *session, const char *key, const void *value, size_t size, bool put,
               struct asking *asking, struct error *err)
{
    Gimbal__ExecutorRendezvous rendezvous = GIMBAL__EXECUTOR_RENDEZVOUS__INIT;
    Gimbal__ExecutorEvent event = GIMBAL__EXECUTOR_EVENT__INIT;
    pthread_mutex_lock(&session->lock);
    *asking = (struct asking){.id = ++session->next_id, .next = session->asking};
    session->asking = asking;
    pthread_mutex_unlock(&session->lock);

    rendezvous.id = asking->id;
    rendezvous.key = (char *)key;
    rendezvous.put = put;
    rendezvous.value = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)value};
    event.event_case = GIMBAL__EXECUTOR_EVENT__EVENT_RENDEZVOUS;
    event.rendezvous = &rendezvous;
    session_send(session, &event);

    pthread_mutex_lock(&session->lock);
    while (!asking->answered && !session_is_over(session) && !session->now.gave_up)
        pthread_cond_wait(&session->changed, &session->lock);
    struct asking **link = &session->asking;
    while (*link != asking)
        link = &(*link)->next;
    *link = asking->next;
    bool answered = asking->answered;
    pthread_mutex_unlock(&session->lock);
    return answered ? 0 : error_set(err, -ECANCELED, "cancelled while meeting the other ranks");
}

static int put(void *context, const char *key, const void *value, size_t size, struct error *err)
{
    struct asking asking;
    int rc = ask(context, key, value, size, true, &asking, err);
    free(asking.value);
    return rc;
}

static int get(void *context, const char *key, void *value, size_t *size, struct error *err)
{
    struct asking asking;
    int rc = ask(context, key, NULL, 0, false, &asking, err);
    if (rc == 0 && asking.size > *size)
        rc = error_set(err, -EMSGSIZE, "the value of '%s' has %zu bytes, room is for %zu", key,
                       asking.size, *size);
    if (rc == 0) {
        memcpy(value, asking.value, asking.size);
        *size = asking.size;
    }
    free(asking.value);
    return rc;
}

struct rendezvous session_rendezvous(struct session *session)
{
    return (struct rendezvous){session, put, get};
}

void session_answer(struct session *session, const Gimbal__ExecutorRendezvous *rendezvous)
{
    pthread_mutex_lock(&session->lock);
    for (struct asking *asking = session->asking; asking; asking = asking->next) {
        if (asking->id != rendezvous->id || asking->answered)
            continue;
        asking->size = rendezvous->value.len;
        asking->value = xcalloc(1, asking->size);
        if (asking->size) /* memcpy must not be given the NULL of an empty value */
            memcpy(asking->value, rendezvous->value.data, asking->size);
        asking->answered = true;
    }
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}
