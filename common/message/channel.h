/* channel.h - protobuf messages between a parent and its child over a socket pair.
 *
 * A frame is a length (4 bytes, little-endian) followed by a packed message. Writing blocks until
 * the whole frame is written; reading returns whole frames as they arrive. */
#ifndef COMMON_MESSAGE_CHANNEL_H
#define COMMON_MESSAGE_CHANNEL_H

#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>

#define CHANNEL_FRAME_MAX (16u << 20)

struct channel {
    int fd;
    uint8_t *buffer; /* bytes received that are not a whole frame yet */
    size_t used, size;
};

/* Make a pair of connected sockets, closed on exec. Negative errno. */
int channel_pair(int *parent, int *child, struct error *err);
/* Takes ownership of the descriptor. */
void channel_open(struct channel *channel, int fd);
void channel_close(struct channel *channel); /* accepts one that was never opened (zeroed, fd -1) */

/* Send a message. -EPIPE when the other side is gone, -EMSGSIZE when the frame is too large for it.
 * Calls from several threads need a lock. */
int channel_write(struct channel *channel, const ProtobufCMessage *message, struct error *err);
/* Receive the next message, waiting at most timeout_ms (-1: without limit). Returns 1 with *out, to
 * be freed with message_free(); 0 when nothing came in time; -EPIPE when the other side is gone;
 * -EPROTO when it sent something else. With timeout 0 it never blocks: a poll loop over channel->fd
 * calls it until it returns 0. */
int channel_read(struct channel *channel, const ProtobufCMessageDescriptor *type, int timeout_ms,
                 ProtobufCMessage **out, struct error *err);

#endif
