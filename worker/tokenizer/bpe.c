/* bpe.c - reads a tokenizer.json of byte-level BPE, section by section: how a text is normalized
 * and divided, the vocabulary and the merges, the added tokens, and the template of the
 * post-processor, which names some of them. What the file says of truncation and padding concerns
 * batches for inference, and is left aside as transformers does. */
#include "worker/tokenizer/bpe.h"

#include "common/base/memory.h"

#include <errno.h>

static const char *type_of(const json_t *section)
{
    const char *type = json_string_value(json_object_get(section, "type"));
    return type ? type : "null";
}

static bool is_type(const json_t *section, const char *type)
{
    return strcmp(type_of(section), type) == 0;
}

static int read_normalizer(struct bpe *bpe, const json_t *section, struct error *err)
{
    const json_t *below;
    size_t i;
    int rc = 0;
    if (is_type(section, "Sequence")) {
        json_array_foreach(json_object_get(section, "normalizers"), i, below)
        {
            rc = rc == 0 ? read_normalizer(bpe, below, err) : rc;
        }
        return rc;
    }
    if (is_type(section, "NFC"))
        bpe->nfc = true;
    else if (section && !json_is_null(section))
        rc = error_set(err, -EINVAL, "its normalizer is %.40s: null and NFC are supported",
                       type_of(section));
    return rc;
}

static int refuse_division(const char *found, struct error *err)
{
    return error_set(
        err, -EINVAL,
        "its pre_tokenizer is %.80s: ByteLevel is supported, alone or behind one Split "
        "with a Regex that is Isolated or Removed",
        found);
}

/* By the pattern of GPT-2, if by any. */
static int read_byte_level(struct bpe *bpe, const json_t *section, bool behind, struct error *err)
{
    const json_t *use = json_object_get(section, "use_regex");
    const json_t *prefix = json_object_get(section, "add_prefix_space");
    bpe->prefix = !prefix || json_is_true(prefix);
    if (behind && (!json_is_false(use) || bpe->prefix))
        return refuse_division("a Split and a ByteLevel with use_regex or add_prefix_space", err);
    return behind || json_is_false(use) ? 0 : pattern_create(pattern_gpt2, &bpe->pattern, err);
}

static int read_split(struct bpe *bpe, const json_t *section, struct error *err)
{
    char found[80];
    const char *behavior = json_string_value(json_object_get(section, "behavior"));
    const json_t *regex = json_object_get(json_object_get(section, "pattern"), "Regex");
    if (!json_is_string(regex))
        return refuse_division("a Split without a Regex", err);
    bool removed = behavior && strcmp(behavior, "Removed") == 0;
    if (!removed && (!behavior || strcmp(behavior, "Isolated") != 0)) {
        snprintf(found, sizeof found, "a Split that is %.40s", behavior ? behavior : "null");
        return refuse_division(found, err);
    }
    bool invert = json_is_true(json_object_get(section, "invert"));
    bpe->drops_matches = removed && !invert;
    bpe->drops_gaps = removed && invert;
    return pattern_create(json_string_value(regex), &bpe->pattern, err);
}

static int read_division(struct bpe *bpe, const json_t *section, struct error *err)
{
    const json_t *list = json_object_get(section, "pretokenizers");
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    if (is_type(section, "ByteLevel"))
        return read_byte_level(bpe, section, false, err);
    if (!is_type(section, "Sequence"))
        return refuse_division(type_of(section), err);
    if (json_array_size(list) == 1 && is_type(first, "ByteLevel"))
        return read_byte_level(bpe, first, false, err);
    if (json_array_size(list) != 2 || !is_type(first, "Split") || !is_type(second, "ByteLevel"))
        return refuse_division("another Sequence", err);
    int rc = read_split(bpe, first, err);
    return rc == 0 ? read_byte_level(bpe, second, true, err) : rc;
}

/* "normalizer", "pre_tokenizer" and "decoder". What is not supported is refused, since it would
 * give other tokens. */
static int read_rules(struct bpe *bpe, const json_t *root, struct error *err)
{
    const json_t *decoder = json_object_get(root, "decoder");
    int rc = read_normalizer(bpe, json_object_get(root, "normalizer"), err);
    if (rc == 0)
        rc = read_division(bpe, json_object_get(root, "pre_tokenizer"), err);
    if (rc == 0 && !is_type(decoder, "ByteLevel"))
        rc = error_set(err, -EINVAL, "its decoder is %.40s: ByteLevel is supported",
                       type_of(decoder));
    return rc;
}

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

static int read_alphabet(struct bpe *bpe, const json_t *vocabulary, struct error *err)
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
static int32_t token_id(const json_t *vocabulary, const char *token, size_t size)
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
    const struct merge made = {.left = token_id(vocabulary, left, left_size),
                               .right = token_id(vocabulary, right, right_size),
                               .rank = rank,
                               .id = token_id(vocabulary, both->bytes, both->size)};
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

/* The file's "model": the vocabulary and the merges. */
static int read_model(struct tokenizer *tokenizer, const json_t *model, struct error *err)
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
        rc = read_alphabet(bpe, vocabulary, err);
    if (rc < 0)
        return rc;
    bpe->whole_first = json_is_true(json_object_get(model, "ignore_merges"));
    if (bpe->whole_first)
        vocabulary_index(&tokenizer->vocabulary);
    rc = read_vocabulary(tokenizer, vocabulary, false, err);
    if (rc == 0)
        rc = read_merges(bpe, vocabulary, merges, err);
    tokenizer->merges = bpe->merges.count;
    return rc;
}

/* What the end of a text is called in GPT-2 and the base models of Qwen, in LLaMA 3, LLaMA 2, Gemma
 * and DeepSeek, and in those that were trained to answer; the first that is there. */
static const char *const ends[] = {
    "<|endoftext|>", "<|end_of_text|>", "</s>",    "<eos>",         "<｜end▁of▁sentence｜>",
    "<|eot_id|>",    "<|im_end|>",      "<|end|>", "<end_of_turn>",
};

static int check_token(const json_t *token, struct error *err)
{
    static const char *const keys[] = {"single_word", "lstrip", "rstrip"};
    const json_t *content = json_object_get(token, "content");
    if (!json_is_string(content) || json_string_length(content) == 0)
        return error_set(err, -EINVAL, "an added token has no content");
    if (!json_is_integer(json_object_get(token, "id")))
        return error_set(err, -EINVAL, "the added token '%.40s' needs an id, a whole number",
                         json_string_value(content));
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_is_true(json_object_get(token, keys[i])))
            return error_set(err, -EINVAL,
                             "the added token '%.40s' has %s: those without are supported",
                             json_string_value(content), keys[i]);
    return 0;
}

/* The added tokens so far. */
struct adding {
    struct tokenizer *tokenizer;
    const json_t *vocabulary;
    json_t *ids;   /* by content */
    int32_t above; /* the largest; -1: there is none */
};

/* The id that the package gives a token, whatever the file says: that of the vocabulary, or else
 * the next one behind all. */
static int32_t next_id(const struct adding *adding, const char *text)
{
    const json_t *known = json_object_get(adding->vocabulary, text);
    int32_t size = (int32_t)json_object_size(adding->vocabulary);
    return known                   ? (int32_t)json_integer_value(known)
           : adding->above >= size ? adding->above + 1
                                   : size;
}

/* Where it is found: in the text as it is, or as it is normalized. */
static void find_added(struct bpe *bpe, const json_t *token, int32_t id)
{
    const json_t *content = json_object_get(token, "content");
    const char *text = json_string_value(content);
    size_t size = json_string_length(content);
    struct byte_buffer normal = {0};
    if (json_is_false(json_object_get(token, "normalized"))) {
        added_add(&bpe->plain, text, size, id);
        return;
    }
    if (bpe->nfc)
        nfc_append(&normal, text, size);
    else
        byte_buffer_add(&normal, text, size);
    added_add(&bpe->normalized, normal.bytes, normal.size, id);
    byte_buffer_finish(&normal);
}

/* One that is there twice is the first. */
static int add_token(struct adding *adding, const json_t *token, struct error *err)
{
    int rc = check_token(token, err);
    if (rc < 0)
        return rc;
    const json_t *content = json_object_get(token, "content");
    const char *text = json_string_value(content);
    int32_t id = next_id(adding, text);
    if (json_object_get(adding->ids, text))
        return 0;
    if (id >= VOCABULARY_MAX ||
        (!json_object_get(adding->vocabulary, text) &&
         !vocabulary_set(&adding->tokenizer->vocabulary, id, text, json_string_length(content))))
        return error_set(err, -EINVAL,
                         "the added token '%.40s' becomes %d, as all before it have ids, and that "
                         "is the id of another, or too large",
                         text, id);
    json_object_set_new(adding->ids, text, json_integer(id));
    adding->above = id > adding->above ? id : adding->above;
    find_added(adding->tokenizer->own, token, id);
    return 0;
}

/* "added_tokens" of the file; and which of them ends a text. After the model and the rules. */
static int read_added(struct tokenizer *tokenizer, const json_t *root, struct error *err)
{
    struct bpe *bpe = tokenizer->own;
    const json_t *tokens = json_object_get(root, "added_tokens"), *token;
    struct adding adding = {.tokenizer = tokenizer,
                            .vocabulary = json_object_get(json_object_get(root, "model"), "vocab"),
                            .ids = json_object(),
                            .above = -1};
    size_t i;
    int rc = 0;
    if (tokens && !json_is_array(tokens))
        rc = error_set(err, -EINVAL, "its added_tokens are no list");
    json_array_foreach(tokens, i, token)
    {
        if (rc == 0)
            rc = add_token(&adding, token, err);
    }
    added_sort(&bpe->plain);
    added_sort(&bpe->normalized);
    for (i = 0; i < sizeof ends / sizeof *ends && tokenizer->end < 0; i++) {
        const json_t *end = json_object_get(adding.ids, ends[i]);
        tokenizer->end = end ? (int32_t)json_integer_value(end) : -1;
    }
    json_decref(adding.ids);
    return rc;
}

/* {"SpecialToken": {"id": "<s>"}}, whose ids are in "special_tokens". */
static int read_special(const struct tokenizer *tokenizer, const json_t *processor,
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

static int read_items(struct tokenizer *tokenizer, const json_t *processor, struct error *err)
{
    const json_t *items = json_object_get(processor, "single"), *item;
    struct surround *out = &tokenizer->before;
    size_t i;
    json_array_foreach(items, i, item)
    {
        const char *name =
            json_string_value(json_object_get(json_object_get(item, "SpecialToken"), "id"));
        int rc = name ? read_special(tokenizer, processor, name, out, err) : 0;
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

/* "post_processor": what comes before and after a text. */
static int read_template(struct tokenizer *tokenizer, const json_t *processor, struct error *err)
{
    const json_t *type = json_object_get(processor, "type"), *below;
    const char *word = json_is_string(type) ? json_string_value(type) : "";
    size_t i;
    if (!processor || json_is_null(processor) || strcmp(word, "ByteLevel") == 0)
        return 0; /* that of bytes moves offsets, which nobody asks for here */
    if (strcmp(word, "TemplateProcessing") == 0 && !tokenizer->before.count &&
        !tokenizer->after.count)
        return read_items(tokenizer, processor, err);
    if (strcmp(word, "Sequence") != 0)
        return error_set(err, -EINVAL,
                         "its post_processor is of type '%.40s': null, ByteLevel and one "
                         "TemplateProcessing are supported",
                         word);
    json_array_foreach(json_object_get(processor, "processors"), i, below)
    {
        int rc = read_template(tokenizer, below, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Files before release 0.10 of the package name no type. */
static bool bpe_is(const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *type = json_object_get(model, "type");
    return json_is_string(type) ? strcmp(json_string_value(type), "BPE") == 0
                                : !type && json_is_object(json_object_get(model, "vocab")) &&
                                      json_is_array(json_object_get(model, "merges"));
}

/* Each section is -EINVAL if it is damaged, or with what was found and what is supported. */
static int bpe_read(struct tokenizer *tokenizer, const json_t *root, struct error *err)
{
    struct bpe *bpe = tokenizer->own = xcalloc(1, sizeof *bpe);
    int rc = read_rules(bpe, root, err);
    if (rc == 0)
        rc = read_model(tokenizer, json_object_get(root, "model"), err);
    if (rc == 0)
        rc = read_added(tokenizer, root, err);
    if (rc == 0)
        rc = read_template(tokenizer, json_object_get(root, "post_processor"), err);
    return rc;
}

static void bpe_close(struct tokenizer *tokenizer)
{
    struct bpe *bpe = tokenizer->own;
    if (!bpe)
        return;
    added_finish(&bpe->plain);
    added_finish(&bpe->normalized);
    pattern_destroy(bpe->pattern);
    merges_finish(&bpe->merges);
    free(bpe);
}

const struct tokenizer_kind tokenizer_bpe = {
    .is = bpe_is,
    .read = bpe_read,
    .close = bpe_close,
    .begin = bpe_begin,
    .finish = bpe_finish,
    .add = bpe_add,
    .end = bpe_end,
};
