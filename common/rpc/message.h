/* message.h - protobuf-c messages from bytes that nobody vouches for.
 *
 * protobuf-c reads nearly anything: 4 MiB of empty submessages become 252 MB, and text may be
 * no text. So the size is capped before, memory while, and text and numbers after unpacking. How
 * deep messages nest is bounded by our .proto files, in which no message contains itself. */
#ifndef COMMON_RPC_MESSAGE_H
#define COMMON_RPC_MESSAGE_H

#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Memory that size bytes of one of our messages may need: a record with most fields left out
 * takes some 20 times its packed size. */
size_t message_quota(size_t size);

/* Unpack bytes; *out is yours, to be given to message_free. -EPROTO when they are no such
 * message, -ENOMEM when it would take more than quota, -EINVAL when a text is not UTF-8. */
int message_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                   size_t quota, ProtobufCMessage **out, struct error *err);
/* Accepts NULL. */
void message_free(ProtobufCMessage *message);

/* Put '?' for every byte that is not UTF-8: for text from elsewhere, or cut to a length. */
void message_mend_text(char *text);

/* Packed, on the heap and yours; *size is its size. */
void *message_pack(const ProtobufCMessage *message, size_t *size);

#endif
