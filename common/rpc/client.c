/* client.c - what happens to a client and its calls on the thread that owns them: opening and
 * closing, starting and cancelling, what Hello changes, and handing over finished calls. */
#include "common/rpc/client.h"

#include "common/base/clock.h"
#include "common/base/memory.h"
#include "common/message/message.h"
#include "common/rpc/client_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/* Checks that the call can be sent at all, and opens what it needs. */
static enum rpc_status pending_prepare(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    bool held = pending->method->kind == RPC_HELD;
    int rc = attempt_open(pending);
    if (rc != 0) {
        error_set(&pending->err, 0, "the request %s: %s", pending->method->asked, nng_strerror(rc));
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (pending->payload_size > pending->method->request_bytes_max) {
        error_set(&pending->err, 0, "a request %s may have %zu bytes, this one has %zu",
                  pending->method->asked, pending->method->request_bytes_max,
                  pending->payload_size);
        return RPC_RESOURCE_EXHAUSTED;
    }
    if (held && client->held_port == 0) {
        error_set(&pending->err, 0,
                  "the request %s comes before the session is open: open it first",
                  pending->method->asked);
        return RPC_FAILED_PRECONDITION;
    }
    pending->connection = held ? &client->held : &client->unary;
    rc = nng_ctx_open(&pending->ctx, pending->connection->socket);
    if (rc != 0) {
        error_set(&pending->err, 0, "the request %s: %s", pending->method->asked, nng_strerror(rc));
        return RPC_RESOURCE_EXHAUSTED;
    }
    pending->ctx_open = true;
    return RPC_OK;
}

static char *pending_make_key(const struct rpc_pending *pending,
                              const struct rpc_call_options *options)
{
    if (options->idempotency_key)
        return xstrdup(options->idempotency_key);
    if (pending->method->idempotent)
        return xstrdup("");
    return xasprintf("%016" PRIx64 "-%" PRIu64, pending->client->id, pending->call_id);
}

static void pending_join(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    pending->next = client->calls;
    if (client->calls)
        client->calls->previous = pending;
    client->calls = pending;
}

static void pending_leave(struct rpc_pending *pending)
{
    if (pending->next)
        pending->next->previous = pending->previous;
    if (pending->previous)
        pending->previous->next = pending->next;
    else
        pending->client->calls = pending->next;
}

/* Create a call and begin its first step; never NULL. Arguments as rpc_client_start(). */
static struct rpc_pending *pending_start(struct rpc_client *client, unsigned method,
                                         const ProtobufCMessage *request,
                                         const struct rpc_call_options *options, rpc_done_cb done,
                                         void *data)
{
    struct rpc_pending *pending = xcalloc(1, sizeof *pending);
    pending->client = client;
    pending->method = &client->service->methods[method];
    pending->method_index = method;
    pending->done = done;
    pending->data = data;
    pending->call_id = ++client->next_call_id;
    pending->trace_id = options->trace_id;
    pending->idempotency_key = pending_make_key(pending, options);
    pending->payload = message_pack(request, &pending->payload_size);
    pending->deadline_ms = options->deadline_ms;
    pending->deadline_at_ms = clock_ms() + options->delay_ms + options->deadline_ms;
    pending->may_repeat = pending->method->idempotent && !options->once;
    pending_join(pending);
    pending->status = pending_prepare(pending);
    pending->unsendable = pending->status != RPC_OK;
    attempt_begin(pending, options->delay_ms);
    return pending;
}

/* Removes the call from the list of those whose callbacks are to run. */
static void pending_leave_finished(struct rpc_pending *pending)
{
    struct rpc_client *client = pending->client;
    pthread_mutex_lock(&client->lock);
    for (struct rpc_pending **at = &client->finished; *at; at = &(*at)->next_done) {
        if (*at != pending)
            continue;
        *at = pending->next_done;
        if (client->finished_end == &pending->next_done)
            client->finished_end = at;
        break;
    }
    pthread_mutex_unlock(&client->lock);
}

/* Stop a call, whatever it is doing, and free it. */
static void pending_destroy(struct rpc_pending *pending)
{
    if (pending->timer)
        nng_aio_stop(pending->timer);
    if (pending->aio) {
        nng_aio_stop(pending->aio);                  /* no step runs any more */
        nng_msg_free(nng_aio_get_msg(pending->aio)); /* of a step that was not begun */
    }
    pending_leave_finished(pending);
    if (pending->ctx_open)
        nng_ctx_close(pending->ctx);
    nng_aio_free(pending->aio);
    nng_aio_free(pending->timer);
    pending_leave(pending);
    if (pending->answer)
        message_free(&pending->answer->base);
    free(pending->payload);
    free(pending->idempotency_key);
    free(pending);
}

/* The status of a call that is done; on RPC_OK the caller owns *reply. */
static enum rpc_status pending_settle(struct rpc_pending *pending, ProtobufCMessage **reply)
{
    *reply = NULL;
    if (pending->status != RPC_OK)
        return pending->status;
    const ProtobufCBinaryData *payload = &pending->answer->payload;
    const ProtobufCMethodDescriptor *method =
        &pending->client->service->descriptor->methods[pending->method_index];
    if (message_unpack(method->output, payload->data, payload->len, message_quota(payload->len),
                       reply, &pending->err) == 0)
        return RPC_OK;
    error_prefix(&pending->err, 0, "the answer of %s to the request %s",
                 pending->client->address_text, pending->method->asked);
    return RPC_INTERNAL;
}

/* Certificates name IPv6 addresses without brackets. */
static int client_set_up_tls(struct rpc_client *client, const struct rpc_tls *tls,
                             struct error *err)
{
    char host[sizeof client->address.host];
    bool bracketed = client->address.host[0] == '[';
    snprintf(host, sizeof host, "%s", client->address.host + bracketed);
    host[strcspn(host, "]")] = '\0';
    return transport_tls(tls, host, &client->tls, err);
}

static int client_set_up_address(struct rpc_client *client,
                                 const struct rpc_client_options *options, struct error *err)
{
    struct rpc_address *address = &client->address;
    int rc = rpc_address_parse(options->address, address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(address, options->tls != NULL, err);
    if (rc < 0 || !address->tls)
        return rc;
    uint16_t offset = rpc_address_offset(options->role);
    if (address->port > UINT16_MAX - offset)
        return error_set(err, -EINVAL, "'%s' has no port %u above it", options->address, offset);
    address->port = (uint16_t)(address->port + offset);
    return client_set_up_tls(client, options->tls, err);
}

/* Sets up everything that can fail. */
static int client_set_up(struct rpc_client *client, const struct rpc_client_options *options,
                         struct error *err)
{
    client->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (client->fd < 0 || getrandom(&client->id, sizeof client->id, 0) < 0)
        return error_set(err, -errno, "open a client: %s", strerror(errno));
    int rc = client_set_up_address(client, options, err);
    if (rc == 0)
        rc = connection_open(&client->unary, err);
    client->unary_open = rc == 0;
    if (rc == 0)
        rc = connection_open(&client->held, err);
    client->held_open = rc == 0;
    if (rc < 0)
        return rc;
    rpc_address_print(client->address_text, sizeof client->address_text, &client->address,
                      client->address.port);
    return connection_dial(&client->unary, client->address_text, client->tls, options->fail_fast,
                           options->patience_ms, err);
}

int rpc_client_open(const struct rpc_client_options *options, struct rpc_client **out,
                    struct error *err)
{
    struct rpc_client *client = xcalloc(1, sizeof *client);
    client->service = options->service;
    client->caller = xstrdup(options->caller);
    client->credential = xstrdup(options->credential ? options->credential : "");
    client->fence = options->fence;
    client->hindrance = options->hindrance;
    client->finished_end = &client->finished;
    pthread_mutex_init(&client->lock, NULL);
    pthread_cond_init(&client->done, NULL);
    int rc = client_set_up(client, options, err);
    if (rc < 0) {
        rpc_client_close(client);
        return rc;
    }
    *out = client;
    return 0;
}

void rpc_client_close(struct rpc_client *client)
{
    if (!client)
        return;
    while (client->calls)
        pending_destroy(client->calls);
    if (client->unary_open)
        connection_close(&client->unary);
    if (client->held_open)
        connection_close(&client->held);
    if (client->tls)
        nng_tls_config_free(client->tls);
    if (client->fd >= 0)
        close(client->fd);
    pthread_cond_destroy(&client->done);
    pthread_mutex_destroy(&client->lock);
    free(client->caller);
    explicit_bzero(client->credential, strlen(client->credential));
    free(client->credential);
    free(client);
}

/* Held calls go to another port of the same host, which a restarted coordinator may change. */
static int client_dial_held(struct rpc_client *client, uint32_t port, struct error *err)
{
    char address[96];
    if (port == 0 || port > UINT16_MAX)
        return error_set(err, -EPROTO, "%" PRIu32 " is no port for held calls", port);
    if (client->held_port == port)
        return 0;
    client->held_port = 0;
    rpc_address_print(address, sizeof address, &client->address, (uint16_t)port);
    int rc = connection_dial(&client->held, address, client->tls, false, 0, err);
    if (rc == 0)
        client->held_port = (uint16_t)port;
    return rc;
}

/* Checks that the coordinator that answered Hello is the known one, or a later start of it. */
static int client_check_fence(const struct rpc_client *client, const Gimbal__HelloReply *hello,
                              struct error *err)
{
    const struct rpc_fence *known = &client->fence;
    if (known->cluster && hello->cluster != known->cluster)
        return error_set(err, -ESTALE,
                         "%s is the coordinator of cluster %016" PRIx64 ", not of %016" PRIx64
                         ", to which this node belongs",
                         client->address_text, hello->cluster, known->cluster);
    if (hello->term < known->term)
        return error_set(err, -ESTALE,
                         "%s is a coordinator of term %" PRIu64 ", but term %" PRIu64
                         " has begun: it is an old one that still runs, or its disk is an old "
                         "copy; stop it",
                         client->address_text, hello->term, known->term);
    if (hello->term == known->term && known->instance && hello->instance != known->instance)
        return error_set(err, -ESTALE,
                         "%s is another coordinator of the same term %" PRIu64
                         ": two run from copies of one store; stop one",
                         client->address_text, hello->term);
    return 0;
}

static enum rpc_status client_adopt(struct rpc_client *client, const Gimbal__HelloReply *hello,
                                    struct error *err)
{
    if (client_check_fence(client, hello, err) < 0)
        return RPC_FAILED_PRECONDITION;
    pthread_mutex_lock(&client->lock);
    client->fence = (struct rpc_fence){hello->cluster, hello->term, hello->instance};
    pthread_mutex_unlock(&client->lock);
    return client_dial_held(client, hello->held_port, err) < 0 ? RPC_INTERNAL : RPC_OK;
}

static enum rpc_status client_settle(struct rpc_pending *pending, ProtobufCMessage **reply)
{
    enum rpc_status status = pending_settle(pending, reply);
    if (status != RPC_OK || (*reply)->descriptor != &gimbal__hello_reply__descriptor)
        return status;
    status = client_adopt(pending->client, (const Gimbal__HelloReply *)*reply, &pending->err);
    if (status != RPC_OK) {
        message_free(*reply);
        *reply = NULL;
    }
    return status;
}

struct rpc_pending *rpc_client_start(struct rpc_client *client, unsigned method,
                                     const ProtobufCMessage *request,
                                     const struct rpc_call_options *options, rpc_done_cb done,
                                     void *data)
{
    assert(done && options->deadline_ms > 0);
    assert(request->descriptor == client->service->descriptor->methods[method].input);
    return pending_start(client, method, request, options, done, data);
}

void rpc_pending_cancel(struct rpc_pending *pending)
{
    pending_destroy(pending);
}

/* Takes the first finished call; NULL when there is none. */
static struct rpc_pending *client_next_finished(struct rpc_client *client)
{
    pthread_mutex_lock(&client->lock);
    struct rpc_pending *pending = client->finished;
    pthread_mutex_unlock(&client->lock);
    return pending;
}

size_t rpc_client_poll(struct rpc_client *client, int timeout_ms)
{
    struct pollfd fd = {.fd = client->fd, .events = POLLIN};
    size_t count = 0;
    if (poll(&fd, 1, timeout_ms) > 0) {
        eventfd_t raised;
        eventfd_read(client->fd, &raised);
    }
    for (struct rpc_pending *pending; (pending = client_next_finished(client)); count++) {
        ProtobufCMessage *reply;
        struct rpc_result result = {.status = client_settle(pending, &reply)};
        struct error err = pending->err;
        rpc_done_cb done = pending->done;
        void *data = pending->data;
        pending_destroy(pending);
        result.text = result.status == RPC_OK ? "" : err.text;
        result.reply = reply;
        done(data, &result);
        message_free(reply);
    }
    return count;
}

enum rpc_status rpc_client_call(struct rpc_client *client, unsigned method,
                                const ProtobufCMessage *request,
                                const struct rpc_call_options *options, ProtobufCMessage **reply,
                                struct error *err)
{
    assert(options->deadline_ms > 0);
    assert(request->descriptor == client->service->descriptor->methods[method].input);
    struct rpc_pending *pending = pending_start(client, method, request, options, NULL, NULL);
    pthread_mutex_lock(&client->lock);
    while (!pending->is_done)
        pthread_cond_wait(&client->done, &client->lock);
    pthread_mutex_unlock(&client->lock);

    ProtobufCMessage *result;
    enum rpc_status status = client_settle(pending, &result);
    if (status == RPC_OK)
        *reply = result;
    else
        error_set(err, 0, "%s", pending->err.text);
    pending_destroy(pending);
    return status;
}

void rpc_client_hinder(struct rpc_client *client, const struct rpc_hindrance *hindrance)
{
    pthread_mutex_lock(&client->lock);
    client->hindrance = *hindrance;
    pthread_mutex_unlock(&client->lock);
}

int rpc_client_fd(const struct rpc_client *client)
{
    return client->fd;
}

uint64_t rpc_client_term(const struct rpc_client *client)
{
    return client->fence.term;
}

struct rpc_fence rpc_client_fence(const struct rpc_client *client)
{
    return client->fence;
}

uint64_t rpc_client_id(const struct rpc_client *client)
{
    return client->id;
}

const struct rpc_service *rpc_client_service(const struct rpc_client *client)
{
    return client->service;
}
