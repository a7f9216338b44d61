/* network.c - connections: how they are made, delayed, cut, lost without a word, and closed. */
#include "tests/simulation/net.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"

#define REDIAL_MS_MIN 50
#define REDIAL_MS_MAX 2000
/* Until a server learns that the machine behind a connection is gone, or that its way is back and
 * the connection is not. */
#define HALF_OPEN_MS_MAX 30000
#define ECHO_MS_MAX 30000

static struct pipe **pipes; /* by id - 1 */
static size_t pipe_count, pipe_capacity;

static nng_msg *travelling; /* all messages on their way */

static void depart(nng_msg *message, uint64_t delay, event_cb arrives)
{
    message->next = travelling;
    message->link = &travelling;
    if (travelling)
        travelling->link = &message->next;
    travelling = message;
    world_after(delay, arrives, message);
}

static void get_off(nng_msg *message)
{
    *message->link = message->next;
    if (message->next)
        message->next->link = message->link;
}

void pipes_drop(void)
{
    while (travelling) {
        nng_msg *message = travelling;
        get_off(message);
        free(message);
    }
    for (size_t i = 0; i < pipe_count; i++)
        free(pipes[i]);
    free(pipes);
    pipes = NULL;
    pipe_count = pipe_capacity = 0;
}

struct pipe *pipe_of(uint32_t id)
{
    return id > 0 && id <= pipe_count ? pipes[id - 1] : NULL;
}

static uint64_t delay_ms(const struct actor *actor)
{
    return world_between(actor->delay_ms_min, actor->delay_ms_most);
}

struct pipe *pipe_open_of(const struct socket *socket)
{
    for (struct pipe *pipe = socket->pipes; pipe; pipe = pipe->next[CLIENT])
        if (pipe->open[CLIENT])
            return pipe;
    return NULL;
}

static void link_to(struct pipe *pipe, enum side side, struct socket *socket)
{
    pipe->socket[side] = socket;
    pipe->next[side] = socket->pipes;
    socket->pipes = pipe;
    pipe->open[side] = true;
}

static void unlink_from(struct pipe *pipe, enum side side)
{
    struct pipe **at = &pipe->socket[side]->pipes;
    while (*at != pipe)
        at = &(*at)->next[side];
    *at = pipe->next[side];
}

static void retry(struct dialer *dialer);

static void connect_now(void *data)
{
    struct dialer *dialer = data;
    struct actor *actor = dialer->socket->owner;
    dialer->event = NULL;
    struct socket *server = actor->cut || !actor->server || actor->server->doomed
                                ? NULL
                                : socket_serving(actor->server, dialer->port);
    if (!server) {
        retry(dialer);
        return;
    }
    struct pipe *pipe = xcalloc(1, sizeof *pipe);
    pipes = grow(pipes, pipe_count, &pipe_capacity, sizeof *pipes);
    pipes[pipe_count++] = pipe;
    pipe->id = (uint32_t)pipe_count;
    pipe->actor = actor;
    pipe->next_of_actor = actor->pipes;
    actor->pipes = pipe;
    dialer->pause_ms = 0;
    link_to(pipe, SERVER, server);
    link_to(pipe, CLIENT, dialer->socket);
    world_trace("%s is connected, port %u, pipe %u", actor->name, dialer->port, pipe->id);
    socket_notify(server, pipe, NNG_PIPE_EV_ADD_PRE);
    socket_notify(dialer->socket, pipe, NNG_PIPE_EV_ADD_PRE);
    socket_flush(dialer->socket);
}

static void retry(struct dialer *dialer)
{
    if (dialer->closed || dialer->event)
        return;
    uint32_t pause_ms = dialer->pause_ms * 2;
    pause_ms = pause_ms < REDIAL_MS_MIN ? REDIAL_MS_MIN : pause_ms;
    dialer->pause_ms = pause_ms > REDIAL_MS_MAX ? REDIAL_MS_MAX : pause_ms;
    dialer->event = world_after(world_draw(dialer->pause_ms), connect_now, dialer);
}

void dialer_start(struct dialer *dialer)
{
    dialer->event = world_after(delay_ms(dialer->socket->owner), connect_now, dialer);
}

void dialer_stop(struct dialer *dialer)
{
    dialer->closed = true;
    world_cancel(dialer->event);
    dialer->event = NULL;
}

static void arrive(void *data)
{
    nng_msg *message = data;
    struct pipe *pipe = message->pipe;
    get_off(message);
    if (!pipe->open[message->to] || pipe->actor->cut)
        free(message);
    else
        socket_message(pipe->socket[message->to], message);
}

static void arrive_late(void *data)
{
    nng_msg *message = data;
    get_off(message);
    struct socket *server =
        socket_serving(message->pipe->actor->server, message->pipe->socket[SERVER]->port);
    message->pipe = server ? server->pipes : NULL;
    if (!message->pipe)
        free(message);
    else
        socket_message(server, message);
}

/* Once more, much later, over any connection: as what a dead worker had sent, or one that gave
 * up waiting, may come to be looked at when nobody expects it. */
static void echo(const struct pipe *pipe, const nng_msg *message)
{
    nng_msg *copy;
    if (pipe->actor->poll_cb != world->echoes_of || pipe->socket[SERVER]->port % 2 || world->calm ||
        !world_chance(world->faults.echo))
        return;
    nng_msg_alloc(&copy, message->size);
    memcpy(copy->body, message->body, message->size);
    copy->pipe = message->pipe;
    copy->to = SERVER;
    depart(copy, world_draw(ECHO_MS_MAX), arrive_late);
}

void pipe_send(struct pipe *pipe, enum side to, nng_msg *message)
{
    if (!pipe->open[to == CLIENT ? SERVER : CLIENT] || pipe->actor->cut) {
        free(message);
        return;
    }
    message->pipe = pipe;
    message->to = to;
    depart(message, delay_ms(pipe->actor), arrive);
    if (to == SERVER)
        echo(pipe, message);
}

/* On this side it is over. */
static void close_side(struct pipe *pipe, enum side side)
{
    struct socket *socket = pipe->socket[side];
    if (!pipe->open[side])
        return;
    pipe->open[side] = false;
    unlink_from(pipe, side);
    socket_notify(socket, pipe, NNG_PIPE_EV_REM_POST);
    if (side == SERVER)
        return;
    socket_reset(socket, pipe);
    if (socket->dialer && !socket->closed)
        retry(socket->dialer);
}

static void hear_server(void *data)
{
    struct pipe *pipe = data;
    if (pipe->open[SERVER])
        world_trace("%s is gone, pipe %u", pipe->actor->name, pipe->id);
    close_side(pipe, SERVER);
}

static void hear_client(void *data)
{
    close_side(data, CLIENT);
}

void pipe_close(struct pipe *pipe, enum side side)
{
    bool was_open = pipe->open[side];
    close_side(pipe, side);
    if (!was_open || pipe->actor->cut)
        return; /* network_heal sees to the rest */
    world_after(delay_ms(pipe->actor), side == CLIENT ? hear_server : hear_client, pipe);
}

/* What one side has given up the other learns when it next hears of the machine. */
void network_heal(struct actor *actor)
{
    actor->cut = false;
    for (struct pipe *pipe = actor->pipes; pipe; pipe = pipe->next_of_actor) {
        if (pipe->open[CLIENT] == pipe->open[SERVER])
            continue;
        if (pipe->open[SERVER])
            world_after(world_draw(HALF_OPEN_MS_MAX), hear_server, pipe);
        else
            world_after(delay_ms(actor), hear_client, pipe);
    }
}

void network_vanish(struct actor *actor)
{
    for (struct pipe *pipe = actor->pipes; pipe; pipe = pipe->next_of_actor) {
        if (!pipe->open[CLIENT])
            continue;
        pipe->open[CLIENT] = false;
        unlink_from(pipe, CLIENT);
        if (pipe->open[SERVER])
            world_after(world_draw(HALF_OPEN_MS_MAX), hear_server, pipe);
    }
}

void network_break(struct actor *actor)
{
    struct pipe *victim = NULL;
    for (struct pipe *pipe = actor->pipes; pipe; pipe = pipe->next_of_actor)
        if (pipe->open[CLIENT] && pipe->open[SERVER] && (!victim || world_chance(500)))
            victim = pipe;
    if (!victim)
        return;
    world_trace("%s loses pipe %u", actor->name, victim->id);
    pipe_close(victim, world_chance(500) ? CLIENT : SERVER);
}
