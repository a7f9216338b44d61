/* seeds.c - the first inputs of every message target: seeds FOLDER.
 *
 * Each is a message as we would pack it: one with every field left out but the numbers, one with
 * everything in it, and one for every further member of a oneof. */
#include "common/base/memory.h"
#include "common/message/message.h"
#include "tests/fuzz/targets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MEMBER(message, offset) ((void *)((char *)(message) + (offset)))
#define DEPTH_MAX 6

struct maker {
    unsigned variant; /* which member of a oneof; 0 also fills all that is repeated */
};

static ProtobufCMessage *make(const struct maker *maker, const ProtobufCMessageDescriptor *type,
                              unsigned depth);

/* One value of the field, at at. */
static void put(const struct maker *maker, const ProtobufCFieldDescriptor *field, void *at,
                unsigned depth)
{
    static const ProtobufCBinaryData bytes = {4, (uint8_t *)"\x01\x02\xff\x00"};
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING:
        *(char **)at = xstrdup(field->name);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        *(ProtobufCBinaryData *)at = bytes;
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        *(ProtobufCMessage **)at =
            depth < DEPTH_MAX ? make(maker, field->descriptor, depth + 1) : NULL;
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        *(double *)at = 1.5;
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        *(float *)at = 1.5F;
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        *(uint64_t *)at = 300 + field->id;
        break;
    case PROTOBUF_C_TYPE_BOOL:
        *(protobuf_c_boolean *)at = true;
        break;
    default:
        *(uint32_t *)at = 1;
    }
}

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    default:
        return 8;
    }
}

static void put_field(const struct maker *maker, const ProtobufCFieldDescriptor *field,
                      ProtobufCMessage *message, unsigned depth)
{
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        size_t size = field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_ENUM
                          ? sizeof(uint32_t)
                          : size_of(field);
        char *values = xcalloc(2, size);
        put(maker, field, values, depth);
        put(maker, field, values + size, depth);
        *(void **)MEMBER(message, field->offset) = values;
        *(size_t *)MEMBER(message, field->quantifier_offset) = 2;
        return;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        uint32_t *which = MEMBER(message, field->quantifier_offset);
        bool is_first = *which == 0;
        if (!is_first && field->id != maker->variant)
            return;
        *which = field->id;
    }
    put(maker, field, MEMBER(message, field->offset), depth);
}

/* Never freed: this program ends. */
static ProtobufCMessage *make(const struct maker *maker, const ProtobufCMessageDescriptor *type,
                              unsigned depth)
{
    ProtobufCMessage *message = xcalloc(1, type->sizeof_message);
    protobuf_c_message_init(type, message);
    for (unsigned i = 0; i < type->n_fields; i++)
        put_field(maker, &type->fields[i], message, depth);
    return message;
}

static void save(const char *folder, const char *name, unsigned variant,
                 const ProtobufCMessage *message)
{
    size_t size;
    void *bytes = message_pack(message, &size);
    char *path = xasprintf("%s/%s/made-%u", folder, name, variant);
    FILE *file = fopen(path, "we");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    free(path);
    free(bytes);
}

/* The most members that a oneof in it has. */
static unsigned last_variant(const ProtobufCMessageDescriptor *type)
{
    unsigned last = 0;
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].flags & PROTOBUF_C_FIELD_FLAG_ONEOF && type->fields[i].id > last)
            last = type->fields[i].id;
    return last;
}

int main(int argc, char **argv)
{
    const struct fuzz_target *target;
    if (argc != 2) {
        fprintf(stderr, "usage: seeds FOLDER\n");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; (target = fuzz_target_at(i)); i++) {
        char *folder = xasprintf("%s/%s", argv[1], target->name);
        if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
            perror(folder);
            return EXIT_FAILURE;
        }
        free(folder);
        for (unsigned variant = 0; target->type && variant <= last_variant(target->type); variant++)
            if (variant != 1) {
                struct maker maker = {.variant = variant};
                save(argv[1], target->name, variant, make(&maker, target->type, 0));
            }
    }
    return EXIT_SUCCESS;
}
