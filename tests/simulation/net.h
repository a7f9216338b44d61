/* net.h - inside the simulated NNG: sockets and contexts (nng.c), connections (network.c).
 *
 * As NNG 1.5.2 does with the options that common/rpc sets: a request waits for a connection and
 * is sent once; where its connection closes it ends with ECONNRESET; a dialer tries again after
 * 50 ms to 2 s. Messages of one connection may overtake each other, as they do when several
 * threads take them out of NNG. */
#ifndef TESTS_SIMULATION_NET_H
#define TESTS_SIMULATION_NET_H

#include "tests/simulation/world.h"

#include <nng/nng.h>

enum side { CLIENT, SERVER, SIDES };

struct nng_msg {
    size_t size;
    /* While it travels. */
    nng_msg *next, **link;
    struct pipe *pipe;
    enum side to;
    uint32_t context, serial; /* of the request that it is, or answers */
    unsigned char body[];
};

struct nng_aio {
    void (*callback)(void *data);
    void *data;
    struct actor *owner;
    nng_msg *message;
    int result;
    nng_duration timeout_ms;
    struct event *event; /* its timeout while it waits, or its end */
    bool ends;
    struct context *waits_in;
};

struct socket {
    uint32_t id;
    bool is_server, closed;
    struct actor *owner;
    nng_pipe_cb notify;
    bool notify_on[3]; /* by nng_pipe_ev */
    void *notify_data;
    struct pipe *pipes;
    struct context *contexts;
    struct context *waiting, **waiting_end; /* to send (client), to receive (server) */
    nng_msg **backlog;                      /* that no context takes yet */
    size_t backlog_count, backlog_capacity;
    uint32_t listener; /* its id is the socket's; 0: does not listen */
    uint16_t port;
    struct dialer *dialer;
};

struct dialer {
    uint32_t id;
    struct socket *socket;
    uint16_t port;
    uint32_t pause_ms;
    struct event *event;
    bool closed;
};

struct context {
    uint32_t id;
    struct socket *socket; /* NULL: free */
    struct context *next_of_socket;
    struct context *next; /* in socket->waiting */
    bool queued;
    nng_aio *aio; /* that waits */
    /* A client's request, or what a server's context received. */
    uint32_t serial, peer;
    struct pipe *pipe;
    bool asked, reset;
    nng_msg *answer;
    struct ask *ask; /* of a server: what it was asked, where that is checked */
};

struct pipe {
    uint32_t id;
    struct pipe *next[SIDES]; /* among those of its socket */
    struct socket *socket[SIDES];
    bool open[SIDES];
    struct actor *actor; /* the client's, whose way it is */
    struct pipe *next_of_actor;
};

/* Things by number, from 1 on. */
struct table {
    void **items;
    size_t count, capacity;
};

/* nng.c */
uint32_t table_add(struct table *table, void *item);
void *table_get(const struct table *table, uint32_t id);
/* Frees the items, too. */
void table_finish(struct table *table);
struct socket *socket_of(uint32_t id);
/* The operation ends: its callback runs soon. */
void aio_finish(nng_aio *aio, int result);
/* Out of whatever it waits for; its callback does not run. */
void aio_withdraw(nng_aio *aio);
void aio_wait(nng_aio *aio, struct context *context);
struct socket *socket_serving(const struct actor *server, uint16_t port);
void socket_notify(struct socket *socket, const struct pipe *pipe, nng_pipe_ev event);

void contexts_open(void);
void contexts_close(void);
void contexts_close_of(const struct socket *socket);
void socket_message(struct socket *socket, nng_msg *message);
/* The connection has closed on the client's side: its requests end. */
void socket_reset(struct socket *socket, const struct pipe *pipe);
/* There is a connection: send what waits. */
void socket_flush(struct socket *socket);

/* network.c */
void pipes_drop(void);
struct pipe *pipe_of(uint32_t id);
void dialer_start(struct dialer *dialer);
void dialer_stop(struct dialer *dialer);
/* An open connection of the client's socket, or NULL. */
struct pipe *pipe_open_of(const struct socket *socket);
void pipe_send(struct pipe *pipe, enum side to, nng_msg *message);
/* One side closes it, and the other hears of it if it can. */
void pipe_close(struct pipe *pipe, enum side side);

#endif
