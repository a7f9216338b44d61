/* channel.h - protobuf messages between a parent and its child over a socket pair.
 *
 * A frame is a length (4 bytes, little-endian) and a packed message. Writing waits until all is
 * written; reading takes whole frames as they come. */
#ifndef COMMON_CHANNEL_CHANNEL_H
#define COMMON_CHANNEL_CHANNEL_H

#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>

#define CHANNEL_FRAME_MAX (16u << 20)

struct channel {
    int fd;
    uint8_t *buffer; /* what has come and is not yet a whole frame */
    size_t used, size;
};

/* A pair of connected sockets, closed on exec; -errno. */
int channel_pair(int *parent, int *child, struct error *err);
/* Takes the descriptor. */
void channel_open(struct channel *channel, int fd);
void channel_close(struct channel *channel); /* accepts one that was never opened (zeroed, fd -1) */

/* -EPIPE when the other side is gone, -EMSGSIZE when it would refuse the frame. Safe to call from
 * several threads only under a lock. */
int channel_write(struct channel *channel, const ProtobufCMessage *message, struct error *err);
/* The next message, yours, for message_free; waits for it at most timeout_ms (-1: for ever).
 * 1: *out is written; 0: nothing came in time; -EPIPE: the other side is gone; -EPROTO: what
 * came is no such message. With timeout 0 it never blocks: for a poll loop over channel->fd, to
 * be called until it returns 0. */
int channel_read(struct channel *channel, const ProtobufCMessageDescriptor *type, int timeout_ms,
                 ProtobufCMessage **out, struct error *err);

#endif
