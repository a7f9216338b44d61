/* local_message.c - messages between threads. The receiver copies directly from the sender's
 * memory, and the sender's wait returns when it has done so. */
#include "worker/collectives/local.h"

#include "common/base/memory.h"
#include "worker/collectives/library.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void local_requests_grow(struct fabric *fabric)
{
    size_t count = (size_t)REQUESTS << fabric->block_count;
    fabric->blocks = grow(fabric->blocks, fabric->block_count, &fabric->block_capacity,
                          sizeof(struct fabric_request *));
    struct fabric_request *block = xcalloc(count, sizeof *block);
    fabric->blocks[fabric->block_count++] = block;
    for (size_t i = 0; i < count; i++) {
        block[i].next = fabric->free_requests;
        fabric->free_requests = &block[i];
    }
}

static struct fabric_request *request_take(struct fabric *fabric)
{
    if (!fabric->free_requests)
        local_requests_grow(fabric);
    struct fabric_request *request = fabric->free_requests;
    assert(request && "every block has requests");
    fabric->free_requests = request->next;
    return request;
}

static void request_release(struct fabric *fabric, struct fabric_request *request)
{
    request->state = REQUEST_FREE;
    request->next = fabric->free_requests;
    fabric->free_requests = request;
}

/* ---- inboxes: messages in the order in which they were sent ---- */

static void inbox_append(struct local_rank *rank, struct fabric_request *request)
{
    request->next = NULL;
    *rank->inbox_end = request;
    rank->inbox_end = &request->next;
}

static void inbox_remove(struct local_rank *rank, struct fabric_request **at)
{
    struct fabric_request *request = *at;
    *at = request->next;
    if (rank->inbox_end == &request->next)
        rank->inbox_end = at;
    request->next = NULL;
}

/* Take the oldest message of this sender and tag from the inbox; NULL: there is none. */
static struct fabric_request *inbox_take(struct local_rank *rank, int sender, uint32_t tag)
{
    for (struct fabric_request **at = &rank->inbox; *at; at = &(*at)->next)
        if ((*at)->sender == sender && (*at)->tag == tag) {
            struct fabric_request *request = *at;
            inbox_remove(rank, at);
            return request;
        }
    return NULL;
}

static void request_withdraw(struct local_hub *hub, struct fabric_request *request)
{
    struct local_rank *rank = &hub->ranks[request->receiver];
    struct fabric_request **at = &rank->inbox;
    while (*at != request)
        at = &(*at)->next;
    inbox_remove(rank, at);
}

void local_messages_withdraw(struct fabric *fabric)
{
    struct local_hub *hub = fabric->hub;
    for (size_t i = 0; i < fabric->block_count; i++)
        for (size_t j = 0; j < (size_t)REQUESTS << i; j++) {
            struct fabric_request *request = &fabric->blocks[i][j];
            if (request->state == REQUEST_QUEUED)
                request_withdraw(hub, request);
            while (request->state == REQUEST_TAKING)
                pthread_cond_wait(&hub->ranks[fabric->rank].changed, &hub->lock);
        }
}

/* ---- calls ---- */

/* Wait for a change that concerns this rank. Fails if waiting longer makes no sense. */
static int message_await(struct fabric *fabric, const char *call, int peer, uint32_t tag,
                         const struct timespec *deadline, struct error *err)
{
    struct local_hub *hub = fabric->hub;
    const char *where = strcmp(call, "receive") == 0 ? "from" : "to";
    if (hub->aborted)
        return error_set(err, -ECANCELED, "%s %s rank %d, tag %u: the exchange was aborted", call,
                         where, peer, tag);
    if (hub->ranks[peer].state == LOCAL_CLOSED)
        return error_set(err, -ECONNRESET, "%s %s rank %d, tag %u: it is gone", call, where, peer,
                         tag);
    if (pthread_cond_timedwait(&hub->ranks[fabric->rank].changed, &hub->lock, deadline) ==
        ETIMEDOUT)
        return -ETIMEDOUT;
    return 0;
}

int local_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
               const void *source, size_t count, struct fabric_request **out, struct error *err)
{
    struct local_hub *hub = fabric->hub;
    int rc = collective_peer_check("send", peer, fabric->rank, hub->count, err);
    if (rc == 0)
        rc = local_settle(fabric, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&hub->lock);
    if (hub->aborted) {
        pthread_mutex_unlock(&hub->lock);
        return error_set(err, -ECANCELED, "send to rank %d, tag %u: the exchange was aborted", peer,
                         tag);
    }
    struct fabric_request *request = request_take(fabric);
    *request = (struct fabric_request){
        .state = REQUEST_QUEUED,
        .sender = fabric->rank,
        .receiver = peer,
        .tag = tag,
        .source = source,
        .element = element,
        .count = count,
    };
    inbox_append(&hub->ranks[peer], request);
    pthread_cond_broadcast(&hub->ranks[peer].changed);
    pthread_mutex_unlock(&hub->lock);
    *out = request;
    return 0;
}

static bool matches(const struct fabric_request *request)
{
    return request->count == request->expected && request->element == request->expected_element;
}

static int mismatch(const struct fabric_request *request, struct error *err)
{
    if (request->element != request->expected_element)
        return error_set(err, -EINVAL,
                         "message from rank %d to rank %d, tag %u: elements of %zu bytes are sent, "
                         "but of %zu are expected",
                         request->sender, request->receiver, request->tag,
                         element_size(request->element), element_size(request->expected_element));
    return error_set(err, -EINVAL,
                     "message from rank %d to rank %d, tag %u: %zu elements are sent, but %zu "
                     "are expected",
                     request->sender, request->receiver, request->tag, request->count,
                     request->expected);
}

int local_wait(struct fabric *fabric, struct fabric_request *request, struct error *err)
{
    struct local_hub *hub = fabric->hub;
    struct timespec deadline = local_deadline(fabric->timeout_s);
    int rc = 0;
    pthread_mutex_lock(&hub->lock);
    while (request->state == REQUEST_TAKING || (request->state == REQUEST_QUEUED && rc == 0)) {
        if (request->state == REQUEST_TAKING)
            pthread_cond_wait(&hub->ranks[fabric->rank].changed, &hub->lock);
        else
            rc = message_await(fabric, "send", request->receiver, request->tag, &deadline, err);
    }
    if (request->state == REQUEST_QUEUED)
        request_withdraw(hub, request);
    else
        rc = matches(request) ? 0 : mismatch(request, err);
    if (rc == -ETIMEDOUT)
        error_set(err, rc, "send to rank %d, tag %u: not received within %g s", request->receiver,
                  request->tag, fabric->timeout_s);
    request_release(fabric, request);
    pthread_mutex_unlock(&hub->lock);
    return rc;
}

/* Find a message, which from then on belongs to the receiver. The lock is held. */
static int message_find(struct fabric *fabric, int peer, uint32_t tag, struct fabric_request **out,
                        struct error *err)
{
    struct local_rank *rank = &fabric->hub->ranks[fabric->rank];
    struct timespec deadline = local_deadline(fabric->timeout_s);
    int rc = 0;
    struct fabric_request *request;
    while (!(request = inbox_take(rank, peer, tag)) && rc == 0)
        rc = message_await(fabric, "receive", peer, tag, &deadline, err);
    *out = request;
    if (request)
        return 0;
    if (rc == -ETIMEDOUT)
        error_set(err, rc, "receive from rank %d, tag %u: nothing has come within %g s", peer, tag,
                  fabric->timeout_s);
    return rc;
}

int local_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                  void *destination, size_t count, struct error *err)
{
    struct local_hub *hub = fabric->hub;
    int rc = collective_peer_check("receive", peer, fabric->rank, hub->count, err);
    if (rc < 0)
        return rc;
    struct fabric_request *request;
    pthread_mutex_lock(&hub->lock);
    rc = message_find(fabric, peer, tag, &request, err);
    if (rc == 0) {
        request->state = REQUEST_TAKING;
        request->expected = count;
        request->expected_element = element;
    }
    pthread_mutex_unlock(&hub->lock);
    if (rc < 0)
        return rc;

    if (!matches(request))
        rc = mismatch(request, err);
    else
        local_copy(fabric, element, destination, request->source, count);
    if (rc == 0)
        rc = local_settle(fabric, err);
    if (rc == 0)
        local_count_sent(hub, peer, fabric->rank, count);

    pthread_mutex_lock(&hub->lock);
    request->state = REQUEST_TAKEN; /* from here on it is the sender's again */
    pthread_cond_broadcast(&hub->ranks[peer].changed);
    pthread_mutex_unlock(&hub->lock);
    return rc;
}
