/* bpe_encoder.c - encodes a text while it comes, with the tokens that it has as a whole.
 *
 * A text goes through three buffers. `raw` has what may be part of an added token or of a character
 * that is not complete; `text` the same after normalization; `part` what has no added token in it
 * and may belong to a piece that goes on. What cannot change any more leaves each of them. Where an
 * added token is, or a byte that is no UTF-8, the text before it is encoded by itself. */
#include "worker/tokenizer/bpe.h"
#include "worker/tokenizer/nfc.h"
#include "worker/tokenizer/words.h"

#include "common/base/memory.h"
#include "common/base/utf8.h"

#include <errno.h>

#define BATCH 4096
/* A text without any place to divide it takes 30 times its size in memory. */
#define PIECE_MAX ((size_t)4 << 20)
#define CHARACTER_MAX 4

struct bpe_encoder {
    const struct bpe *bpe;
    const struct vocabulary *vocabulary;
    struct encoder *face;
    struct byte_buffer raw, text, part;
    bool in_part; /* since its beginning or the last added token, the text has had something */
    struct matcher *matcher;
    struct merging merging;
    struct word *words;
    int32_t *ids; /* of a piece */
    size_t ids_capacity;
    int32_t batch[BATCH];
    size_t batched;
};

void bpe_begin(struct encoder *encoder)
{
    struct bpe_encoder *in = encoder->own = xcalloc(1, sizeof *in);
    in->bpe = encoder->tokenizer->own;
    in->vocabulary = &encoder->tokenizer->vocabulary;
    in->face = encoder;
    byte_buffer_init(&in->raw);
    byte_buffer_init(&in->text);
    byte_buffer_init(&in->part);
    in->words = xcalloc(WORDS_COUNT, sizeof *in->words);
    if (in->bpe->pattern)
        in->matcher = matcher_create(in->bpe->pattern);
}

void bpe_finish(struct encoder *encoder)
{
    struct bpe_encoder *in = encoder->own;
    byte_buffer_finish(&in->raw);
    byte_buffer_finish(&in->text);
    byte_buffer_finish(&in->part);
    matcher_destroy(in->matcher);
    merging_finish(&in->merging);
    free(in->words);
    free(in->ids);
    free(in);
}

static int flush(struct bpe_encoder *in, struct error *err)
{
    size_t count = in->batched;
    in->batched = 0;
    return count ? in->face->took_cb(in->face->data, in->batch, count, err) : 0;
}

static int emit(struct bpe_encoder *in, const int32_t *ids, size_t count, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        in->batch[in->batched++] = ids[i];
        if (in->batched == BATCH)
            rc = flush(in, err);
    }
    return rc;
}

/* Encode one piece into in->ids; returns the number of tokens. */
static size_t encode(struct bpe_encoder *in, const char *piece, size_t size)
{
    if (size > in->ids_capacity) {
        in->ids_capacity = 2 * size;
        in->ids = xrealloc(in->ids, in->ids_capacity * sizeof *in->ids);
    }
    in->ids[0] = in->bpe->whole_first ? vocabulary_find(in->vocabulary, piece, size) : -1;
    if (in->ids[0] >= 0)
        return 1;
    for (size_t i = 0; i < size; i++)
        in->ids[i] = in->bpe->bytes[(unsigned char)piece[i]];
    return merges_apply(&in->bpe->merges, &in->merging, in->ids, size);
}

static int take_piece(struct bpe_encoder *in, const char *piece, size_t size, struct error *err)
{
    struct word *word = words_place(in->words, piece, size);
    if (word && word_is(word, piece, size))
        return emit(in, word->ids, word->count, err);
    size_t count = encode(in, piece, size);
    if (word)
        word_keep(word, piece, size, in->ids, count);
    return emit(in, in->ids, count, err);
}

static int check_room(const struct byte_buffer *buffer, struct error *err)
{
    return buffer->size <= PIECE_MAX
               ? 0
               : error_set(err, -EFBIG,
                           "%zu bytes of text have no place where the tokenizer divides them, "
                           "which is more than %zu",
                           buffer->size, PIECE_MAX);
}

/* Take pieces from the front of `part`, all of them if it is whole. Without a pattern it is one
 * piece, which matters where bytes are merged. */
static int divide(struct bpe_encoder *in, bool whole, struct error *err)
{
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && at < in->part.size) {
        const char *text = in->part.bytes + at;
        size_t left = in->part.size - at;
        long size = in->matcher ? pattern_piece(in->matcher, text, left, whole, err)
                    : whole || !in->bpe->merges.count ? (long)left
                                                      : 0;
        if (size == 0)
            break;
        rc = size < 0 ? (int)size : take_piece(in, text, (size_t)size, err);
        at += size > 0 ? (size_t)size : 0;
    }
    byte_buffer_drop(&in->part, at);
    return rc == 0 ? check_room(&in->part, err) : rc;
}

/* Text without an added token; it is divided to its end if that is an end. */
static int add_part(struct bpe_encoder *in, const char *text, size_t size, bool whole,
                    struct error *err)
{
    if (size && !in->in_part) {
        if (in->bpe->prefix && *text != ' ')
            byte_buffer_add(&in->part, " ", 1);
        in->in_part = true;
    }
    byte_buffer_add(&in->part, text, size);
    return divide(in, whole, err);
}

static int take_added(struct bpe_encoder *in, const struct added_token *token, struct error *err)
{
    in->in_part = false;
    return emit(in, &token->id, 1, err);
}

/* Find added tokens in `text`, which is normalized. */
static int sift_text(struct bpe_encoder *in, bool whole, struct error *err)
{
    const struct added_token *token;
    size_t at = 0, ahead;
    int rc = 0;
    do {
        token = added_find(&in->bpe->normalized, in->text.bytes + at, in->text.size - at, whole,
                           &ahead);
        rc = add_part(in, in->text.bytes + at, ahead, token || whole, err);
        at += ahead;
        if (rc == 0 && token) {
            rc = take_added(in, token, err);
            at += token->size;
        }
    } while (rc == 0 && token);
    byte_buffer_drop(&in->text, at);
    return rc;
}

static int add_text(struct bpe_encoder *in, const char *text, size_t size, bool whole,
                    struct error *err)
{
    if (in->bpe->nfc)
        nfc_append(&in->text, text, size);
    else
        byte_buffer_add(&in->text, text, size);
    return sift_text(in, whole, err);
}

/* How many bytes from the front are UTF-8; short of the end, they are followed by one that is not
 * or, unless the text is whole, by what may become a character. */
static size_t valid_size(const char *text, size_t size)
{
    size_t at = 0, one;
    while (at < size) {
        if ((signed char)text[at] >= 0)
            at++;
        else if ((one = utf8_size(text + at, size - at)))
            at += one;
        else
            break;
    }
    return at;
}

/* Take text without a plain added token: of what is not whole, only as much as cannot change.
 * *taken is how much that is. */
static int take_raw(struct bpe_encoder *in, const char *text, size_t size, bool whole,
                    size_t *taken, struct error *err)
{
    size_t at = 0;
    int rc = 0;
    for (;;) {
        size_t valid = valid_size(text + at, size - at);
        bool ends = at + valid < size && (whole || size - at - valid >= CHARACTER_MAX);
        size_t part = ends || whole || !in->bpe->nfc ? valid : nfc_part(text + at, valid);
        rc = add_text(in, text + at, part, ends || whole, err);
        at += part;
        if (rc < 0 || !ends)
            break;
        rc = emit(in, &in->bpe->bytes[(unsigned char)text[at++]], 1, err);
        in->in_part = true;
        if (rc < 0)
            break;
    }
    *taken = at;
    return rc;
}

/* Find added tokens in `raw`. */
static int sift_raw(struct bpe_encoder *in, bool whole, struct error *err)
{
    const struct added_token *token;
    size_t at = 0, ahead, taken;
    int rc = 0;
    do {
        token = added_find(&in->bpe->plain, in->raw.bytes + at, in->raw.size - at, whole, &ahead);
        rc = take_raw(in, in->raw.bytes + at, ahead, token || whole, &taken, err);
        at += taken;
        if (rc == 0 && token) {
            rc = take_added(in, token, err);
            at += token->size;
        }
    } while (rc == 0 && token);
    byte_buffer_drop(&in->raw, at);
    return rc == 0 ? check_room(&in->raw, err) : rc;
}

int bpe_add(struct encoder *encoder, const char *bytes, size_t size, struct error *err)
{
    struct bpe_encoder *in = encoder->own;
    byte_buffer_add(&in->raw, bytes, size);
    return sift_raw(in, false, err);
}

int bpe_end(struct encoder *encoder, struct error *err)
{
    struct bpe_encoder *in = encoder->own;
    int rc = sift_raw(in, true, err);
    in->in_part = false;
    return rc == 0 ? flush(in, err) : rc;
}
