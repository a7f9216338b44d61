/* test_tokenizer.c - byte-level BPE of a small tokenizer.json made here, and what is refused. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/suite.h"
#include "tests/worker/tokenizer/encoding.h"
#include "worker/tokenizer/vocabulary.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_MERGED 256
#define END 261

/* A byte is its token; "ab" 256, "bc" 257, "abc" 258, " ab" 259, "é" 260; the end of a text 261. */
static json_t *make(void)
{
    json_t *vocabulary = json_object();
    for (int byte = 0; byte < ALPHABET_SIZE; byte++) {
        char character[3];
        alphabet_print(byte, character);
        json_object_set_new(vocabulary, character, json_integer(byte));
    }
    static const char *const merged[] = {"ab", "bc", "abc", "Ġab", "Ã©"};
    for (int i = 0; i < 5; i++)
        json_object_set_new(vocabulary, merged[i], json_integer(FIRST_MERGED + i));
    return json_pack("{s:n, s:{s:s, s:b}, s:{s:s}, s:n, s:[{s:i, s:s, s:b}], s:{s:s, s:o, s:[s, s, "
                     "[s, s], s, s]}}",
                     "normalizer", "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0,
                     "decoder", "type", "ByteLevel", "post_processor", "added_tokens", "id", END,
                     "content", "<|endoftext|>", "normalized", 0, "model", "type", "BPE", "vocab",
                     vocabulary, "merges", "b c", "a b", "ab", "c", "Ġ ab", "Ã ©");
}

/* Set a key of a section, by its path: "model.dropout". */
static void set(json_t *root, const char *path, const char *json)
{
    char *copy = xstrdup(path), *rest = copy, *key;
    json_t *at = root;
    while ((key = strsep(&rest, "."))) {
        if (!rest)
            json_object_set_new(at, key, json_loads(json, JSON_DECODE_ANY, NULL));
        at = json_object_get(at, key);
    }
    free(copy);
}

static int parse(json_t *root, struct tokenizer **out, struct error *err)
{
    char *text = json_dumps(root, 0);
    int rc = tokenizer_parse(text, strlen(text), out, err);
    free(text);
    json_decref(root);
    return rc;
}

static struct tokenizer *open_made(const char *path, const char *json)
{
    struct error err = {""};
    struct tokenizer *tokenizer;
    json_t *root = make();
    if (path)
        set(root, path, json);
    ck_assert_msg(parse(root, &tokenizer, &err) == 0, "%s", err.text);
    return tokenizer;
}

static void check_ids(const struct tokenizer *tokenizer, const char *text, const char *right)
{
    struct ids ids = encode(tokenizer, text, strlen(text), 1 << 10);
    ck_assert_str_eq(ids_print(&ids), right);
    free(ids.ids);
}

START_TEST(pairs_are_merged_by_rank_and_from_the_left)
{
    struct tokenizer *tokenizer = open_made(NULL, NULL);
    check_ids(tokenizer, "abc", "97 257"); /* "b c" comes before "a b" */
    check_ids(tokenizer, "ab", "256");
    check_ids(tokenizer, "ababab", "256 256 256");
    check_ids(tokenizer, "x ab", "120 259");
    check_ids(tokenizer, "a b", "97 32 98"); /* pieces are not merged with each other */
    check_ids(tokenizer, "\xc3\xa9\xc3", "260 195");
    tokenizer_close(tokenizer);
}
END_TEST

START_TEST(a_whole_piece_may_go_before_merges)
{
    struct tokenizer *tokenizer = open_made("model.ignore_merges", "true");
    check_ids(tokenizer, "abc", "258");
    check_ids(tokenizer, "abcx", "97 257 120");
    tokenizer_close(tokenizer);
}
END_TEST

START_TEST(added_tokens_are_found_the_longest_first)
{
    struct tokenizer *tokenizer =
        open_made("added_tokens", "[{\"id\": 261, \"content\": \"<a\", \"normalized\": false},"
                                  " {\"id\": 262, \"content\": \"<abc>\", \"normalized\": false},"
                                  " {\"id\": 263, \"content\": \"bc>\", \"normalized\": true},"
                                  " {\"id\": 256, \"content\": \"ab\", \"normalized\": true}]");
    check_ids(tokenizer, "<abc><ab<a", "262 261 98 261");
    check_ids(tokenizer, "bc>abx", "263 256 120");
    check_ids(tokenizer, "<abc", "261 257");
    ck_assert_int_eq(tokenizer_end(tokenizer), -1);
    tokenizer_close(tokenizer);
}
END_TEST

/* As tokenizers 0.23.3 numbers them: the file's ids are hints. */
START_TEST(added_tokens_have_the_next_ids_behind_the_vocabulary)
{
    struct tokenizer *tokenizer =
        open_made("added_tokens", "[{\"id\": 400, \"content\": \"<x>\", \"normalized\": false},"
                                  " {\"id\": 300, \"content\": \"<y>\", \"normalized\": true},"
                                  " {\"id\": 300, \"content\": \"<x>\", \"normalized\": true},"
                                  " {\"id\": 5, \"content\": \"b\", \"normalized\": false},"
                                  " {\"id\": 3, \"content\": \"</s>\", \"normalized\": false}]");
    check_ids(tokenizer, "a<x><y>bc</s>", "97 261 262 98 99 263");
    ck_assert_int_eq(tokenizer_end(tokenizer), 263);
    ck_assert_int_eq(tokenizer_size(tokenizer), 264);
    tokenizer_close(tokenizer);
}
END_TEST

#define SPLIT(regex, behavior, invert)                                                             \
    "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": \"" behavior \
    "\", \"invert\": " invert ", \"pattern\": {\"Regex\": \"" regex                                \
    "\"}}, {\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}"

/* With tokenizers 0.23.3. A pattern that matches everything keeps everything if it is inverted. */
START_TEST(what_is_removed_leaves_no_token)
{
    static const struct {
        const char *split, *ids;
    } cases[] = {
        {SPLIT("b|[^b]+", "Isolated", "false"), "97 98 99 32 97"},
        {SPLIT("b|[^b]+", "Isolated", "true"), "97 98 99 32 97"},
        {SPLIT("b|[^b]+", "Removed", "true"), "97 98 99 32 97"},
        {SPLIT("b", "Removed", "false"), "97 99 32 97"},
        {SPLIT("[ab]", "Removed", "true"), "97 98 97"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tokenizer *tokenizer = open_made("pre_tokenizer", cases[i].split);
        check_ids(tokenizer, "abc a", cases[i].ids);
        tokenizer_close(tokenizer);
    }
}
END_TEST

START_TEST(a_text_is_composed_if_the_file_says_so)
{
    static const char *const composers[] = {
        "{\"type\": \"NFC\"}",
        "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}]}",
        "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Sequence\", \"normalizers\": []}, "
        "{\"type\": \"NFC\"}]}",
    };
    struct tokenizer *tokenizer;
    for (size_t i = 0; i < sizeof composers / sizeof *composers; i++) {
        tokenizer = open_made("normalizer", composers[i]);
        check_ids(tokenizer, "e\xcc\x81", "260");
        check_ids(tokenizer, "e\xcc", "101 204");
        tokenizer_close(tokenizer);
    }
    tokenizer = open_made(NULL, NULL);
    check_ids(tokenizer, "e\xcc\x81", "101 204 129");
    tokenizer_close(tokenizer);
}
END_TEST

START_TEST(each_part_may_begin_with_a_space)
{
    struct tokenizer *tokenizer = open_made("pre_tokenizer.add_prefix_space", "true");
    check_ids(tokenizer, "ab", "259");
    check_ids(tokenizer, " ab", "259");
    check_ids(tokenizer, "ab<|endoftext|>ab", "259 261 259");
    check_ids(tokenizer, "", "");
    tokenizer_close(tokenizer);
}
END_TEST

/* Of any bytes, in any parts. */
START_TEST(every_byte_comes_back)
{
    static const char *const snippets[] = {
        "abc",     " ab",  "\xc3\xa9", "\xc3", "\xe2\x82", "\xed\xa0\x80", "<|endoftext|>",
        "<|endof", "\n\n", "\xff",     "'ll",  " 12",      "e\xcc\x81",    "\xf0\x9f\x98\x80"};
    static const char *const normalizers[] = {"null", "{\"type\": \"NFC\"}"};
    struct tokenizer *tokenizer = open_made("normalizer", normalizers[_i % 2]);
    char text[512], back[512];
    size_t size = 0;
    for (uint64_t i = 0; i < 60; i++) {
        uint64_t drawn = random_bits(test_seed(), (uint64_t)_i, i);
        const char *snippet = snippets[drawn % (sizeof snippets / sizeof *snippets)];
        memcpy(text + size, snippet, strlen(snippet));
        size += strlen(snippet);
    }
    struct ids whole = encode(tokenizer, text, size, size);
    size_t length = ids_decode(tokenizer, &whole, back, sizeof back);
    ck_assert(_i % 2 || (length == size && memcmp(text, back, size) == 0));
    for (size_t part = 1; part < 20; part++) {
        struct ids ids = encode(tokenizer, text, size, part);
        ck_assert_uint_eq(ids.count, whole.count);
        ck_assert_mem_eq(ids.ids, whole.ids, whole.count * sizeof *whole.ids);
        free(ids.ids);
    }
    free(whole.ids);
    tokenizer_close(tokenizer);
}
END_TEST

START_TEST(a_template_says_what_comes_before_and_after)
{
    struct tokenizer *tokenizer = open_made(
        "post_processor",
        "{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, "
        "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"A\"}}, "
        "{\"Sequence\": {\"id\": \"A\"}}, {\"SpecialToken\": {\"id\": \"Z\"}}], "
        "\"special_tokens\": {\"A\": {\"ids\": [7, 8]}, \"Z\": {\"ids\": [261]}}}]}");
    size_t before, after;
    const int32_t *first = tokenizer_before(tokenizer, &before);
    const int32_t *last = tokenizer_after(tokenizer, &after);
    ck_assert(before == 2 && first[0] == 7 && first[1] == 8);
    ck_assert(after == 1 && last[0] == END);
    tokenizer_close(tokenizer);
}
END_TEST

START_TEST(a_piece_without_end_is_refused)
{
    struct error err = {""};
    struct tokenizer *tokenizer = open_made(NULL, NULL);
    struct encoder *encoder = encoder_create(tokenizer, NULL, NULL); /* it gives nothing */
    size_t size = (size_t)5 << 20;
    char *text = xcalloc(1, size);
    memset(text, 'x', size);
    ck_assert_int_eq(encoder_add(encoder, text, size, &err), -EFBIG);
    ck_assert_msg(strstr(err.text, "have no place where the tokenizer divides them"), "%s",
                  err.text);
    free(text);
    encoder_destroy(encoder);
    tokenizer_close(tokenizer);
}
END_TEST

START_TEST(bytes_are_tokens_and_their_file_is_one)
{
    struct error err = {""};
    struct tokenizer *bytes, *again;
    char *json;
    tokenizer_open_bytes(true, &bytes);
    check_ids(bytes, "a\xff<", "97 255 60");
    ck_assert_int_eq(tokenizer_end(bytes), 256);
    ck_assert_int_eq(tokenizer_size(bytes), 257);
    ck_assert_int_eq(tokenizer_json(bytes, &json, &err), 0);
    ck_assert_msg(tokenizer_parse(json, strlen(json), &again, &err) == 0, "%s", err.text);
    check_ids(again, "a\xff<|endoftext|>\n\xc3\xa9", "97 255 256 10 195 169");
    ck_assert_int_eq(tokenizer_end(again), 256);
    tokenizer_close(again);
    tokenizer_close(bytes);
    free(json);
}
END_TEST

static const struct {
    const char *path, *json;
    int rc;
    const char *words;
} refused[] = {
    {"model.type", "\"Unigram\"", -EINVAL, "its model is of the type Unigram: BPE is supported"},
    {"normalizer", "{\"type\": \"Lowercase\"}", -EINVAL,
     "its normalizer is Lowercase: null and NFC are supported"},
    {"pre_tokenizer", "{\"type\": \"Metaspace\"}", -EINVAL, "its pre_tokenizer is Metaspace: "},
    {"pre_tokenizer", "null", -EINVAL, "its pre_tokenizer is null: "},
    {"pre_tokenizer",
     "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Digits\"}, "
     "{\"type\": \"ByteLevel\"}]}",
     -EINVAL, "its pre_tokenizer is another Sequence: "},
    {"pre_tokenizer",
     "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": "
     "\"MergedWithNext\", \"pattern\": {\"Regex\": \"a\"}}, {\"type\": \"ByteLevel\"}]}",
     -EINVAL, "a Split that is MergedWithNext: "},
    {"normalizer",
     "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
     "\"Lowercase\"}]}",
     -EINVAL, "its normalizer is Lowercase: "},
    {"pre_tokenizer",
     "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"behavior\": "
     "\"Isolated\", \"pattern\": {\"Regex\": \"\\\\w+\"}}, {\"type\": \"ByteLevel\"}]}",
     -EINVAL, "the pattern '\\w+' has '\\w' at byte 0, which is not supported"},
    {"decoder", "null", -EINVAL, "its decoder is null: ByteLevel is supported"},
    {"post_processor", "{\"type\": \"BertProcessing\"}", -EINVAL,
     "its post_processor is of type 'BertProcessing'"},
    {"post_processor",
     "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
     "\"Q\"}}]}",
     -EINVAL, "its post_processor's 'Q' has no ids"},
    {"model.dropout", "0.1", -EINVAL, "its model has a dropout: BPE without is supported"},
    {"model.end_of_word_suffix", "\"</w>\"", -EINVAL, "its model has a end_of_word_suffix"},
    {"model.merges", "[\"a z\"]", -EINVAL, "merge 0, of 'a' and 'z', is not in the vocabulary"},
    {"model.merges", "[\"a b c\"]", -EINVAL, "merge 0 is none"},
    {"model.merges", "[[\"\", \"a\"]]", -EINVAL, "merge 0, of '' and 'a'"},
    {"model.vocab", "{\"a\": 0}", -EINVAL,
     "its vocabulary has no token '\xc4\x80' for the byte 0x00"},
    {"model.vocab.a", "-1", -EINVAL, "the id of token 'a' is none"},
    {"model.vocab.a", "98", -EINVAL, "two tokens have the id 98"},
    {"model.vocab.a", "1048576", -EINVAL, "the id of token 'a' is none"},
    {"model.vocab", "[]", -EINVAL, "its model needs a vocab and a list of merges"},
    {"model.vocab.zz", "262", -EINVAL,
     "the added token '<|endoftext|>' becomes 262, as all before it have ids"},
    {"added_tokens", "[{\"id\": 500, \"content\": \"x\", \"lstrip\": true}]", -EINVAL,
     "the added token 'x' has lstrip: those without are supported"},
    {"added_tokens", "[{\"id\": 500}]", -EINVAL, "an added token has no content"},
};

START_TEST(what_would_give_other_ids_is_refused)
{
    struct error err = {""};
    struct tokenizer *tokenizer;
    json_t *root = make();
    set(root, refused[_i].path, refused[_i].json);
    ck_assert_int_eq(parse(root, &tokenizer, &err), refused[_i].rc);
    ck_assert_msg(strstr(err.text, refused[_i].words), "%s", err.text);
}
END_TEST

START_TEST(what_is_no_file_of_a_tokenizer_is_refused)
{
    struct error err = {""};
    struct tokenizer *tokenizer;
    ck_assert_int_eq(tokenizer_parse("{", 1, &tokenizer, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "it is no JSON: line 1"), "%s", err.text);
    ck_assert_int_eq(tokenizer_parse("[]", 2, &tokenizer, &err), -EINVAL);
    ck_assert_int_eq(tokenizer_parse("{}", 2, &tokenizer, &err), -EINVAL);
    ck_assert_int_eq(tokenizer_open("/proc/nowhere", &tokenizer, &err), -ENOENT);
    ck_assert_str_eq(err.text, "tokenizer: cannot open '/proc/nowhere': No such file or directory");
    ck_assert_int_eq(tokenizer_open("/", &tokenizer, &err), -ENOENT);
    ck_assert_msg(strstr(err.text, "//tokenizer.json"), "%s", err.text);
}
END_TEST

SUITE(tokenizer)
{
    TCase *made = tcase_create("made"), *wrong = tcase_create("wrong");
    tcase_add_test(made, pairs_are_merged_by_rank_and_from_the_left);
    tcase_add_test(made, a_whole_piece_may_go_before_merges);
    tcase_add_test(made, added_tokens_are_found_the_longest_first);
    tcase_add_test(made, added_tokens_have_the_next_ids_behind_the_vocabulary);
    tcase_add_test(made, what_is_removed_leaves_no_token);
    tcase_add_test(made, a_text_is_composed_if_the_file_says_so);
    tcase_add_test(made, each_part_may_begin_with_a_space);
    tcase_add_loop_test(made, every_byte_comes_back, 0, test_share(40));
    tcase_add_test(made, a_template_says_what_comes_before_and_after);
    tcase_add_test(made, a_piece_without_end_is_refused);
    tcase_add_test(made, bytes_are_tokens_and_their_file_is_one);
    tcase_add_loop_test(wrong, what_would_give_other_ids_is_refused, 0,
                        sizeof refused / sizeof *refused);
    tcase_add_test(wrong, what_is_no_file_of_a_tokenizer_is_refused);
    return suite_run("tokenizer", made, wrong, NULL);
}
