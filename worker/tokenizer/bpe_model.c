/* bpe_model.c - reads the vocabulary and the merges, and the added tokens. */
#include "worker/tokenizer/bpe.h"

#include "common/base/memory.h"

#include <errno.h>

static int check_id(const char *token, const json_t *id, struct error *err)
{
    if (json_is_integer(id) && json_integer_value(id) >= 0 &&
        json_integer_value(id) < VOCABULARY_MAX)
        return 0;
    return error_set(err, -EINVAL,
                     "the id of token '%.40s' is none: it would be a whole number "
                     "below %d",
                     token, VOCABULARY_MAX);
}

/* Tokens of the alphabet first: only these can be in a text that was divided, and are indexed. */
static int read_vocabulary(struct tokenizer *tokenizer, json_t *vocabulary, bool of_alphabet,
                           struct error *err)
{
    const char *token;
    json_t *id;
    int rc = 0;
    json_object_foreach(vocabulary, token, id)
    {
        size_t size = strlen(token);
        rc = check_id(token, id, err);
        if (rc < 0)
            return rc;
        char *bytes = xcalloc(1, size + 1);
        long count = alphabet_read(token, size, bytes);
        if ((count >= 0) == of_alphabet &&
            !vocabulary_set(&tokenizer->vocabulary, (int32_t)json_integer_value(id),
                            count >= 0 ? bytes : token, count >= 0 ? (size_t)count : size))
            rc = error_set(err, -EINVAL, "two tokens have the id %lld, one of them is '%.40s'",
                           (long long)json_integer_value(id), token);
        free(bytes);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_bytes(struct bpe *bpe, const json_t *vocabulary, struct error *err)
{
    for (int byte = 0; byte < ALPHABET_SIZE; byte++) {
        char character[3];
        alphabet_print(byte, character);
        const json_t *id = json_object_get(vocabulary, character);
        if (!id)
            return error_set(err, -EINVAL,
                             "its vocabulary has no token '%s' for the byte 0x%02x: those with a "
                             "token for every byte are supported",
                             character, byte);
        bpe->bytes[byte] = (int32_t)json_integer_value(id);
    }
    return 0;
}

/* "a b" or ["a", "b"]: two texts, of which the first is not terminated. */
static bool split_merge(const json_t *merge, const char **left, size_t *left_size,
                        const char **right, size_t *right_size)
{
    const json_t *first = merge, *second = merge;
    if (json_is_array(merge) && json_array_size(merge) == 2) {
        first = json_array_get(merge, 0);
        second = json_array_get(merge, 1);
    }
    if (!json_is_string(first) || !json_is_string(second))
        return false;
    *left = json_string_value(first);
    *left_size = json_string_length(first);
    *right = json_string_value(second);
    *right_size = json_string_length(second);
    if (first != merge)
        return true;
    const char *space = memchr(*left, ' ', *left_size);
    if (!space || strchr(space + 1, ' '))
        return false;
    *left_size = (size_t)(space - *left);
    *right = space + 1;
    *right_size -= *left_size + 1;
    return true;
}

/* The id of a token; -1: it is none. */
static int32_t find(const json_t *vocabulary, const char *token, size_t size)
{
    const json_t *id = json_object_getn(vocabulary, token, size);
    return id ? (int32_t)json_integer_value(id) : -1;
}

static int read_merge(struct bpe *bpe, const json_t *vocabulary, const json_t *merge, int32_t rank,
                      struct byte_buffer *both, struct error *err)
{
    const char *left, *right;
    size_t left_size, right_size;
    if (!split_merge(merge, &left, &left_size, &right, &right_size))
        return error_set(err, -EINVAL, "merge %d is none: it would be \"a b\" or [\"a\", \"b\"]",
                         rank);
    both->size = 0;
    byte_buffer_add(both, left, left_size);
    byte_buffer_add(both, right, right_size);
    const struct merge made = {.left = find(vocabulary, left, left_size),
                               .right = find(vocabulary, right, right_size),
                               .rank = rank,
                               .id = find(vocabulary, both->bytes, both->size)};
    if (left_size == 0 || right_size == 0 || made.left < 0 || made.right < 0 || made.id < 0)
        return error_set(err, -EINVAL, "merge %d, of '%.*s' and '%.*s', is not in the vocabulary",
                         rank, left_size < 40 ? (int)left_size : 40, left,
                         right_size < 40 ? (int)right_size : 40, right);
    merges_add(&bpe->merges, made);
    return 0;
}

/* Some writers begin the list with "#version: 0.2", as merges.txt does. */
static bool is_version(const json_t *merge)
{
    return json_is_string(merge) && strncmp(json_string_value(merge), "#version", 8) == 0;
}

static int read_merges(struct bpe *bpe, const json_t *vocabulary, const json_t *merges,
                       struct error *err)
{
    struct byte_buffer both = {0};
    const json_t *merge;
    size_t i;
    int32_t rank = 0;
    int rc = 0;
    if (json_array_size(merges) > VOCABULARY_MAX)
        return error_set(err, -EINVAL, "%zu merges are more than %d", json_array_size(merges),
                         VOCABULARY_MAX);
    merges_init(&bpe->merges, json_array_size(merges));
    json_array_foreach(merges, i, merge)
    {
        if (rc == 0 && !is_version(merge))
            rc = read_merge(bpe, vocabulary, merge, rank++, &both, err);
    }
    byte_buffer_finish(&both);
    return rc;
}

/* What makes it another model, unless it is left empty. */
static int check_options(const json_t *model, struct error *err)
{
    static const char *const keys[] = {"dropout", "continuing_subword_prefix",
                                       "end_of_word_suffix"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *value = json_object_get(model, keys[i]);
        bool empty = !value || json_is_null(value) ||
                     (json_is_string(value) && json_string_length(value) == 0) ||
                     (json_is_number(value) && json_number_value(value) == 0);
        if (!empty)
            return error_set(err, -EINVAL, "its model has a %s: BPE without is supported", keys[i]);
    }
    return 0;
}

int bpe_read_model(struct tokenizer *tokenizer, const json_t *model, struct error *err)
{
    struct bpe *bpe = tokenizer->own;
    json_t *vocabulary = json_object_get(model, "vocab"),
           *merges = json_object_get(model, "merges");
    if (!json_is_object(vocabulary) || !json_is_array(merges))
        return error_set(err, -EINVAL, "its model needs a vocab and a list of merges");
    int rc = check_options(model, err);
    if (rc == 0)
        rc = read_vocabulary(tokenizer, vocabulary, true, err);
    if (rc == 0)
        rc = read_bytes(bpe, vocabulary, err);
    if (rc < 0)
        return rc;
    bpe->whole_first = json_is_true(json_object_get(model, "ignore_merges"));
    if (bpe->whole_first)
        vocabulary_index(&tokenizer->vocabulary);
    rc = read_vocabulary(tokenizer, vocabulary, false, err);
    return rc == 0 ? read_merges(bpe, vocabulary, merges, err) : rc;
}
