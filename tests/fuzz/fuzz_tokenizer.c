/* fuzz_tokenizer.c - a tokenizer.json: what is taken encodes a text alike in all parts it may come
 * in, and with ids that it has. */
#include "tests/fuzz/targets.h"

#include "common/base/memory.h"
#include "worker/tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "It's 1234 o'clock,\r\n  e\xcc\x81 \xe6\xbc\xa2\xff<|endoftext|>   x\n\n\xf0\x9f\x98";

struct ids {
    const struct tokenizer *tokenizer;
    int32_t *ids;
    size_t count, capacity;
};

static void expect(bool right, const char *words)
{
    if (right)
        return;
    fprintf(stderr, "fuzz tokenizer: %s\n", words);
    abort();
}

static int take(void *data, const int32_t *ids, size_t count, struct error *err)
{
    struct ids *out = data;
    size_t size;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        expect(tokenizer_text(out->tokenizer, ids[i], &size) != NULL, "it has no such token");
        out->ids = grow(out->ids, out->count, &out->capacity, sizeof *out->ids);
        out->ids[out->count++] = ids[i];
    }
    return 0;
}

/* An expression may take too long. */
static int encode(const struct tokenizer *tokenizer, size_t part, struct ids *out)
{
    struct error err = {""};
    size_t size = sizeof text - 1;
    int rc = 0;
    *out = (struct ids){.tokenizer = tokenizer};
    struct encoder *encoder = encoder_create(tokenizer, take, out);
    for (size_t at = 0; at < size && rc == 0; at += part)
        rc = encoder_add(encoder, text + at, size - at < part ? size - at : part, &err);
    if (rc == 0)
        rc = encoder_end(encoder, &err);
    expect(rc == 0 || err.text[0], "it failed without a word");
    encoder_destroy(encoder);
    return rc;
}

void fuzz_tokenizer_run(const struct fuzz_target *target, const uint8_t *bytes, size_t size)
{
    struct error err = {""};
    struct tokenizer *tokenizer;
    struct ids whole, parts;
    (void)target;
    if (tokenizer_parse((const char *)bytes, size, &tokenizer, &err) < 0) {
        expect(err.text[0], "refused without a word");
        return;
    }
    int rc = encode(tokenizer, sizeof text, &whole);
    if (encode(tokenizer, 3, &parts) == 0 && rc == 0)
        expect(whole.count == parts.count &&
                   (!whole.count ||
                    memcmp(whole.ids, parts.ids, whole.count * sizeof *whole.ids) == 0),
               "in parts it is encoded otherwise");
    free(whole.ids);
    free(parts.ids);
    tokenizer_close(tokenizer);
}
