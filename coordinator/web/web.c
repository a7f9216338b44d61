/* web.c - libmicrohttpd on the caller's own thread: its sockets are in one epoll descriptor, which
 * the caller adds to its own loop.
 *
 * What strangers can cost is bounded: CONNECTIONS_MAX connections, of which idle ones are closed
 * after IDLE_S, and MEMORY_MAX bytes for each request. Clients that never stop talking are limited
 * to ADDRESS_MAX connections per address and keep nobody else from being answered. */
#include "coordinator/web/internal.h"

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/trust/secret.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESS_MAX 64u
#define IDLE_S 15u
#define MEMORY_MAX ((size_t)32 << 10)

struct web_question {
    struct MHD_Connection *connection;
    const char *rest;
};

const char *web_rest(const struct web_question *question)
{
    return question->rest;
}

const char *web_parameter(const struct web_question *question, const char *name)
{
    return MHD_lookup_connection_value(question->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *web_last_event(const struct web_question *question)
{
    return MHD_lookup_connection_value(question->connection, MHD_HEADER_KIND, "Last-Event-ID");
}

static const struct web_page *find(const struct web *web, const char *path, const char **rest)
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

/* Pages may load only our own resources and must not be embedded by anybody. */
#define POLICY                                                                                     \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "                    \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

void web_head(struct MHD_Response *response, const char *type)
{
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    MHD_add_response_header(response, "Content-Security-Policy", POLICY);
    MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
}

/* Takes ownership of the text if it is to be freed. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              void *text, size_t size, enum MHD_ResponseMemoryMode mode)
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

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status,
                              const struct error *err)
{
    json_t *json =
        json_pack("{s:s, s:s, s:i, s:s}", "type", "about:blank", "title",
                  MHD_get_reason_phrase_for(status), "status", (int)status, "detail", err->text);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL; /* NULL: the path is not UTF-8 */
    json_decref(json);
    if (!text)
        text = xstrdup("{}");
    return answer(connection, status, "application/problem+json", text, strlen(text),
                  MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result show(struct web *web, const struct web_page *page,
                            const struct web_question *question)
{
    struct error err;
    enum MHD_Result result;
    size_t size;
    char *text;
    int rc;
    if (page->stream) {
        rc = web_follow(web, page, question, question->connection, &result, &err);
        return rc < 0 ? refuse(question->connection, web_status(rc), &err) : result;
    }
    if (page->bytes) /* libmicrohttpd does not write to it, whatever the type says */
        return answer(question->connection, MHD_HTTP_OK, page->type, (void *)page->bytes,
                      page->size, MHD_RESPMEM_PERSISTENT);
    rc = page->make_cb(web->data, question, &text, &size, &err);
    if (rc < 0)
        return refuse(question->connection, web_status(rc), &err);
    return answer(question->connection, MHD_HTTP_OK, page->type, text, size, MHD_RESPMEM_MUST_FREE);
}

/* libmicrohttpd's MHD_AccessHandlerCallback: called when the headers have arrived, again for each
 * part of a body, which is ignored, and a last time. A request is refused at the first call. */
static enum MHD_Result handle(void *data, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **state)
{
    struct web *web = data;
    (void)version, (void)body;
    struct web_request request = {
        .method = method,
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN),
        .authorization =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION),
    };
    struct web_question question = {.connection = connection, .rest = ""};
    const struct web_page *page = find(web, url, &question.rest);
    struct error err;
    unsigned status = web_judge(&request, page, url, web->token, &err);
    if (status)
        return refuse(connection, status, &err);
    if (!*state || *body_size > 0) {
        *state = (void *)page;
        *body_size = 0;
        return MHD_YES;
    }
    return show(web, page, &question);
}

/* Failures of single connections are not ours to report. */
static void note(void *data, const char *format, va_list arguments)
{
    char words[256];
    (void)data;
    vsnprintf(words, sizeof words, format, arguments);
    words[strcspn(words, "\n")] = '\0';
    log_line(LOG_DEBUG, "http: %s", words);
}

/* Takes ownership of the socket. */
static int start(struct web *web, int fd, const struct bundle *bundle, struct error *err)
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
        MHD_start_daemon(flags, 0, NULL, NULL, handle, web, MHD_OPTION_EXTERNAL_LOGGER, note, NULL,
                         MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX,
                         MHD_OPTION_PER_IP_CONNECTION_LIMIT, ADDRESS_MAX,
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
    uint16_t port;
    int rc = web_check(options->address, options->bundle, options->token, err);
    if (rc == 0)
        rc = web_place_parse(options->address, &address, err);
    if (rc < 0)
        return rc;
    int fd = web_place_listen(&address, &port, err);
    if (fd < 0)
        return fd;
    struct web *web = xcalloc(1, sizeof *web);
    web->pages = options->pages;
    web->data = options->data;
    web->token = options->token ? xstrdup(options->token) : NULL;
    web_place_print(web->url, sizeof web->url, &address, port);
    rc = start(web, fd, address.tls ? options->bundle : NULL, err);
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
