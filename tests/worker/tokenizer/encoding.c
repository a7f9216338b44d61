/* encoding.c - collects ids. */
#include "tests/worker/tokenizer/encoding.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int keep(void *data, const int32_t *ids, size_t count, struct error *err)
{
    struct ids *out = data;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        out->ids = grow(out->ids, out->count, &out->capacity, sizeof *out->ids);
        out->ids[out->count++] = ids[i];
    }
    return 0;
}

struct ids encode(const struct tokenizer *tokenizer, const void *text, size_t size, size_t part)
{
    struct ids out = {0};
    struct error err = {""};
    struct encoder *encoder = encoder_create(tokenizer, keep, &out);
    int rc = 0;
    for (size_t at = 0; at < size && rc == 0; at += part) {
        /* A copy of its own size, so that a sanitizer sees what is read behind it. */
        size_t length = size - at < part ? size - at : part;
        char *copy = xcalloc(1, length);
        memcpy(copy, (const char *)text + at, length);
        rc = encoder_add(encoder, copy, length, &err);
        free(copy);
    }
    if (rc == 0)
        rc = encoder_end(encoder, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    encoder_destroy(encoder);
    return out;
}

const char *ids_print(const struct ids *ids)
{
    static char text[1 << 16];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < ids->count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? " %d" : "%d", ids->ids[i]);
    return text;
}

size_t ids_decode(const struct tokenizer *tokenizer, const struct ids *ids, char *out, size_t size)
{
    size_t used = 0, length;
    for (size_t i = 0; i < ids->count; i++) {
        const char *text = tokenizer_text(tokenizer, ids->ids[i], &length);
        ck_assert_ptr_nonnull(text);
        ck_assert_uint_le(used + length, size);
        memcpy(out + used, text, length);
        used += length;
    }
    return used;
}
