/* message.c - unpacks with an allocator that enforces the quota, then checks every field. */
#include "common/message/message.h"

#include "common/base/memory.h"
#include "common/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct quota {
    size_t left;
    bool exceeded;
};

static void *quota_alloc(void *data, size_t size)
{
    struct quota *quota = data;
    if (size > quota->left) {
        quota->exceeded = true;
        return NULL; /* protobuf-c gives up and frees what it has */
    }
    quota->left -= size;
    return malloc(size ? size : 1);
}

static void quota_free(void *data, void *block)
{
    (void)data;
    free(block);
}

size_t message_quota(size_t size)
{
    return ((size_t)64 << 10) + 32 * size;
}

static int check_message(const ProtobufCMessage *message, struct error *err);

/* Checks one value of a field: a string is validated, a message checked recursively. `value` points
 * to the pointer. */
static int check_value(const ProtobufCFieldDescriptor *field, void *const *value, struct error *err)
{
    if (!*value)
        return 0;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return check_message(*value, err);
    if (!text_valid(*value))
        return error_set(err, -EINVAL, "field '%s' is not UTF-8 text", field->name);
    return 0;
}

/* Field numbers are 1 to 2^29 - 1. protobuf-c accepts others in an overlong encoding, but could not
 * read back what it would then write. */
static int check_unknown(const ProtobufCMessage *message, struct error *err)
{
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        uint32_t number = message->unknown_fields[i].tag;
        if (number == 0 || number >= 1u << 29)
            return error_set(err, -EPROTO, "a field has the number %" PRIu32 ", which is none",
                             number);
    }
    return 0;
}

static int check_message(const ProtobufCMessage *message, struct error *err)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    int rc = check_unknown(message, err);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        const char *base = (const char *)message;
        if (field->type != PROTOBUF_C_TYPE_STRING && field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        void *const *values = (void *const *)(base + field->offset);
        size_t count = 1;
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            count = *(const size_t *)(base + field->quantifier_offset);
            values = *(void *const *const *)(base + field->offset);
        } else if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
            count = *(const uint32_t *)(base + field->quantifier_offset) == field->id;
        }
        for (size_t k = 0; k < count; k++) {
            rc = check_value(field, &values[k], err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

int message_unpack(const ProtobufCMessageDescriptor *type, const void *bytes, size_t size,
                   size_t limit, ProtobufCMessage **out, struct error *err)
{
    struct quota quota = {.left = limit};
    ProtobufCAllocator allocator = {quota_alloc, quota_free, &quota};
    ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, size, bytes);
    if (!message && quota.exceeded)
        return error_set(err, -ENOMEM, "%s: %zu bytes unpack to more than the %zu allowed",
                         type->name, size, limit);
    if (!message)
        return error_set(err, -EPROTO, "%s: these %zu bytes are no such message", type->name, size);

    int rc = check_message(message, err);
    if (rc < 0) {
        message_free(message);
        return error_prefix(err, rc, "%s", type->name);
    }
    *out = message;
    return 0;
}

void message_free(ProtobufCMessage *message)
{
    if (message)
        protobuf_c_message_free_unpacked(message, NULL);
}

void *message_pack(const ProtobufCMessage *message, size_t *size)
{
    *size = protobuf_c_message_get_packed_size(message);
    void *bytes = xcalloc(1, *size);
    protobuf_c_message_pack(message, bytes);
    return bytes;
}
