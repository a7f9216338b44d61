/* internal.h - what the files of web/ share. */
#ifndef COORDINATOR_WEB_INTERNAL_H
#define COORDINATOR_WEB_INTERNAL_H

#include "common/rpc/address.h"
#include "coordinator/web/web.h"

#include <stdint.h>

/* place.c: HOST:PORT as an address, which has `tls` where it is not on loopback. -EINVAL. */
int web_place_parse(const char *text, struct rpc_address *address, struct error *err);
/* A socket that listens there; *port is its real one. -errno in words. */
int web_place_listen(const struct rpc_address *address, uint16_t *port, struct error *err);
/* "https://HOST:PORT" */
void web_place_print(char *out, size_t size, const struct rpc_address *address, uint16_t port);

/* What a request says of where it comes from; NULL where it has no such header. */
struct web_request {
    const char *method, *host, *origin, *authorization;
};
/* rules.c: 0, or the HTTP status by which it is refused, with its words. token NULL: none is asked
 * for. */
unsigned web_judge(const struct web_request *request, const struct web_page *page, const char *url,
                   const char *token, struct error *err);
/* By which a page's -errno is told. */
unsigned web_status(int rc);

#endif
