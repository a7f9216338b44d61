/* door.c - where the service listens: once for everybody on loopback, or, with TLS, once for each
 * role. */
#include "coordinator/service/internal.h"

#include "common/base/memory.h"
#include "common/rpc/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Port 0 asks for free ports. The roles need RPC_TLS_PORTS consecutive ones, which are looked for
 * below the range from which the system hands out ports. */
#define PORT_FIRST 20000
#define PORT_COUNT 12000
#define ATTEMPTS 64

static const struct {
    unsigned roles; /* roles that are let in */
    unsigned role;  /* role that the port belongs to */
    enum bundle_role client;
} doors[] = {
    {RPC_WORKER, RPC_WORKER, BUNDLE_WORKER},
    {RPC_USER, RPC_USER, BUNDLE_USER},
    {RPC_ADMIN | RPC_USER, RPC_ADMIN, BUNDLE_ADMIN}, /* and may do all that users may */
};
#define DOORS (sizeof doors / sizeof *doors)

/* Listen for each role at its own port, counted from `port`; if one of them fails, at none. */
static int listen_from(struct service *service, const struct rpc_address *address, unsigned port,
                       const struct bundle *bundle, struct error *err)
{
    int rc = 0;
    if (port + RPC_TLS_PORTS - 1 > UINT16_MAX)
        return error_set(err, -EINVAL,
                         "with TLS a coordinator takes %d ports, and from %u on there are fewer: "
                         "choose a smaller one",
                         RPC_TLS_PORTS, port);
    for (size_t i = 0; i < DOORS && rc == 0; i++) {
        char text[96];
        struct rpc_tls tls = {bundle->certificate, bundle->key, bundle->clients[doors[i].client]};
        rpc_address_print(text, sizeof text, address,
                          (uint16_t)(port + rpc_address_offset(doors[i].role)));
        rc = rpc_server_listen_tls(service->server, doors[i].roles, text, &tls, err);
    }
    if (rc < 0)
        rpc_server_unlisten(service->server);
    return rc;
}

static int listen_tls(struct service *service, const struct rpc_address *address,
                      const struct bundle *bundle, struct error *err)
{
    if (address->port)
        return listen_from(service, address, address->port, bundle, err);
    int rc = -EADDRINUSE;
    for (uint64_t i = 0; i < ATTEMPTS && rc == -EADDRINUSE; i++) {
        uint64_t place = (service->options.instance + i * 101) % (PORT_COUNT / RPC_TLS_PORTS);
        rc = listen_from(service, address, (unsigned)(PORT_FIRST + place * RPC_TLS_PORTS), bundle,
                         err);
    }
    return rc;
}

int service_listen(struct service *service, const char *text, const struct bundle *bundle,
                   struct error *err)
{
    struct rpc_address address;
    int rc = rpc_address_parse(text, &address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(&address, bundle != NULL, err);
    if (rc < 0)
        return rc;
    if (!bundle)
        return rpc_server_listen(service->server, RPC_EVERYBODY, text, err);
    service->door.tls = true;
    service->door.looked_ms = service_now_ms(service);
    return listen_tls(service, &address, bundle, err);
}

const char *service_address(const struct service *service)
{
    return rpc_server_address(service->server, 0);
}

char *service_address_lines(const struct service *service)
{
    if (!service->door.tls)
        return xasprintf("%s\n", service_address(service));
    char *lines = xstrdup("");
    for (size_t i = 0; i < DOORS; i++) {
        char *longer = xasprintf("%s%s %s\n", lines, bundle_role_name(doors[i].client),
                                 rpc_server_address(service->server, i));
        free(lines);
        lines = longer;
    }
    return lines;
}
