/* stream.c - responses that go on: server-sent events as in the HTML standard.
 *
 * libmicrohttpd asks for the next bytes of a response when it can send some. If there are none, its
 * connection is suspended, so it does not ask again until web_wake() finds that there are. It does
 * not notice that the peer of a suspended connection is gone, so an empty comment is sent whenever
 * nothing else was for QUIET_MS, and a client that does not take what is sent is closed like any
 * other. */
#include "coordinator/web/internal.h"

#include "common/base/memory.h"
#include "common/rpc/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define STREAMS_MAX 32u
#define QUIET_MS 10000u
#define BLOCK_SIZE ((size_t)4 << 10) /* the most that libmicrohttpd asks for at once */

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

static void say(struct stream_open *stream, const char *text)
{
    stream->text = xstrdup(text);
    stream->size = strlen(text);
}

/* Fetch the next text, if there is one. */
static int refill(struct stream_open *stream)
{
    struct error err;
    int rc = 0;
    uint64_t now_ms = rpc_clock_ms();
    free(stream->text);
    stream->text = NULL;
    stream->size = stream->sent = 0;
    if (stream->kind->ready_cb(stream->web->data, stream->state))
        rc = stream->kind->next_cb(stream->web->data, stream->state, &stream->text, &stream->size,
                                   &err);
    if (rc == 0 && !stream->text && now_ms - stream->spoke_ms >= QUIET_MS)
        say(stream, nothing);
    if (stream->text)
        stream->spoke_ms = now_ms;
    return rc;
}

/* libmicrohttpd's MHD_ContentReaderCallback. */
static ssize_t give(void *data, uint64_t position, char *out, size_t size_max)
{
    struct stream_open *stream = data;
    (void)position;
    if (stream->web->closing || stream->gone)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (stream->sent == stream->size && refill(stream) < 0)
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
static void end(void *data)
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

static unsigned count_followers(const struct web *web)
{
    unsigned count = 0;
    for (size_t i = 0; i < web->stream_count; i++)
        count += !web->streams[i]->gone;
    return count;
}

int web_follow(struct web *web, const struct web_page *page, const struct web_question *question,
               struct MHD_Connection *connection, enum MHD_Result *result, struct error *err)
{
    void *state;
    if (count_followers(web) == STREAMS_MAX)
        return error_set(err, -EBUSY,
                         "%u streams are followed already, and there are no more: ask for lists "
                         "instead",
                         STREAMS_MAX);
    int rc = page->stream->open_cb(web->data, question, &state, err);
    if (rc < 0)
        return rc;
    struct stream_open *stream = xcalloc(1, sizeof *stream);
    *stream = (struct stream_open){.web = web,
                                   .connection = connection,
                                   .kind = page->stream,
                                   .state = state,
                                   .spoke_ms = rpc_clock_ms()};
    say(stream, greeting);
    web->streams[web->stream_count++] = stream;
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, give, stream, end);
    if (!response) {
        end(stream);
        *result = MHD_NO;
        return 0;
    }
    web_head(response, page->type);
    *result = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return 0;
}

static uint64_t due_ms(const struct stream_open *stream)
{
    return stream->spoke_ms + QUIET_MS;
}

/* libmicrohttpd itself watches connections that are not suspended. */
static void see_who_is_gone(struct web *web)
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

static bool may_go_on(const struct web *web, const struct stream_open *stream, uint64_t now_ms)
{
    return web->closing || stream->gone || now_ms >= due_ms(stream) ||
           stream->kind->ready_cb(web->data, stream->state);
}

void web_wake(struct web *web)
{
    uint64_t now_ms = rpc_clock_ms();
    if (web->stream_count > 0)
        see_who_is_gone(web);
    for (size_t i = 0; i < web->stream_count; i++) {
        struct stream_open *stream = web->streams[i];
        if (!stream->suspended || !may_go_on(web, stream, now_ms))
            continue;
        stream->suspended = false;
        MHD_resume_connection(stream->connection);
    }
}

int web_wake_ms(const struct web *web)
{
    uint64_t next_ms = UINT64_MAX;
    for (size_t i = 0; i < web->stream_count; i++)
        if (web->streams[i]->suspended && due_ms(web->streams[i]) < next_ms)
            next_ms = due_ms(web->streams[i]);
    if (next_ms == UINT64_MAX)
        return -1;
    uint32_t left_ms = rpc_clock_left_ms(next_ms, rpc_clock_ms());
    return left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}
