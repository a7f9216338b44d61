/* staged_message.c - messages through host memory, where each message in progress has its own
 * stage. */
#include "worker/collectives/staged.h"

#include "common/base/memory.h"

static struct fabric_request *take(struct fabric *fabric)
{
    pthread_mutex_lock(&fabric->lock);
    struct fabric_request *request = fabric->requests;
    while (request && request->taken)
        request = request->next;
    if (!request) {
        request = xcalloc(1, sizeof *request);
        request->next = fabric->requests;
        fabric->requests = request;
    }
    request->taken = true;
    pthread_mutex_unlock(&fabric->lock);
    return request;
}

static void give_back(struct fabric *fabric, struct fabric_request *request)
{
    pthread_mutex_lock(&fabric->lock);
    request->taken = false;
    pthread_mutex_unlock(&fabric->lock);
}

int staged_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                const void *source, size_t count, struct fabric_request **out, struct error *err)
{
    struct fabric_request *request = take(fabric);
    size_t bytes = count * element_size(element);
    int rc = staged_reserve(fabric, &request->stage, bytes, err);
    if (rc == 0)
        rc = staged_fetch(fabric, &request->stage, source, bytes, err);
    if (rc == 0)
        rc = fabric->host->send(fabric->inner, peer, tag, element, request->stage.memory, count,
                                &request->inner, err);
    if (rc < 0)
        give_back(fabric, request);
    else
        *out = request;
    return rc;
}

int staged_wait(struct fabric *fabric, struct fabric_request *request, struct error *err)
{
    int rc = fabric->host->wait(fabric->inner, request->inner, err);
    give_back(fabric, request);
    return rc;
}

int staged_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                   void *destination, size_t count, struct error *err)
{
    struct fabric_request *request = take(fabric);
    size_t bytes = count * element_size(element);
    int rc = staged_reserve(fabric, &request->stage, bytes, err);
    if (rc == 0)
        rc = fabric->host->receive(fabric->inner, peer, tag, element, request->stage.memory, count,
                                   err);
    if (rc == 0) {
        staged_store(fabric, destination, request->stage.memory, bytes);
        rc = fabric->accelerator->finish(err);
    }
    give_back(fabric, request);
    return rc;
}
