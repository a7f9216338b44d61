/* channel.c - sends and receives length-prefixed messages over a stream socket.
 *
 * Received bytes are buffered until a frame is complete, so that reading never has to block. */
#include "common/message/channel.h"

#include "common/base/memory.h"
#include "common/message/message.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PREFIX 4

int channel_pair(int *parent, int *child, struct error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        int rc = -errno;
        return error_set(err, rc, "socketpair: %s", strerror(-rc));
    }
    *parent = pair[0];
    *child = pair[1];
    return 0;
}

void channel_open(struct channel *channel, int fd)
{
    *channel = (struct channel){.fd = fd};
}

void channel_close(struct channel *channel)
{
    if (channel->fd >= 0)
        close(channel->fd);
    free(channel->buffer);
    *channel = (struct channel){.fd = -1};
}

int channel_write(struct channel *channel, const ProtobufCMessage *message, struct error *err)
{
    size_t size = protobuf_c_message_get_packed_size(message), sent = 0;
    if (size > CHANNEL_FRAME_MAX)
        return error_set(err, -EMSGSIZE, "a message of %zu bytes; at most %u can be read", size,
                         CHANNEL_FRAME_MAX);
    uint8_t *frame = xcalloc(1, PREFIX + size);
    for (int i = 0; i < PREFIX; i++)
        frame[i] = (uint8_t)(size >> (8 * i));
    protobuf_c_message_pack(message, frame + PREFIX);
    while (sent < PREFIX + size) {
        ssize_t n = send(channel->fd, frame + sent, PREFIX + size - sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int rc = errno == ECONNRESET ? -EPIPE : -errno;
            free(frame);
            return error_set(err, rc, "write to the other process: %s", strerror(-rc));
        }
        sent += (size_t)n;
    }
    free(frame);
    return 0;
}

/* The size of the frame at the start of the buffer, prefix included; 0 while it is incomplete, and
 * -EPROTO when it is too large. */
static int64_t whole_frame(const struct channel *channel)
{
    if (channel->used < PREFIX)
        return 0;
    uint32_t size = 0;
    for (int i = 0; i < PREFIX; i++)
        size |= (uint32_t)channel->buffer[i] << (8 * i);
    if (size > CHANNEL_FRAME_MAX)
        return -EPROTO;
    return channel->used >= PREFIX + (size_t)size ? (int64_t)(PREFIX + size) : 0;
}

/* Receive what has arrived, without blocking: 1, 0 when there is nothing, or a negative errno. */
static int channel_take(struct channel *channel)
{
    if (channel->used == channel->size) {
        channel->size = channel->size ? channel->size * 2 : 4096;
        channel->buffer = xrealloc(channel->buffer, channel->size);
    }
    ssize_t n = recv(channel->fd, channel->buffer + channel->used, channel->size - channel->used,
                     MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0 && errno != ECONNRESET)
        return -errno;
    if (n <= 0)
        return -EPIPE;
    channel->used += (size_t)n;
    return 1;
}

int channel_read(struct channel *channel, const ProtobufCMessageDescriptor *type, int timeout_ms,
                 ProtobufCMessage **out, struct error *err)
{
    int64_t frame;
    while ((frame = whole_frame(channel)) == 0) {
        int rc = channel_take(channel);
        if (rc == -EPIPE)
            return error_set(err, rc, "the other process is gone");
        if (rc < 0)
            return error_set(err, rc, "read from the other process: %s", strerror(-rc));
        if (rc > 0)
            continue;
        struct pollfd wait = {.fd = channel->fd, .events = POLLIN};
        int ready = timeout_ms ? poll(&wait, 1, timeout_ms) : 0;
        if (ready == 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return error_set(err, -errno, "poll: %s", strerror(errno));
    }
    if (frame < 0)
        return error_set(err, -EPROTO, "a frame of more than %u bytes", CHANNEL_FRAME_MAX);
    size_t size = (size_t)frame - PREFIX;
    int rc = message_unpack(type, channel->buffer + PREFIX, size, message_quota(size), out, err);
    channel->used -= (size_t)frame;
    memmove(channel->buffer, channel->buffer + frame, channel->used);
    return rc < 0 ? rc : 1;
}
