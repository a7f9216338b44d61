/* byte_buffer.h - bytes that are added at the end and taken from the front. A zeroed one is empty.
 */
#ifndef WORKER_TOKENIZER_BYTE_BUFFER_H
#define WORKER_TOKENIZER_BYTE_BUFFER_H

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER_FIRST 64

struct byte_buffer {
    char *bytes;
    size_t size, capacity;
};

static inline void byte_buffer_init(struct byte_buffer *buffer)
{
    *buffer = (struct byte_buffer){.bytes = xcalloc(1, BUFFER_FIRST), .capacity = BUFFER_FIRST};
}

static inline void byte_buffer_add(struct byte_buffer *buffer, const void *bytes, size_t size)
{
    if (!size)
        return;
    if (!buffer->bytes || buffer->size + size > buffer->capacity) {
        buffer->capacity = 2 * (buffer->size + size);
        buffer->bytes = xrealloc(buffer->bytes, buffer->capacity);
    }
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

static inline void byte_buffer_drop(struct byte_buffer *buffer, size_t size)
{
    buffer->size -= size;
    if (size && buffer->size)
        memmove(buffer->bytes, buffer->bytes + size, buffer->size);
}

static inline void byte_buffer_finish(struct byte_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct byte_buffer){0};
}

#endif
