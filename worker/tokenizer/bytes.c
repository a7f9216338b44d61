/* bytes.c - every byte is a token, and one more may end a text.
 *
 * The package tokenizers has no tokenizer of plain bytes, but byte-level BPE without merges is
 * one. */
#include "worker/tokenizer/kind.h"
#include "worker/tokenizer/vocabulary.h"

#define IDS_MAX 4096

static int bytes_add(struct encoder *encoder, const char *bytes, size_t size, struct error *err)
{
    int32_t ids[IDS_MAX];
    int rc = 0;
    while (rc == 0 && size > 0) {
        size_t count = size < IDS_MAX ? size : IDS_MAX;
        for (size_t i = 0; i < count; i++)
            ids[i] = (unsigned char)bytes[i];
        rc = encoder->took_cb(encoder->data, ids, count, err);
        bytes += count;
        size -= count;
    }
    return rc;
}

static json_t *print_vocabulary(void)
{
    json_t *vocabulary = json_object();
    for (int byte = 0; byte < ALPHABET_SIZE; byte++) {
        char character[3];
        alphabet_print(byte, character);
        json_object_set_new(vocabulary, character, json_integer(byte));
    }
    return vocabulary;
}

static json_t *print_byte_level(void)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", false,
                     "trim_offsets", false, "use_regex", false);
}

static const char end_of_text[] = "<|endoftext|>"; /* as in GPT-2 */

static const char *name_of(const struct tokenizer *tokenizer, int64_t id, size_t *size)
{
    if (id < 0 || id != tokenizer->end)
        return tokenizer_text(tokenizer, id, size);
    *size = sizeof end_of_text - 1;
    return end_of_text;
}

static json_t *print_added(const struct tokenizer *tokenizer)
{
    if (tokenizer->end < 0)
        return json_array();
    return json_pack("[{s:i, s:s, s:b, s:b, s:b, s:b, s:b}]", "id", (int)tokenizer->end, "content",
                     end_of_text, "single_word", false, "lstrip", false, "rstrip", false,
                     "normalized", false, "special", true);
}

static char *bytes_print(const struct tokenizer *tokenizer)
{
    json_t *root =
        json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:{s:s, s:n, s:n, s:n, s:n, "
                  "s:b, s:o, s:[]}}",
                  "version", "1.0", "truncation", "padding", "added_tokens", print_added(tokenizer),
                  "normalizer", "pre_tokenizer", print_byte_level(), "post_processor", "decoder",
                  print_byte_level(), "model", "type", "BPE", "dropout", "unk_token",
                  "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", false, "vocab",
                  print_vocabulary(), "merges");
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    return text;
}

const struct tokenizer_kind tokenizer_bytes = {
    .name_of = name_of, .print = bytes_print, .add = bytes_add};
