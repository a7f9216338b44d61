/* internal.h - shared by the files of web/; not for others. */
#ifndef COORDINATOR_WEB_INTERNAL_H
#define COORDINATOR_WEB_INTERNAL_H

#include "common/rpc/address.h"
#include "coordinator/web/web.h"

#include <microhttpd.h>
#include <stdint.h>

/* place.c: parse HOST:PORT; the address has `tls` set unless it is on loopback. -EINVAL. */
int web_place_parse(const char *text, struct rpc_address *address, struct error *err);
/* Open a listening socket; *port is its actual port. A negative errno with a message. */
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
    struct stream_open *streams[CONNECTIONS_MAX]; /* one per client that follows a stream */
    size_t stream_count;
    bool closing;
};

/* web.c: set the headers that every response has. */
void web_head(struct MHD_Response *response, const char *type);

/* stream.c: answer with the page's stream. 0: *result is for libmicrohttpd. -EBUSY: too many are
 * open. Otherwise an errno of the page. */
int web_follow(struct web *web, const struct web_page *page, const struct web_question *question,
               struct MHD_Connection *connection, enum MHD_Result *result, struct error *err);
/* Let streams that have something to say, or nobody listening, continue at the next MHD_run(); all
 * of them if the web is closing. */
void web_wake(struct web *web);
/* Milliseconds until a stream has something to say without new events; -1: never. */
int web_wake_ms(const struct web *web);

/* Where a request comes from; NULL for missing headers. */
struct web_request {
    const char *method, *host, *origin, *authorization;
};
/* rules.c: 0, or the HTTP status with which the request is refused, with a message. token NULL:
 * none is required. */
unsigned web_judge(const struct web_request *request, const struct web_page *page, const char *url,
                   const char *token, struct error *err);
/* The HTTP status for an errno of a page. */
unsigned web_status(int rc);

#endif
