/* message.h - unpacks protobuf-c messages from untrusted bytes.
 *
 * protobuf-c accepts nearly anything: 4 MiB of empty submessages become 252 MB, and strings need
 * not be text. So the size is limited before unpacking, memory during it, and strings and field
 * numbers are checked after it. Nesting is bounded by our .proto files, in which no message
 * contains itself. */
#ifndef COMMON_MESSAGE_MESSAGE_H
#define COMMON_MESSAGE_MESSAGE_H

#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* The memory that a packed message of `size` bytes may take: a record with most fields left out
 * takes some 20 times its packed size. */
size_t message_quota(size_t size);

/* Unpack a message of this type, to be freed with message_free(). -EPROTO when the bytes are not
 * one, -ENOMEM when it would take more than `quota` bytes, -EINVAL when a string is not UTF-8. */
int message_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                   size_t quota, ProtobufCMessage **out, struct error *err);
/* Accepts NULL. */
void message_free(ProtobufCMessage *message);

/* The packed message, to be freed by the caller; *size is its size. */
void *message_pack(const ProtobufCMessage *message, size_t *size);

#endif
