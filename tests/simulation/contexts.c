/* contexts.c - NNG's contexts: a request and its answer, on either side.
 *
 * A request that finds no connection waits for one; one whose connection closes has failed. What
 * comes in waits for a context that receives. */
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "tests/simulation/checks.h"
#include "tests/simulation/net.h"

static struct table contexts;
static uint32_t *free_contexts;
static size_t free_count, free_capacity;
static uint32_t next_serial;

void contexts_open(void)
{
    next_serial = 0;
}

void contexts_close(void)
{
    table_finish(&contexts);
    free(free_contexts);
    free_contexts = NULL;
    free_count = free_capacity = 0;
}

void contexts_close_of(const struct socket *socket)
{
    while (socket->contexts)
        nng_ctx_close((nng_ctx){socket->contexts->id});
}

static void enqueue(struct context *context)
{
    if (context->queued)
        return;
    context->queued = true;
    context->next = NULL;
    *context->socket->waiting_end = context;
    context->socket->waiting_end = &context->next;
}

static struct context *dequeue(struct socket *socket)
{
    struct context *context = socket->waiting;
    socket->waiting = context->next;
    if (!socket->waiting)
        socket->waiting_end = &socket->waiting;
    context->queued = false;
    return context;
}

static void leave_queue(struct context *context)
{
    struct socket *socket = context->socket;
    if (!context->queued)
        return;
    struct context **at = &socket->waiting;
    while (*at != context)
        at = &(*at)->next;
    *at = context->next;
    if (socket->waiting_end == &context->next)
        socket->waiting_end = at;
    context->queued = false;
}

static void leave_socket(const struct context *context)
{
    struct context **at = &context->socket->contexts;
    while (*at != context)
        at = &(*at)->next_of_socket;
    *at = context->next_of_socket;
}

int nng_ctx_open(nng_ctx *out, nng_socket id)
{
    struct context *context;
    if (free_count > 0) {
        context = contexts.items[free_contexts[--free_count] - 1];
        *context = (struct context){.id = context->id};
    } else {
        context = xcalloc(1, sizeof *context);
        context->id = table_add(&contexts, context);
    }
    context->socket = socket_of(id.id);
    context->next_of_socket = context->socket->contexts;
    context->socket->contexts = context;
    out->id = context->id;
    return 0;
}

int nng_ctx_close(nng_ctx id)
{
    struct context *context = table_get(&contexts, id.id);
    if (!context->socket)
        return NNG_ECLOSED;
    leave_queue(context);
    leave_socket(context);
    if (context->aio)
        aio_withdraw(context->aio);
    free(context->answer);
    ask_free(context->ask);
    *context = (struct context){.id = context->id};
    free_contexts = grow(free_contexts, free_count, &free_capacity, sizeof *free_contexts);
    free_contexts[free_count++] = context->id;
    return 0;
}

/* A request goes out over the connection there is. */
static void send_request(struct context *context, struct pipe *pipe, nng_aio *aio)
{
    nng_msg *message = aio->message;
    aio->message = NULL;
    context->pipe = pipe;
    context->asked = true;
    context->reset = false;
    message->context = context->id;
    message->serial = context->serial = ++next_serial;
    aio_finish(aio, 0);
    if (actor_effect(context->socket->owner)) {
        world->tally.calls++;
        pipe_send(pipe, SERVER, message);
    } else {
        free(message);
    }
}

/* The answer goes back where the request came from, if that is there still. */
static void send_answer(struct context *context, nng_aio *aio)
{
    nng_msg *message = aio->message;
    aio->message = NULL;
    message->context = context->peer;
    message->serial = context->serial;
    if (actor_effect(context->socket->owner)) {
        check_answer(context->socket->owner, context->ask, message->body, message->size);
        pipe_send(context->pipe, CLIENT, message);
    } else {
        free(message);
    }
    ask_free(context->ask);
    context->ask = NULL;
    aio_finish(aio, 0);
}

void nng_ctx_send(nng_ctx id, nng_aio *aio)
{
    struct context *context = table_get(&contexts, id.id);
    struct socket *socket = context->socket;
    aio_withdraw(aio);
    if (socket->is_server) {
        send_answer(context, aio);
        return;
    }
    free(context->answer);
    context->answer = NULL;
    struct pipe *pipe = pipe_open_of(socket);
    if (pipe) {
        send_request(context, pipe, aio);
        return;
    }
    aio_wait(aio, context);
    enqueue(context);
}

void socket_flush(struct socket *socket)
{
    while (socket->waiting) {
        struct context *context = dequeue(socket);
        if (context->aio)
            send_request(context, pipe_open_of(socket), context->aio);
    }
}

static void deliver(struct context *context, nng_aio *aio, nng_msg *message)
{
    context->pipe = message->pipe;
    context->peer = message->context;
    context->serial = message->serial;
    context->ask = check_ask(message->body, message->size);
    aio->message = message;
    aio_finish(aio, 0);
}

static void receive_request(struct context *context, nng_aio *aio)
{
    struct socket *socket = context->socket;
    if (socket->backlog_count == 0) {
        aio_wait(aio, context);
        enqueue(context);
        return;
    }
    nng_msg *message = socket->backlog[0];
    memmove(socket->backlog, socket->backlog + 1,
            --socket->backlog_count * sizeof *socket->backlog);
    deliver(context, aio, message);
}

void nng_ctx_recv(nng_ctx id, nng_aio *aio)
{
    struct context *context = table_get(&contexts, id.id);
    aio_withdraw(aio);
    if (context->socket->is_server) {
        receive_request(context, aio);
    } else if (context->answer) {
        aio->message = context->answer;
        context->answer = NULL;
        aio_finish(aio, 0);
    } else if (context->reset || !context->asked) {
        aio_finish(aio, context->reset ? NNG_ECONNRESET : NNG_ESTATE);
    } else {
        aio_wait(aio, context);
    }
}

static void take_request(struct socket *socket, nng_msg *message)
{
    while (socket->waiting) {
        struct context *context = dequeue(socket);
        if (context->aio) {
            deliver(context, context->aio, message);
            return;
        }
    }
    socket->backlog = grow(socket->backlog, socket->backlog_count, &socket->backlog_capacity,
                           sizeof *socket->backlog);
    socket->backlog[socket->backlog_count++] = message;
}

/* One that nobody waits for any more is dropped. */
static void take_answer(nng_msg *message)
{
    struct context *context = table_get(&contexts, message->context);
    if (!context || !context->socket || !context->asked || context->serial != message->serial) {
        free(message);
        return;
    }
    context->asked = false;
    if (context->aio) {
        context->aio->message = message;
        aio_finish(context->aio, 0);
    } else {
        context->answer = message;
    }
}

void socket_message(struct socket *socket, nng_msg *message)
{
    if (socket->is_server)
        take_request(socket, message);
    else
        take_answer(message);
}

void socket_reset(struct socket *socket, const struct pipe *pipe)
{
    for (struct context *context = socket->contexts; context; context = context->next_of_socket) {
        if (context->pipe != pipe || !context->asked)
            continue;
        context->asked = false;
        context->reset = true;
        if (context->aio)
            aio_finish(context->aio, NNG_ECONNRESET);
    }
}
