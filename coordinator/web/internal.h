/* internal.h - what the files of web/ share. */
#ifndef COORDINATOR_WEB_INTERNAL_H
#define COORDINATOR_WEB_INTERNAL_H

#include "common/rpc/address.h"
#include "coordinator/web/web.h"

#include <microhttpd.h>
#include <stdint.h>

/* place.c: HOST:PORT as an address, which has `tls` where it is not on loopback. -EINVAL. */
int web_place_parse(const char *text, struct rpc_address *address, struct error *err);
/* A socket that listens there; *port is its real one. -errno in words. */
int web_place_listen(const struct rpc_address *address, uint16_t *port, struct error *err);
/* "https://HOST:PORT" */
void web_place_print(char *out, size_t size, const struct rpc_address *address, uint16_t port);

#define CONNECTIONS_MAX 256u

struct web {
    struct MHD_Daemon *daemon;
    const struct web_page *pages;
    void *data;
    char *token;
    char url[96];
    struct stream_open *streams[CONNECTIONS_MAX]; /* whoever follows one */
    size_t stream_count;
    bool closing;
};

/* web.c: what every answer says of itself, whatever it is. */
void web_head(struct MHD_Response *response, const char *type);

/* stream.c: answer with the page's stream. 0, and *result is libmicrohttpd's; -EBUSY: enough are
 * open; -errno of the page. */
int web_follow(struct web *web, const struct web_page *page, const struct web_question *question,
               struct MHD_Connection *connection, enum MHD_Result *result, struct error *err);
/* Those that have something to say, or nobody to say it to, go on with the next MHD_run(); all,
 * where the web is closing. */
void web_wake(struct web *web);
/* Milliseconds until one of them has something to say of its own accord; -1: never. */
int web_wake_ms(const struct web *web);

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
