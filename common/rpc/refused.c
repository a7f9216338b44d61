/* refused.c - connections that failed their TLS handshake, or have not finished it. NNG never hands
 * these over and only counts them in its statistics. Only the count of failed authentications is
 * used, since its other counts include connections that had been good. */
#include "common/rpc/call.h"
#include "common/rpc/handshakes.h"

#include <string.h>

/* One for each role, and spares. */
#define LISTENERS_MAX 8

static uint64_t value(nng_stat *scope, const char *name)
{
    nng_stat *stat = nng_stat_child(scope);
    while (stat && strcmp(nng_stat_name(stat), name) != 0)
        stat = nng_stat_next(stat);
    return stat ? nng_stat_value(stat) : 0;
}

/* Needed because nng_stat_find_listener() of release 1.5.2 finds a socket's first listener only. */
static uint64_t count_refused(nng_stat *root, nng_listener listener)
{
    for (nng_stat *scope = nng_stat_child(root); scope; scope = nng_stat_next(scope))
        if (strcmp(nng_stat_name(scope), "listener") == 0 &&
            value(scope, "id") == (uint64_t)nng_listener_id(listener))
            return value(scope, "auth");
    return 0;
}

uint64_t rpc_server_handshakes_refused(const struct rpc_server *server)
{
    nng_stat *root;
    uint64_t sum = 0;
    if (nng_stats_get(&root) != 0)
        return 0;
    for (size_t i = 0; i < server->listener_count; i++)
        for (unsigned held = 0; held < 2; held++)
            sum += count_refused(root, server->listeners[i]->nng[held]);
    nng_stats_free(root);
    return sum;
}

size_t rpc_server_end_handshakes(struct rpc_server *server, uint64_t older_ms)
{
    uint16_t ports[2 * LISTENERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < server->listener_count && i < LISTENERS_MAX; i++) {
        const struct listener *listener = server->listeners[i];
        int port = 0;
        nng_listener_get_int(listener->nng[0], NNG_OPT_TCP_BOUND_PORT, &port);
        ports[count++] = (uint16_t)port;
        ports[count++] = listener->held_port;
    }
    return handshakes_end(ports, count, older_ms);
}
