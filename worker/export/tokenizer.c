/* tokenizer.c - the package tokenizers has no tokenizer of plain bytes, but byte-level BPE without
 * merges is one. In its vocabulary each byte is a character, as in GPT-2's encoder: printable ones
 * are themselves in Latin-1, the others follow from 256 on. */
#include "worker/export/tokenizer.h"

#include <jansson.h>

#define BYTES 256

static bool prints(int byte)
{
    return (byte > ' ' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* As UTF-8, in one or two bytes. */
static void write_character(int code, char out[3])
{
    int length = 0;
    if (code < 0x80) {
        out[length++] = (char)code;
    } else {
        out[length++] = (char)(0xc0 | code >> 6);
        out[length++] = (char)(0x80 | (code & 0x3f));
    }
    out[length] = '\0';
}

static json_t *print_vocabulary(void)
{
    json_t *vocabulary = json_object();
    int next = BYTES;
    for (int byte = 0; byte < BYTES; byte++) {
        char character[3];
        write_character(prints(byte) ? byte : next++, character);
        json_object_set_new(vocabulary, character, json_integer(byte));
    }
    return vocabulary;
}

static json_t *print_byte_level(void)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", false,
                     "trim_offsets", false, "use_regex", false);
}

static char *print(json_t *root)
{
    char *text = json_dumps(root, JSON_INDENT(2));
    json_decref(root);
    return text;
}

/* GPT-2's name of it. */
static const char end_of_text[] = "<|endoftext|>";

static json_t *print_added(bool ends)
{
    if (!ends)
        return json_array();
    return json_pack("[{s:i, s:s, s:b, s:b, s:b, s:b, s:b}]", "id", BYTES, "content", end_of_text,
                     "single_word", false, "lstrip", false, "rstrip", false, "normalized", false,
                     "special", true);
}

char *tokenizer_print(bool ends)
{
    return print(json_pack(
        "{s:s, s:n, s:n, s:o, s:n, s:o, s:n, s:o, s:{s:s, s:n, s:n, s:n, s:n, "
        "s:b, s:o, s:[]}}",
        "version", "1.0", "truncation", "padding", "added_tokens", print_added(ends), "normalizer",
        "pre_tokenizer", print_byte_level(), "post_processor", "decoder", print_byte_level(),
        "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", false, "vocab", print_vocabulary(), "merges"));
}

char *tokenizer_print_config(int64_t seq, bool ends)
{
    json_t *root =
        json_pack("{s:s, s:I, s:b}", "tokenizer_class", "PreTrainedTokenizerFast",
                  "model_max_length", (json_int_t)seq, "clean_up_tokenization_spaces", false);
    if (ends)
        json_object_set_new(root, "eos_token", json_string(end_of_text));
    return print(root);
}
