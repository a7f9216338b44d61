/* web.h - pages over HTTP for who watches this process, and for browsers: to be read, never to
 * change anything.
 *
 * On loopback they are for everybody there, in the clear. Elsewhere they go over TLS, with our own
 * certificate, and to who shows the token; but for pages that are open, which tell no more than
 * that we live. GET and HEAD are answered, in the order of the table, and what is not answered
 * says why as application/problem+json (RFC 9457). A page of another site cannot read ours through
 * a browser: Host has to be ours where no token is asked for, and Origin where there is one.
 *
 * All functions are for one thread, on which pages are made; nothing blocks. */
#ifndef COORDINATOR_WEB_WEB_H
#define COORDINATOR_WEB_WEB_H

#include "common/base/error.h"
#include "common/trust/bundle.h"

#include <stdbool.h>
#include <stddef.h>

struct web;

/* What is asked of a page. */
struct web_question;
/* Of the path, what is behind that of a page that ends with '/'; "" elsewhere. */
const char *web_rest(const struct web_question *question);
/* Behind "?name="; NULL: it is not there. */
const char *web_parameter(const struct web_question *question, const char *name);

/* The header by which who follows a stream says what it had last; NULL: it is not there. */
const char *web_last_event(const struct web_question *question);

/* A page that goes on: server-sent events, one after the other for as long as somebody listens. */
struct web_stream {
    /* What is to be followed, from where on: *state is the stream's. -EINVAL: the question's fault,
     * in words. */
    int (*open_cb)(void *data, const struct web_question *question, void **state,
                   struct error *err);
    /* May there be something new? Asked whenever web_run is called. */
    bool (*ready_cb)(void *data, const void *state);
    /* The next events, as the format has them; *out is taken from you. NULL: there are none after
     * all. An error ends the stream. */
    int (*next_cb)(void *data, void *state, char **out, size_t *size, struct error *err);
    void (*close_cb)(void *state);
};

/* Either it is always the same, or it is made, or it goes on. */
struct web_page {
    const char *path, *type; /* "/metrics", or "/jobs/" for all that is beneath; of what it is */
    bool open;               /* to who shows no token */
    const void *bytes;       /* the same for ever, or NULL */
    size_t size;             /* of bytes */
    /* *out is taken from you. -ENOENT, -EINVAL: the question's fault, in words. */
    int (*make_cb)(void *data, const struct web_question *question, char **out, size_t *size,
                   struct error *err);
    const struct web_stream *stream; /* (optional) in place of make_cb */
};

struct web_options {
    const char *address;          /* HOST:PORT; port 0 takes a free one */
    const struct bundle *bundle;  /* (optional) our certificate; needed until web_open returns */
    const char *token;            /* (optional) copied */
    const struct web_page *pages; /* lent for its life; ended by a path of NULL */
    void *data;                   /* given to all of them */
};

/* What is wrong with an address, and what it needs and lacks, without the network: -EINVAL in
 * words. */
int web_check(const char *address, bool has_bundle, bool has_token, struct error *err);
/* *out is yours. -EINVAL as web_check; -EADDRINUSE, -EADDRNOTAVAIL...; -ENOTSUP where the
 * machine's libmicrohttpd knows no TLS. */
int web_open(const struct web_options *options, struct web **out, struct error *err);
/* Accepts NULL. */
void web_close(struct web *web);

/* "http://127.0.0.1:7079", with its real port; lent. */
const char *web_url(const struct web *web);
/* Readable when web_run has something to do; and milliseconds until it has of its own accord, -1:
 * never. */
int web_fd(const struct web *web);
int web_timeout_ms(const struct web *web);
/* Answer what has come, and tell those who follow what is new. */
void web_run(struct web *web);

#endif
