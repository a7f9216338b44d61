/* nng.c - NNG's messages, operations, sockets and pipes, as far as common/rpc uses them, in virtual
 * time.
 *
 * Everything is on one thread: an operation ends by an event, which runs the callback that NNG
 * would run on a thread of its own. What an actor sends after it was killed goes nowhere.
 *
 * A context is a request and its answer, on either side. A request that finds no connection
 * waits for one; one whose connection closes has failed. What comes in waits for a context that
 * receives. */
#include "tests/simulation/net.h"

#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/rpc/nng_fixes.h"
#include "tests/simulation/checks.h"

static struct table sockets, dialers;

uint32_t table_add(struct table *table, void *item)
{
    table->items = grow(table->items, table->count, &table->capacity, sizeof(void *));
    table->items[table->count++] = item;
    return (uint32_t)table->count;
}

void *table_get(const struct table *table, uint32_t id)
{
    return id > 0 && id <= table->count ? table->items[id - 1] : NULL;
}

void table_finish(struct table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->items[i]);
    free(table->items);
    *table = (struct table){0};
}

void network_open(void)
{
    contexts_open();
}

void network_close(void)
{
    table_finish(&sockets);
    table_finish(&dialers);
    contexts_close();
    pipes_drop();
}

struct socket *socket_of(uint32_t id)
{
    return table_get(&sockets, id);
}

/* Messages. */

int nng_msg_alloc(nng_msg **out, size_t size)
{
    nng_msg *message = malloc(sizeof *message + size);
    if (!message)
        return NNG_ENOMEM;
    *message = (nng_msg){.size = size};
    *out = message;
    return 0;
}

void nng_msg_free(nng_msg *message)
{
    free(message);
}

void *nng_msg_body(nng_msg *message)
{
    return message->body;
}

size_t nng_msg_len(const nng_msg *message)
{
    return message->size;
}

nng_pipe nng_msg_get_pipe(const nng_msg *message)
{
    return (nng_pipe){message->pipe ? message->pipe->id : 0};
}

/* Operations. */

int nng_aio_alloc(nng_aio **out, void (*callback)(void *), void *data)
{
    nng_aio *aio = xcalloc(1, sizeof *aio);
    *aio = (nng_aio){.callback = callback, .data = data, .owner = world->current, .timeout_ms = -1};
    *out = aio;
    return 0;
}

void aio_withdraw(nng_aio *aio)
{
    world_cancel(aio->event);
    aio->event = NULL;
    if (aio->waits_in)
        aio->waits_in->aio = NULL;
    aio->waits_in = NULL;
}

void nng_aio_stop(nng_aio *aio)
{
    aio_withdraw(aio);
    aio->ends = false;
}

void nng_aio_free(nng_aio *aio)
{
    if (!aio)
        return;
    if (aio->ends)
        free(aio->message); /* it has come, and nobody was told */
    aio_withdraw(aio);
    free(aio);
}

int nng_aio_result(nng_aio *aio)
{
    return aio->result;
}

void nng_aio_set_msg(nng_aio *aio, nng_msg *message)
{
    aio->message = message;
}

nng_msg *nng_aio_get_msg(nng_aio *aio)
{
    return aio->message;
}

void nng_aio_set_timeout(nng_aio *aio, nng_duration timeout_ms)
{
    aio->timeout_ms = timeout_ms;
}

static void run_callback(void *data)
{
    nng_aio *aio = data;
    struct actor *owner = aio->owner, *before = actor_enter(owner);
    aio->event = NULL;
    aio->ends = false;
    aio->callback(aio->data);
    actor_leave(before);
    actor_wake(owner);
}

void aio_finish(nng_aio *aio, int result)
{
    aio_withdraw(aio);
    aio->result = result;
    aio->ends = true;
    aio->event = world_after(0, run_callback, aio);
}

static void time_out(void *data)
{
    nng_aio *aio = data;
    aio->event = NULL;
    aio_finish(aio, NNG_ETIMEDOUT);
}

void aio_wait(nng_aio *aio, struct context *context)
{
    aio->waits_in = context;
    context->aio = aio;
    if (aio->timeout_ms >= 0)
        aio->event = world_after((uint64_t)aio->timeout_ms, time_out, aio);
}

void nng_sleep_aio(nng_duration time_ms, nng_aio *aio)
{
    aio_withdraw(aio);
    aio->result = 0;
    aio->event = world_after((uint64_t)time_ms, run_callback, aio);
}

/* Sockets. */

static int open_socket(nng_socket *out, bool is_server)
{
    struct socket *socket = xcalloc(1, sizeof *socket);
    socket->is_server = is_server;
    socket->owner = world->current;
    socket->waiting_end = &socket->waiting;
    socket->id = out->id = table_add(&sockets, socket);
    return 0;
}

int nng_rep0_open(nng_socket *out)
{
    return open_socket(out, true);
}

int nng_req0_open(nng_socket *out)
{
    return open_socket(out, false);
}

int nng_socket_set_size(nng_socket id, const char *option, size_t value)
{
    (void)id, (void)option, (void)value;
    return 0;
}

int nng_socket_set_ms(nng_socket id, const char *option, nng_duration value)
{
    (void)id, (void)option, (void)value;
    return 0;
}

int nng_socket_set_bool(nng_socket id, const char *option, bool value)
{
    (void)id, (void)option, (void)value;
    return 0;
}

int nng_pipe_notify(nng_socket id, nng_pipe_ev event, nng_pipe_cb callback, void *data)
{
    struct socket *socket = table_get(&sockets, id.id);
    socket->notify = callback;
    socket->notify_data = data;
    socket->notify_on[event] = true;
    return 0;
}

void socket_notify(struct socket *socket, const struct pipe *pipe, nng_pipe_ev event)
{
    if (socket->closed || !socket->notify_on[event])
        return;
    struct actor *before = actor_enter(socket->owner);
    socket->notify((nng_pipe){pipe->id}, event, socket->notify_data);
    actor_leave(before);
    actor_wake(socket->owner);
}

static uint16_t port_of(const char *address)
{
    const char *colon = strrchr(address, ':');
    return (uint16_t)strtoul(colon + 1, NULL, 10);
}

int nng_listener_create(nng_listener *out, nng_socket id, const char *address)
{
    struct socket *socket = table_get(&sockets, id.id);
    socket->port = port_of(address);
    out->id = socket->id;
    return 0;
}

int nng_listener_start(nng_listener listener, int flags)
{
    (void)flags;
    ((struct socket *)table_get(&sockets, listener.id))->listener = listener.id;
    return 0;
}

int nng_listener_close(nng_listener listener)
{
    ((struct socket *)table_get(&sockets, listener.id))->listener = 0;
    return 0;
}

int nng_listener_get_int(nng_listener listener, const char *option, int *out)
{
    (void)option;
    *out = ((struct socket *)table_get(&sockets, listener.id))->port;
    return 0;
}

int nng_listener_id(nng_listener listener)
{
    return listener.id ? (int)listener.id : -1;
}

struct socket *socket_serving(const struct actor *server, uint16_t port)
{
    for (size_t i = sockets.count; i-- > 0;) {
        struct socket *socket = sockets.items[i];
        if (socket->owner == server && !socket->closed && socket->listener && socket->port == port)
            return socket;
    }
    return NULL;
}

int nng_dialer_create(nng_dialer *out, nng_socket id, const char *address)
{
    struct dialer *dialer = xcalloc(1, sizeof *dialer);
    dialer->socket = table_get(&sockets, id.id);
    dialer->port = port_of(address);
    dialer->id = out->id = table_add(&dialers, dialer);
    dialer->socket->dialer = dialer;
    return 0;
}

int nng_dialer_start(nng_dialer id, int flags)
{
    (void)flags;
    dialer_start(table_get(&dialers, id.id));
    return 0;
}

int nng_dialer_id(nng_dialer dialer)
{
    return dialer.id ? (int)dialer.id : -1;
}

static void close_pipes(struct socket *socket)
{
    while (socket->pipes)
        pipe_close(socket->pipes, socket->is_server ? SERVER : CLIENT);
}

int nng_dialer_close(nng_dialer id)
{
    struct dialer *dialer = table_get(&dialers, id.id);
    if (dialer->closed)
        return NNG_ECLOSED;
    dialer_stop(dialer);
    if (dialer->socket->dialer == dialer)
        dialer->socket->dialer = NULL;
    close_pipes(dialer->socket);
    return 0;
}

int nng_close(nng_socket id)
{
    struct socket *socket = table_get(&sockets, id.id);
    if (!socket || socket->closed)
        return NNG_ECLOSED;
    socket->closed = true;
    if (socket->dialer)
        dialer_stop(socket->dialer);
    close_pipes(socket);
    contexts_close_of(socket);
    for (size_t i = 0; i < socket->backlog_count; i++)
        free(socket->backlog[i]);
    free(socket->backlog);
    socket->backlog = NULL;
    socket->backlog_count = 0;
    return 0;
}

/* Pipes. */

int nng_pipe_id(nng_pipe pipe)
{
    return pipe.id ? (int)pipe.id : -1;
}

nng_listener nng_pipe_listener(nng_pipe id)
{
    const struct pipe *pipe = pipe_of(id.id);
    return (nng_listener){pipe && pipe->open[SERVER] ? pipe->socket[SERVER]->listener : 0};
}

int nng_pipe_close(nng_pipe id)
{
    pipe_close(pipe_of(id.id), CLIENT);
    return 0;
}

/* common/rpc/nng_fixes.h: this NNG hangs on nothing. */
int nng_fixes_check(struct error *err)
{
    (void)err;
    return 0;
}

size_t handshakes_end(const uint16_t *ports, size_t count, uint64_t older_ms)
{
    (void)ports, (void)count, (void)older_ms;
    return 0;
}

const char *nng_strerror(int rc)
{
    return rc == NNG_ETIMEDOUT    ? "Timed out"
           : rc == NNG_ECONNRESET ? "Connection reset"
                                  : "Not possible";
}

/* ---- contexts ---- */

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

static void context_enqueue(struct context *context)
{
    if (context->queued)
        return;
    context->queued = true;
    context->next = NULL;
    *context->socket->waiting_end = context;
    context->socket->waiting_end = &context->next;
}

static struct context *context_dequeue(struct socket *socket)
{
    struct context *context = socket->waiting;
    socket->waiting = context->next;
    if (!socket->waiting)
        socket->waiting_end = &socket->waiting;
    context->queued = false;
    return context;
}

static void context_leave_queue(struct context *context)
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

static void context_leave_socket(const struct context *context)
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
    context_leave_queue(context);
    context_leave_socket(context);
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
static void context_send_request(struct context *context, struct pipe *pipe, nng_aio *aio)
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
static void context_send_answer(struct context *context, nng_aio *aio)
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
        context_send_answer(context, aio);
        return;
    }
    free(context->answer);
    context->answer = NULL;
    struct pipe *pipe = pipe_open_of(socket);
    if (pipe) {
        context_send_request(context, pipe, aio);
        return;
    }
    aio_wait(aio, context);
    context_enqueue(context);
}

void socket_flush(struct socket *socket)
{
    while (socket->waiting) {
        struct context *context = context_dequeue(socket);
        if (context->aio)
            context_send_request(context, pipe_open_of(socket), context->aio);
    }
}

static void context_deliver(struct context *context, nng_aio *aio, nng_msg *message)
{
    context->pipe = message->pipe;
    context->peer = message->context;
    context->serial = message->serial;
    context->ask = check_ask(message->body, message->size);
    aio->message = message;
    aio_finish(aio, 0);
}

static void context_receive_request(struct context *context, nng_aio *aio)
{
    struct socket *socket = context->socket;
    if (socket->backlog_count == 0) {
        aio_wait(aio, context);
        context_enqueue(context);
        return;
    }
    nng_msg *message = socket->backlog[0];
    memmove(socket->backlog, socket->backlog + 1,
            --socket->backlog_count * sizeof *socket->backlog);
    context_deliver(context, aio, message);
}

void nng_ctx_recv(nng_ctx id, nng_aio *aio)
{
    struct context *context = table_get(&contexts, id.id);
    aio_withdraw(aio);
    if (context->socket->is_server) {
        context_receive_request(context, aio);
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

static void context_take_request(struct socket *socket, nng_msg *message)
{
    while (socket->waiting) {
        struct context *context = context_dequeue(socket);
        if (context->aio) {
            context_deliver(context, context->aio, message);
            return;
        }
    }
    socket->backlog = grow(socket->backlog, socket->backlog_count, &socket->backlog_capacity,
                           sizeof *socket->backlog);
    socket->backlog[socket->backlog_count++] = message;
}

/* One that nobody waits for any more is dropped. */
static void context_take_answer(nng_msg *message)
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
        context_take_request(socket, message);
    else
        context_take_answer(message);
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
