/* peers.c - connections and their clients: a parked call ends with its connection, a client that
 * has made held calls is gone with its last connection.
 *
 * NNG reports a killed peer within a millisecond, but never one that is stopped or out of reach,
 * whose calls therefore stay until they are due. A client that gave up a connection has another,
 * and the end of the old one may be reported long after. A client that never made a held call
 * may be between its first connection and its second, so it is never reported as gone. */
#include "common/rpc/call.h"

#include "common/base/memory.h"

static struct peer *find(struct rpc_server *server, int pipe)
{
    for (size_t i = 0; i < server->peer_count; i++)
        if (server->peers[i].pipe == pipe)
            return &server->peers[i];
    return NULL;
}

void peers_changed(nng_pipe pipe, nng_pipe_ev event, void *data)
{
    struct rpc_server *server = data;
    int id = nng_pipe_id(pipe);
    pthread_mutex_lock(&server->lock);
    struct peer *peer = find(server, id);
    bool is_gone = event == NNG_PIPE_EV_REM_POST && peer;
    if (event == NNG_PIPE_EV_ADD_PRE && !peer) {
        server->peers =
            grow(server->peers, server->peer_count, &server->peer_capacity, sizeof *server->peers);
        server->peers[server->peer_count++] = (struct peer){.pipe = id};
    } else if (is_gone) {
        server->gone =
            grow(server->gone, server->gone_count, &server->gone_capacity, sizeof *server->gone);
        server->gone[server->gone_count++] = *peer;
        *peer = server->peers[--server->peer_count];
    }
    pthread_mutex_unlock(&server->lock);
    if (is_gone)
        server_raise(server);
}

static struct peer *find_of(struct peer *peers, size_t count, uint64_t client)
{
    for (size_t i = 0; i < count; i++)
        if (peers[i].client == client)
            return &peers[i];
    return NULL;
}

bool peers_end(struct rpc_server *server, struct peer *closed, size_t behind)
{
    if (!closed->client || !closed->holds)
        return false;
    struct peer *other = find_of(closed + 1, behind, closed->client);
    pthread_mutex_lock(&server->lock);
    if (!other)
        other = find_of(server->peers, server->peer_count, closed->client);
    if (other)
        other->holds = true;
    pthread_mutex_unlock(&server->lock);
    return !other;
}

bool peers_claim(struct rpc_server *server, nng_pipe pipe, uint64_t client, bool holds)
{
    pthread_mutex_lock(&server->lock);
    struct peer *peer = find(server, nng_pipe_id(pipe));
    if (peer) {
        peer->client = client;
        peer->holds = peer->holds || holds;
    }
    pthread_mutex_unlock(&server->lock);
    return peer != NULL;
}
