/* bpe_rules.c - reads how a text is normalized and divided. What is not supported is refused, since
 * it would give other tokens. */
#include "worker/tokenizer/bpe.h"

#include <errno.h>

static const char *type_of(const json_t *section)
{
    const char *type = json_string_value(json_object_get(section, "type"));
    return type ? type : "null";
}

static bool is(const json_t *section, const char *type)
{
    return strcmp(type_of(section), type) == 0;
}

static int read_normalizer(struct bpe *bpe, const json_t *section, struct error *err)
{
    bpe->nfc = is(section, "NFC");
    return !section || json_is_null(section) || bpe->nfc
               ? 0
               : error_set(err, -EINVAL, "its normalizer is %.40s: null and NFC are supported",
                           type_of(section));
}

static int refuse_division(const char *found, struct error *err)
{
    return error_set(
        err, -EINVAL,
        "its pre_tokenizer is %.80s: ByteLevel is supported, alone or behind one Split "
        "with a Regex that is Isolated",
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
    if (!behavior || strcmp(behavior, "Isolated") != 0) {
        snprintf(found, sizeof found, "a Split that is %.40s", behavior ? behavior : "null");
        return refuse_division(found, err);
    }
    return pattern_create(json_string_value(regex), &bpe->pattern, err);
}

/* Whether what matches or what does not is called a match makes no difference if both stay. */
static int read_division(struct bpe *bpe, const json_t *section, struct error *err)
{
    const json_t *list = json_object_get(section, "pretokenizers");
    const json_t *first = json_array_get(list, 0), *second = json_array_get(list, 1);
    if (is(section, "ByteLevel"))
        return read_byte_level(bpe, section, false, err);
    if (!is(section, "Sequence"))
        return refuse_division(type_of(section), err);
    if (json_array_size(list) == 1 && is(first, "ByteLevel"))
        return read_byte_level(bpe, first, false, err);
    if (json_array_size(list) != 2 || !is(first, "Split") || !is(second, "ByteLevel"))
        return refuse_division("another Sequence", err);
    int rc = read_split(bpe, first, err);
    return rc == 0 ? read_byte_level(bpe, second, true, err) : rc;
}

int bpe_read_rules(struct bpe *bpe, const json_t *root, struct error *err)
{
    const json_t *decoder = json_object_get(root, "decoder");
    int rc = read_normalizer(bpe, json_object_get(root, "normalizer"), err);
    if (rc == 0)
        rc = read_division(bpe, json_object_get(root, "pre_tokenizer"), err);
    if (rc == 0 && !is(decoder, "ByteLevel"))
        rc = error_set(err, -EINVAL, "its decoder is %.40s: ByteLevel is supported",
                       type_of(decoder));
    return rc;
}
