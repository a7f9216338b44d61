/* bpe_encoder.c - encodes a text while it comes, with the tokens that it has as a whole.
 *
 * A text goes through three buffers. `raw` has what may be part of an added token or of a character
 * that is not complete; `text` the same after normalization; `part` what has no added token in it
 * and may belong to a piece that goes on. What cannot change any more leaves each of them. Where an
 * added token is, or a byte that is no UTF-8, the text before it is encoded by itself. */
#include "common/base/hash.h"
#include "common/base/memory.h"
#include "common/base/text.h"
#include "worker/tokenizer/bpe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#define BATCH 4096
/* A text without any place to divide it takes 30 times its size in memory. */
#define PIECE_MAX ((size_t)4 << 20)
#define CHARACTER_MAX 4

/* Most words of a text come again: a table with one place for each hash has how they were encoded.
 */
#define WORDS_COUNT 16384 /* 1 MiB of them */
#define WORD_SIZE 30
#define WORD_IDS 8

struct word {
    uint8_t size, count; /* size 0: there is none */
    char text[WORD_SIZE];
    int32_t ids[WORD_IDS];
};

static bool word_is(const struct word *word, const char *text, size_t size)
{
    return word->size == size && memcmp(word->text, text, size) == 0;
}

/* The place of a word, which may have another; NULL: it is too long for any. */
static struct word *word_place(struct word *words, const char *text, size_t size)
{
    return size <= WORD_SIZE ? &words[hash_words(size, text, size) % WORDS_COUNT] : NULL;
}

/* Put it in its place, unless it has too many ids. */
static void word_keep(struct word *word, const char *text, size_t size, const int32_t *ids,
                      size_t count)
{
    if (count > WORD_IDS)
        return;
    word->size = (uint8_t)size;
    word->count = (uint8_t)count;
    memcpy(word->text, text, size);
    memcpy(word->ids, ids, count * sizeof *ids);
}

/* How much of a text, valid UTF-8, can be normalized by itself whatever follows it: up to its last
 * ASCII character, which composes with nothing before it. */
static size_t nfc_part(const char *text, size_t size)
{
    while (size > 0 && (unsigned char)text[--size] >= 0x80)
        ;
    return size;
}

/* All characters before U+0300 are composed already. Their first bytes are below 0xcc. */
static bool is_low(const char *text, size_t size)
{
    unsigned char most = 0;
    for (size_t i = 0; i < size; i++)
        most = (unsigned char)text[i] > most ? (unsigned char)text[i] : most;
    return most < 0xcc;
}

/* utf8proc does it; where nothing can change it is not asked. */
void nfc_append(struct byte_buffer *out, const char *text, size_t size)
{
    utf8proc_uint8_t *normal;
    if (is_low(text, size)) {
        byte_buffer_add(out, text, size);
        return;
    }
    utf8proc_ssize_t count = utf8proc_map((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)size,
                                          &normal, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    if (count < 0) /* the text is valid: it has no memory */
        abort();
    byte_buffer_add(out, normal, (size_t)count);
    free(normal);
}

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

static int flush_batch(struct bpe_encoder *in, struct error *err)
{
    size_t count = in->batched;
    in->batched = 0;
    return count ? in->face->took_cb(in->face->data, in->batch, count, err) : 0;
}

static int emit_ids(struct bpe_encoder *in, const int32_t *ids, size_t count, struct error *err)
{
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        in->batch[in->batched++] = ids[i];
        if (in->batched == BATCH)
            rc = flush_batch(in, err);
    }
    return rc;
}

/* Encode one piece into in->ids; returns the number of tokens. */
static size_t encode_piece(struct bpe_encoder *in, const char *piece, size_t size)
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
    struct word *word = word_place(in->words, piece, size);
    if (word && word_is(word, piece, size))
        return emit_ids(in, word->ids, word->count, err);
    size_t count = encode_piece(in, piece, size);
    if (word)
        word_keep(word, piece, size, in->ids, count);
    return emit_ids(in, in->ids, count, err);
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
static int divide_part(struct bpe_encoder *in, bool whole, struct error *err)
{
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && at < in->part.size) {
        const char *text = in->part.bytes + at;
        size_t left = in->part.size - at;
        bool matches = false;
        long size = in->matcher ? pattern_piece(in->matcher, text, left, whole, &matches, err)
                    : whole || !in->bpe->merges.count ? (long)left
                                                      : 0;
        bool drops = matches ? in->bpe->drops_matches : in->bpe->drops_gaps;
        if (size == 0)
            break;
        if (size < 0)
            rc = (int)size;
        else if (!drops)
            rc = take_piece(in, text, (size_t)size, err);
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
    return divide_part(in, whole, err);
}

static int take_added(struct bpe_encoder *in, const struct added_token *token, struct error *err)
{
    in->in_part = false;
    return emit_ids(in, &token->id, 1, err);
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
        else if ((one = text_size(text + at, size - at)))
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
        rc = emit_ids(in, &in->bpe->bytes[(unsigned char)text[at++]], 1, err);
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
    return rc == 0 ? flush_batch(in, err) : rc;
}
