/* bpe_added.c - reads the added tokens, and the template of the post-processor, which names some of
 * them. */
#include "worker/tokenizer/bpe.h"
#include "worker/tokenizer/nfc.h"

#include <errno.h>

/* What GPT-2 and Qwen, LLaMA 3, and others call the end of a text; the first that is there. */
static const char *const ends[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"};

static int check_token(const json_t *token, struct error *err)
{
    static const char *const keys[] = {"single_word", "lstrip", "rstrip"};
    const json_t *id = json_object_get(token, "id"), *content = json_object_get(token, "content");
    if (!json_is_string(content) || json_string_length(content) == 0)
        return error_set(err, -EINVAL, "an added token has no content");
    if (!json_is_integer(id) || json_integer_value(id) < 0 ||
        json_integer_value(id) >= VOCABULARY_MAX)
        return error_set(err, -EINVAL,
                         "the added token '%.40s' needs an id, a whole number below %d",
                         json_string_value(content), VOCABULARY_MAX);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_is_true(json_object_get(token, keys[i])))
            return error_set(err, -EINVAL,
                             "the added token '%.40s' has %s: those without are supported",
                             json_string_value(content), keys[i]);
    return 0;
}

/* A token of the vocabulary may be an added one, too. It is found as such then. */
static int add(struct tokenizer *tokenizer, const json_t *vocabulary, const json_t *token,
               struct error *err)
{
    struct bpe *bpe = tokenizer->own;
    int rc = check_token(token, err);
    if (rc < 0)
        return rc;
    const json_t *content = json_object_get(token, "content");
    const char *text = json_string_value(content);
    size_t size = json_string_length(content);
    int32_t id = (int32_t)json_integer_value(json_object_get(token, "id"));
    const json_t *known = json_object_get(vocabulary, text);
    if (known ? json_integer_value(known) != id
              : !vocabulary_set(&tokenizer->vocabulary, id, text, size))
        return error_set(err, -EINVAL, "the added token '%.40s' has the id of another, %d", text,
                         id);
    if (json_is_false(json_object_get(token, "normalized"))) {
        added_add(&bpe->plain, text, size, id);
        return 0;
    }
    struct byte_buffer normal = {0};
    if (bpe->nfc)
        nfc_append(&normal, text, size);
    else
        byte_buffer_add(&normal, text, size);
    added_add(&bpe->normalized, normal.bytes, normal.size, id);
    byte_buffer_finish(&normal);
    return 0;
}

/* The id of the added token with this content; -1: there is none. */
static int32_t find(const json_t *tokens, const char *content)
{
    const json_t *token;
    size_t i;
    json_array_foreach(tokens, i, token)
    {
        const char *text = json_string_value(json_object_get(token, "content"));
        if (text && strcmp(text, content) == 0)
            return (int32_t)json_integer_value(json_object_get(token, "id"));
    }
    return -1;
}

int bpe_read_added(struct tokenizer *tokenizer, const json_t *root, struct error *err)
{
    struct bpe *bpe = tokenizer->own;
    const json_t *vocabulary = json_object_get(json_object_get(root, "model"), "vocab");
    const json_t *tokens = json_object_get(root, "added_tokens"), *token;
    size_t i;
    int rc = 0;
    if (tokens && !json_is_array(tokens))
        return error_set(err, -EINVAL, "its added_tokens are no list");
    json_array_foreach(tokens, i, token)
    {
        if (rc == 0)
            rc = add(tokenizer, vocabulary, token, err);
    }
    added_sort(&bpe->plain);
    added_sort(&bpe->normalized);
    for (i = 0; i < sizeof ends / sizeof *ends && tokenizer->end < 0; i++)
        tokenizer->end = find(tokens, ends[i]);
    return rc;
}

/* {"SpecialToken": {"id": "<s>"}}, whose ids are in "special_tokens". */
static int take_special(const struct tokenizer *tokenizer, const json_t *processor,
                        const char *name, struct surround *out, struct error *err)
{
    const json_t *ids =
        json_object_get(json_object_get(json_object_get(processor, "special_tokens"), name), "ids");
    const json_t *id;
    size_t i, size;
    json_array_foreach(ids, i, id)
    {
        if (!json_is_integer(id) ||
            !vocabulary_get(&tokenizer->vocabulary, json_integer_value(id), &size))
            return error_set(err, -EINVAL, "its post_processor's '%.40s' is no token", name);
        if (out->count == SURROUND_MAX)
            return error_set(err, -EINVAL, "its post_processor puts more than %d tokens in a place",
                             SURROUND_MAX);
        out->ids[out->count++] = (int32_t)json_integer_value(id);
    }
    return json_array_size(ids)
               ? 0
               : error_set(err, -EINVAL, "its post_processor's '%.40s' has no ids", name);
}

static int take_items(struct tokenizer *tokenizer, const json_t *processor, struct error *err)
{
    const json_t *items = json_object_get(processor, "single"), *item;
    struct surround *out = &tokenizer->before;
    size_t i;
    json_array_foreach(items, i, item)
    {
        const char *name =
            json_string_value(json_object_get(json_object_get(item, "SpecialToken"), "id"));
        int rc = name ? take_special(tokenizer, processor, name, out, err) : 0;
        if (rc < 0)
            return rc;
        if (!name && out == &tokenizer->after)
            return error_set(err, -EINVAL, "its post_processor takes more than one text");
        if (!name)
            out = &tokenizer->after;
    }
    return out == &tokenizer->after
               ? 0
               : error_set(err, -EINVAL, "its post_processor has no place for the text");
}

int bpe_read_template(struct tokenizer *tokenizer, const json_t *processor, struct error *err)
{
    const json_t *type = json_object_get(processor, "type"), *below;
    const char *word = json_is_string(type) ? json_string_value(type) : "";
    size_t i;
    if (!processor || json_is_null(processor) || strcmp(word, "ByteLevel") == 0)
        return 0; /* that of bytes moves offsets, which nobody asks for here */
    if (strcmp(word, "TemplateProcessing") == 0 && !tokenizer->before.count &&
        !tokenizer->after.count)
        return take_items(tokenizer, processor, err);
    if (strcmp(word, "Sequence") != 0)
        return error_set(err, -EINVAL,
                         "its post_processor is of type '%.40s': null, ByteLevel and one "
                         "TemplateProcessing are supported",
                         word);
    json_array_foreach(json_object_get(processor, "processors"), i, below)
    {
        int rc = bpe_read_template(tokenizer, below, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}
