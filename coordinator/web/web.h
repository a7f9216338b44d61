/* web.h - read-only pages over HTTP, for monitoring and for browsers.
 *
 * On loopback pages are unencrypted and, unless a token is set, open to everybody on the machine.
 * Elsewhere they use TLS with our own certificate and require a token, except for pages marked as
 * open, which tell no more than that the process is alive. Only GET and HEAD are answered, by the
 * first page of the table whose path matches; errors are explained as application/problem+json (RFC
 * 9457). Pages of other sites cannot read ours through a browser: an Origin has to match Host and,
 * where no token is required, Host has to name loopback.
 *
 * All functions must be called from one thread, on which pages are also made; nothing blocks. */
#ifndef COORDINATOR_WEB_WEB_H
#define COORDINATOR_WEB_WEB_H

#include "common/base/error.h"
#include "common/trust/bundle.h"

#include <stdbool.h>
#include <stddef.h>

struct web;

/* A request for a page. */
struct web_request;
/* The rest of the path after that of a page that ends with '/'; "" for other pages. */
const char *web_rest(const struct web_request *request);
/* The value of "?name="; NULL: it is missing. */
const char *web_parameter(const struct web_request *request, const char *name);

/* The Last-Event-ID header, by which a client tells what it received last; NULL: it is missing. */
const char *web_last_event(const struct web_request *request);

/* A page that goes on: server-sent events for as long as somebody listens. */
struct web_stream {
    /* Begin to follow; *state belongs to the stream. -EINVAL: the request is wrong, with a
     * message. */
    int (*open_cb)(void *data, const struct web_request *request, void **state, struct error *err);
    /* Whether there may be something new; called on every web_run(). */
    bool (*ready_cb)(void *data, const void *state);
    /* The next events in the format of server-sent events; ownership of *out passes to the caller.
     * NULL: there are none after all. An error ends the stream. */
    int (*next_cb)(void *data, void *state, char **out, size_t *size, struct error *err);
    void (*close_cb)(void *state);
};

/* A page is constant (bytes), made on request (make_cb), or a stream. */
struct web_page {
    /* path: "/metrics", or "/jobs/" for everything beneath; type: its media type */
    const char *path, *type;
    bool open;         /* needs no token */
    const void *bytes; /* constant content, or NULL */
    size_t size;       /* of bytes */
    /* Ownership of *out passes to the caller. -ENOENT, -EINVAL: the request is wrong, with a
     * message. */
    int (*make_cb)(void *data, const struct web_request *request, char **out, size_t *size,
                   struct error *err);
    const struct web_stream *stream; /* (optional) instead of make_cb */
};

struct web_options {
    const char *address; /* HOST:PORT; port 0 chooses a free one */
    /* (optional) our certificate; must be valid until web_open() returns */
    const struct bundle *bundle;
    const char *token;            /* (optional) copied */
    const struct web_page *pages; /* lent for the life of the web; ends with a path of NULL */
    void *data;                   /* passed to all callbacks */
};

/* Check an address and what it requires, without using the network: -EINVAL with a message. */
int web_check(const char *address, bool has_bundle, bool has_token, struct error *err);
/* The caller owns *out. -EINVAL as web_check(); -EADDRINUSE, -EADDRNOTAVAIL and others; -ENOTSUP:
 * the installed libmicrohttpd has no TLS. */
int web_open(const struct web_options *options, struct web **out, struct error *err);
/* Accepts NULL. */
void web_close(struct web *web);

/* As in "http://127.0.0.1:7079", with the actual port; lent. */
const char *web_url(const struct web *web);
/* A descriptor that is readable when web_run() has something to do; and the milliseconds until it
 * has anyway, -1: never. */
int web_fd(const struct web *web);
int web_timeout_ms(const struct web *web);
/* Answer requests, and send what is new to those who follow streams. */
void web_run(struct web *web);

/* Where a request comes from; NULL for missing headers. For tests, as the next. */
struct web_headers {
    const char *method, *host, *origin, *authorization;
};
/* 0, or the HTTP status with which the request is refused, with a message. token NULL: none is
 * required. */
unsigned web_judge(const struct web_headers *headers, const struct web_page *page, const char *url,
                   const char *token, struct error *err);

#endif
