/* web.c - libmicrohttpd on the caller's own thread: its sockets are in one epoll descriptor, which
 * the caller adds to its own loop.
 *
 * What strangers can cost is bounded: CONNECTIONS_MAX connections, of which idle ones are closed
 * after IDLE_S, and MEMORY_MAX bytes for each request. Clients that never stop talking are limited
 * to ADDRESS_MAX connections per address and keep nobody else from being answered.
 *
 * Streams are responses that go on: server-sent events as in the HTML standard. libmicrohttpd asks
 * for the next bytes of a response when it can send some. If there are none, its connection is
 * suspended, so it does not ask again until web_wake() finds that there are. It does not notice
 * that the peer of a suspended connection is gone, so an empty comment is sent whenever nothing
 * else was for QUIET_MS, and a client that does not take what is sent is closed like any other. */
#include "coordinator/web/web.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <mbedtls/constant_time.h>
#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/rpc/address.h"
#include "common/trust/secret.h"

#define CONNECTIONS_MAX 256u
#define ADDRESS_MAX 64u
#define IDLE_S 15u
#define MEMORY_MAX ((size_t)32 << 10)
#define BACKLOG 64
#define STREAMS_MAX 32u
#define QUIET_MS 10000u
#define BLOCK_SIZE ((size_t)4 << 10) /* the most that libmicrohttpd asks for at once */
#define BEARER "Bearer "

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

struct web_request {
    struct MHD_Connection *connection;
    const char *rest;
};

const char *web_rest(const struct web_request *request)
{
    return request->rest;
}

const char *web_parameter(const struct web_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *web_last_event(const struct web_request *request)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, "Last-Event-ID");
}

/* Where pages are served: HOST:PORT, unencrypted on loopback only. */

/* The address has `tls` set unless it is on loopback. -EINVAL. */
static int web_address_parse(const char *text, struct rpc_address *address, struct error *err)
{
    struct error ignored;
    char *plain = xasprintf("tcp://%s", text), *secure = xasprintf("tls+%s", plain);
    int rc = rpc_address_parse(plain, address, &ignored);
    if (rc == -EACCES)
        rc = rpc_address_parse(secure, address, &ignored);
    free(secure);
    free(plain);
    if (rc < 0 || strchr(text, '/'))
        return error_set(err, -EINVAL, "'%s' is no HOST:PORT, as in 127.0.0.1:7079", text);
    return 0;
}

int web_check(const char *text, bool has_bundle, bool has_token, struct error *err)
{
    struct rpc_address address;
    int rc = web_address_parse(text, &address, err);
    if (rc < 0 || !address.tls)
        return rc;
    if (!has_bundle)
        return error_set(err, -EINVAL,
                         "%s is not on loopback: other machines are served over TLS only; name a "
                         "folder of certificates with --tls, or write 127.0.0.1:%u",
                         text, address.port);
    if (!has_token)
        return error_set(err, -EINVAL,
                         "%s is not on loopback: whoever reads there has to show a token; name a "
                         "file that has it by http_token",
                         text);
    return 0;
}

/* Without the brackets around a numeric IPv6 address. */
static char *address_bare_host(const struct rpc_address *address)
{
    char *host = xstrdup(address->host);
    size_t length = strlen(host);
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        memmove(host, host + 1, length - 1);
    }
    return host;
}

/* A descriptor, or a negative errno without a message. */
static int address_listen_at(const struct addrinfo *place)
{
    const int on = 1;
    int fd = socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) < 0 ||
        bind(fd, place->ai_addr, place->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static int socket_port(int fd, uint16_t *port)
{
    struct sockaddr_in6 bound = {0}; /* large enough for IPv4 addresses too */
    socklen_t size = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &size) < 0)
        return -errno;
    const struct sockaddr_in *v4 = (const void *)&bound;
    *port = ntohs(bound.sin6_family == AF_INET6 ? bound.sin6_port : v4->sin_port);
    return 0;
}

/* Open a listening socket; *port is its actual port. A negative errno with a message. */
static int web_address_listen(const struct rpc_address *address, uint16_t *port, struct error *err)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *places;
    char number[8], *host = address_bare_host(address);
    snprintf(number, sizeof number, "%u", address->port);
    int rc = getaddrinfo(host, number, &hints, &places);
    free(host);
    if (rc != 0)
        return error_set(err, -EADDRNOTAVAIL, "%s: %s", address->host, gai_strerror(rc));
    int fd = address_listen_at(places);
    freeaddrinfo(places);
    if (fd >= 0 && (rc = socket_port(fd, port)) < 0) {
        close(fd);
        fd = rc;
    }
    if (fd < 0)
        return error_set(err, fd, "listen at %s:%u: %s", address->host, address->port,
                         fd == -EADDRINUSE ? "the port is in use" : strerror(-fd));
    return fd;
}

/* "https://HOST:PORT" */
static void web_address_print(char *out, size_t size, const struct rpc_address *address,
                              uint16_t port)
{
    snprintf(out, size, "http%s://%s:%u", address->tls ? "s" : "", address->host, port);
}

/* Which requests are answered. */

static bool token_is_shown(const char *authorization, const char *token)
{
    if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
        return false;
    const char *shown = authorization + strlen(BEARER);
    return strlen(shown) == strlen(token) && mbedtls_ct_memcmp(shown, token, strlen(token)) == 0;
}

/* "localhost:7079" and the like: names that cannot be made to resolve to another machine. */
static bool host_is_loopback(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 &&
            (host[length] == '\0' || host[length] == ':'))
            return true;
    }
    return false;
}

/* Whether the request was made by a page of another site, according to the browser. */
static bool origin_is_foreign(const char *origin, const char *host)
{
    const char *of = origin ? strstr(origin, "://") : NULL;
    return origin && (!of || !host || strcasecmp(of + strlen("://"), host) != 0);
}

unsigned web_judge(const struct web_headers *headers, const struct web_page *page, const char *url,
                   const char *token, struct error *err)
{
    if (strcmp(headers->method, "GET") != 0 && strcmp(headers->method, "HEAD") != 0) {
        error_set(err, 0, "pages are read, by GET or HEAD, and not changed");
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    if (origin_is_foreign(headers->origin, headers->host)) {
        error_set(err, 0, "a page of another site asks for it");
        return MHD_HTTP_FORBIDDEN;
    }
    if (!token && (!headers->host || !host_is_loopback(headers->host))) {
        error_set(err, 0, "the Host of a request has to be localhost, 127.0.0.1 or [::1] here");
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (token && !(page && page->open) && !token_is_shown(headers->authorization, token)) {
        error_set(err, 0, "it needs the token: Authorization: Bearer TOKEN");
        return MHD_HTTP_UNAUTHORIZED;
    }
    if (!page) {
        error_set(err, 0, "there is no page '%.64s'", url);
        return MHD_HTTP_NOT_FOUND;
    }
    return 0;
}

/* The HTTP status for an errno of a page. */
static unsigned web_status(int rc)
{
    switch (rc) {
    case -ENOENT:
        return MHD_HTTP_NOT_FOUND;
    case -EINVAL:
        return MHD_HTTP_BAD_REQUEST;
    case -EBUSY:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}

/* Pages may load only our own resources and must not be embedded by anybody. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* The headers that every response has. */
static void web_head(struct MHD_Response *response, const char *type)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "Content-Security-Policy", POLICY);
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
}

/* Responses that go on. */

/* The greeting tells after how many milliseconds to reconnect. */
static const char greeting[] = "retry: 2000\n\n", nothing[] = ":\n\n";

struct stream_open {
    struct web *web;
    struct MHD_Connection *connection;
    const struct web_stream *kind;
    void *state;
    char *text; /* the text being sent, and how far it is */
    size_t size, sent;
    uint64_t spoke_ms;
    bool suspended, gone; /* the client has gone */
};

static void stream_say(struct stream_open *stream, const char *text)
{
    stream->text = xstrdup(text);
    stream->size = strlen(text);
}

/* Fetch the next text, if there is one. */
static int stream_refill(struct stream_open *stream)
{
    struct error err;
    int rc = 0;
    uint64_t now_ms = clock_ms();
    free(stream->text);
    stream->text = NULL;
    stream->size = stream->sent = 0;
    if (stream->kind->ready_cb(stream->web->data, stream->state))
        rc = stream->kind->next_cb(stream->web->data, stream->state, &stream->text, &stream->size,
                                   &err);
    if (rc == 0 && !stream->text && now_ms - stream->spoke_ms >= QUIET_MS)
        stream_say(stream, nothing);
    if (stream->text)
        stream->spoke_ms = now_ms;
    return rc;
}

/* libmicrohttpd's MHD_ContentReaderCallback. */
static ssize_t stream_give(void *data, uint64_t position, char *out, size_t size_max)
{
    struct stream_open *stream = data;
    (void)position;
    if (stream->web->closing || stream->gone)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream->sent == stream->size && stream_refill(stream) < 0)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    size_t left = stream->size - stream->sent, size = left < size_max ? left : size_max;
    if (size == 0) {
        stream->suspended = true;
        MHD_suspend_connection(stream->connection);
        return 0;
    }
    memcpy(out, stream->text + stream->sent, size);
    stream->sent += size;
    return (ssize_t)size;
}

/* libmicrohttpd's MHD_ContentReaderFreeCallback: the client has gone. */
static void stream_end(void *data)
{
    struct stream_open *stream = data;
    struct web *web = stream->web;
    size_t i = 0;
    while (web->streams[i] != stream)
        i++;
    web->streams[i] = web->streams[--web->stream_count];
    stream->kind->close_cb(stream->state);
    free(stream->text);
    free(stream);
}

static unsigned web_count_followers(const struct web *web)
{
    unsigned count = 0;
    for (size_t i = 0; i < web->stream_count; i++)
        count += !web->streams[i]->gone;
    return count;
}

/* Answer with the page's stream. 0: *result is for libmicrohttpd. -EBUSY: too many are open.
 * Otherwise an errno of the page. */
static int web_follow(struct web *web, const struct web_page *page,
                      const struct web_request *request, struct MHD_Connection *connection,
                      enum MHD_Result *result, struct error *err)
{
    void *state;
    if (web_count_followers(web) == STREAMS_MAX)
        return error_set(err, -EBUSY,
                         "%u streams are followed already, and there are no more: ask for lists "
                         "instead",
                         STREAMS_MAX);
    int rc = page->stream->open_cb(web->data, request, &state, err);
    if (rc < 0)
        return rc;
    struct stream_open *stream = xcalloc(1, sizeof *stream);
    *stream = (struct stream_open){.web = web,
                                   .connection = connection,
                                   .kind = page->stream,
                                   .state = state,
                                   .spoke_ms = clock_ms()};
    stream_say(stream, greeting);
    web->streams[web->stream_count++] = stream;
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, BLOCK_SIZE, stream_give, stream, stream_end);
    if (!response) {
        stream_end(stream);
        *result = MHD_NO;
        return 0;
    }
    web_head(response, page->type);
    *result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return 0;
}

static uint64_t stream_due_ms(const struct stream_open *stream)
{
    return stream->spoke_ms + QUIET_MS;
}

/* libmicrohttpd itself watches connections that are not suspended. */
static void web_see_who_is_gone(struct web *web)
{
    struct pollfd fds[CONNECTIONS_MAX];
    for (size_t i = 0; i < web->stream_count; i++) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(web->streams[i]->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        fds[i] = (struct pollfd){.fd = web->streams[i]->suspended ? info->connect_fd : -1,
                                 .events = POLLRDHUP};
    }
    if (poll(fds, web->stream_count, 0) <= 0)
        return;
    for (size_t i = 0; i < web->stream_count; i++)
        web->streams[i]->gone |= fds[i].revents != 0;
}

static bool stream_may_go_on(const struct web *web, const struct stream_open *stream,
                             uint64_t now_ms)
{
    return web->closing || stream->gone || now_ms >= stream_due_ms(stream) ||
           stream->kind->ready_cb(web->data, stream->state);
}

/* Let streams that have something to say, or nobody listening, continue at the next MHD_run(); all
 * of them if the web is closing. */
static void web_wake(struct web *web)
{
    uint64_t now_ms = clock_ms();
    if (web->stream_count > 0)
        web_see_who_is_gone(web);
    for (size_t i = 0; i < web->stream_count; i++) {
        struct stream_open *stream = web->streams[i];
        if (!stream->suspended || !stream_may_go_on(web, stream, now_ms))
            continue;
        stream->suspended = false;
        MHD_resume_connection(stream->connection);
    }
}

/* Milliseconds until a stream has something to say without new events; -1: never. */
static int web_wake_ms(const struct web *web)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < web->stream_count; i++)
        if (web->streams[i]->suspended && stream_due_ms(web->streams[i]) < next_ms)
            next_ms = stream_due_ms(web->streams[i]);
    if (next_ms == UINT64_MAX)
        return -1;
    uint32_t left_ms = clock_left_ms(next_ms, clock_ms());
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

static const struct web_page *web_find(const struct web *web, const char *path, const char **rest)
{
    for (const struct web_page *page = web->pages; page->path; page++) {
        size_t length = strlen(page->path);
        bool beneath = length > 1 && page->path[length - 1] == '/';
        if (beneath ? strncmp(page->path, path, length) == 0 && path[length]
                    : strcmp(page->path, path) == 0) {
            *rest = path + length;
            return page;
        }
    }
    return NULL;
}

/* Takes ownership of the text if it is to be freed. */
static enum MHD_Result web_answer(struct MHD_Connection *connection, unsigned status,
                                  const char *type, void *text, size_t size,
                                  enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, text, mode);
    if (!response) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free(text);
        return MHD_NO;
    }
    web_head(response, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    if (status == MHD_HTTP_UNAUTHORIZED)
        MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                                "Bearer realm=\"gimbal\"");
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "10");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result web_refuse(struct MHD_Connection *connection, unsigned status,
                                  const struct error *err)
{
    json_t *json =
        json_pack("{s:s, s:s, s:i, s:s}", "type", "about:blank", "title",
                  MHD_get_reason_phrase_for(status), "status", (int)status, "detail", err->text);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL; /* NULL: the path is not UTF-8 */
    json_decref(json);
    if (!text)
        text = xstrdup("{}");
    return web_answer(connection, status, "application/problem+json", text, strlen(text),
                      MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result web_show(struct web *web, const struct web_page *page,
                                const struct web_request *request)
{
    struct error err;
    enum MHD_Result result;
    size_t size;
    char *text;
    int rc;
    if (page->stream) {
        rc = web_follow(web, page, request, request->connection, &result, &err);
        return rc < 0 ? web_refuse(request->connection, web_status(rc), &err) : result;
    }
    if (page->bytes) /* libmicrohttpd does not write to it, whatever the type says */
        return web_answer(request->connection, MHD_HTTP_OK, page->type, (void *)page->bytes,
                          page->size, MHD_RESPMEM_PERSISTENT);
    rc = page->make_cb(web->data, request, &text, &size, &err);
    if (rc < 0)
        return web_refuse(request->connection, web_status(rc), &err);
    return web_answer(request->connection, MHD_HTTP_OK, page->type, text, size,
                      MHD_RESPMEM_MUST_FREE);
}

/* libmicrohttpd's MHD_AccessHandlerCallback: called when the headers have arrived, again for each
 * part of a body, which is ignored, and a last time. A request is refused at the first call. */
static enum MHD_Result web_handle(void *data, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *body,
                                  size_t *body_size, void **state)
{
    struct web *web = data;
    (void)version, (void)body;
    struct web_headers headers = {
        .method = method,
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN),
        .authorization =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION),
    };
    struct web_request request = {.connection = connection, .rest = ""};
    const struct web_page *page = web_find(web, url, &request.rest);
    struct error err;
    unsigned status = web_judge(&headers, page, url, web->token, &err);
    if (status)
        return web_refuse(connection, status, &err);
    if (!*state || *body_size > 0) {
        *state = (void *)page;
        *body_size = 0;
        return MHD_YES;
    }
    return web_show(web, page, &request);
}

/* Failures of single connections are not ours to report. */
static void web_note(void *data, const char *format, va_list arguments)
{
    char words[256];
    (void)data;
    vsnprintf(words, sizeof words, format, arguments);
    words[strcspn(words, "\n")] = '\0';
    log_line(LOG_DEBUG, "http: %s", words);
}

/* Takes ownership of the socket. */
static int web_start(struct web *web, int fd, const struct bundle *bundle, struct error *err)
{
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_KEY, 0, bundle ? bundle->key : NULL},
        {MHD_OPTION_HTTPS_MEM_CERT, 0, bundle ? bundle->certificate : NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags =
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (bundle ? MHD_USE_TLS : 0u);
    if (bundle && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES) {
        close(fd);
        return error_set(err, -ENOTSUP,
                         "the libmicrohttpd of this machine knows no TLS: serve on loopback");
    }
    web->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, web_handle, web, MHD_OPTION_EXTERNAL_LOGGER,
                         web_note, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                         CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT, ADDRESS_MAX,
                         MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                         MEMORY_MAX, MHD_OPTION_ARRAY, bundle ? tls : none, MHD_OPTION_END);
    if (web->daemon)
        return 0;
    close(fd);
    return error_set(err, -EINVAL, "libmicrohttpd does not start%s",
                     bundle ? ": it makes nothing of the certificate" : "");
}

int web_open(const struct web_options *options, struct web **out, struct error *err)
{
    struct rpc_address address = {0};
    uint16_t port = 0;
    int rc = web_check(options->address, options->bundle, options->token, err);
    if (rc == 0)
        rc = web_address_parse(options->address, &address, err);
    if (rc < 0)
        return rc;
    int fd = web_address_listen(&address, &port, err);
    if (fd < 0)
        return fd;
    struct web *web = xcalloc(1, sizeof *web);
    web->pages = options->pages;
    web->data = options->data;
    web->token = options->token ? xstrdup(options->token) : NULL;
    web_address_print(web->url, sizeof web->url, &address, port);
    rc = web_start(web, fd, address.tls ? options->bundle : NULL, err);
    if (rc < 0) {
        web_close(web);
        return rc;
    }
    *out = web;
    return 0;
}

void web_close(struct web *web)
{
    if (!web)
        return;
    web->closing = true;
    web_wake(web);
    if (web->daemon)
        MHD_stop_daemon(web->daemon); /* also closes its socket */
    secret_free(web->token);
    free(web);
}

const char *web_url(const struct web *web)
{
    return web->url;
}

int web_fd(const struct web *web)
{
    return MHD_get_daemon_info(web->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int web_timeout_ms(const struct web *web)
{
    MHD_UNSIGNED_LONG_LONG left_ms;
    int wake_ms = web_wake_ms(web);
    if (MHD_get_timeout(web->daemon, &left_ms) != MHD_YES)
        return wake_ms;
    int own_ms = left_ms > INT_MAX ? INT_MAX : (int)left_ms;
    return wake_ms >= 0 && wake_ms < own_ms ? wake_ms : own_ms;
}

void web_run(struct web *web)
{
    web_wake(web);
    MHD_run(web->daemon);
}
