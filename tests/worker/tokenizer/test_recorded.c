/* test_recorded.c - tokenizers of GPT-2's, LLaMA 3's and Qwen's shapes give the ids that the
 * package tokenizers has given (record.py), in whatever parts a text comes. */
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "tests/worker/tokenizer/encoding.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const shapes[] = {"gpt2", "llama3", "qwen"};
static const size_t parts[] = {1, 2, 3, 5, 64, 1 << 16};

static char *read_hex(const char *hex, size_t *size)
{
    *size = strlen(hex) / 2;
    char *bytes = xcalloc(1, *size + 1);
    for (size_t i = 0; i < *size; i++) {
        unsigned byte;
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        bytes[i] = (char)byte;
    }
    return bytes;
}

static void check(const struct tokenizer *tokenizer, const char *shape, const json_t *text,
                  size_t part)
{
    const json_t *right = json_object_get(text, shape), *id;
    const char *hex = json_string_value(json_object_get(text, "text"));
    size_t size, i;
    char *bytes = read_hex(hex, &size);
    struct ids ids = encode(tokenizer, bytes, size, part);
    ck_assert_msg(ids.count == json_array_size(right), "%s, %.200s: %zu ids, not %zu", shape, hex,
                  ids.count, json_array_size(right));
    json_array_foreach(right, i, id)
    {
        ck_assert_msg(json_integer_value(id) == ids.ids[i],
                      "%s, %.200s in parts of %zu: id %zu is %d, not %lld", shape, hex, part, i,
                      ids.ids[i], (long long)json_integer_value(id));
    }
    if (strcmp(shape, "qwen") != 0) { /* which normalizes */
        char *back = xcalloc(1, size + 1);
        ck_assert_uint_eq(ids_decode(tokenizer, &ids, back, size), size);
        ck_assert_mem_eq(back, bytes, size);
        free(back);
    }
    free(ids.ids);
    free(bytes);
}

START_TEST(every_text_has_the_ids_of_the_package)
{
    struct error err = {""};
    struct tokenizer *tokenizer;
    const char *shape = shapes[_i];
    char *path = xasprintf(RECORDED "/tokenizer/recorded/%s.json", shape);
    ck_assert_msg(tokenizer_open(path, &tokenizer, &err) == 0, "%s", err.text);
    json_t *texts = json_load_file(RECORDED "/tokenizer/recorded/texts.json", 0, NULL), *text;
    size_t i;
    ck_assert_uint_gt(json_array_size(texts), 20);
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++)
        json_array_foreach(texts, i, text)
        {
            check(tokenizer, shape, text, parts[part]);
        }
    json_decref(texts);
    tokenizer_close(tokenizer);
    free(path);
}
END_TEST

START_TEST(what_the_files_say_of_texts_is_known)
{
    static const char *const end_names[] = {"<|endoftext|>", "<|end_of_text|>", "<|endoftext|>"};
    struct error err = {""};
    struct tokenizer *tokenizer;
    char *path = xasprintf(RECORDED "/tokenizer/recorded/%s.json", shapes[_i]);
    size_t size, before, after;
    ck_assert_int_eq(tokenizer_open(path, &tokenizer, &err), 0);
    ck_assert_str_eq(tokenizer_path(tokenizer), path);
    const char *end = tokenizer_text(tokenizer, tokenizer_end(tokenizer), &size);
    ck_assert_uint_eq(size, strlen(end_names[_i]));
    ck_assert_mem_eq(end, end_names[_i], size);
    const int32_t *first = tokenizer_before(tokenizer, &before);
    tokenizer_after(tokenizer, &after);
    ck_assert_uint_eq(before, _i == 1 ? 1 : 0);
    ck_assert_uint_eq(after, 0);
    ck_assert(before == 0 ||
              strncmp(tokenizer_text(tokenizer, *first, &size), "<|begin_of_text|>", size) == 0);
    ck_assert_ptr_null(tokenizer_text(tokenizer, tokenizer_size(tokenizer), &size));
    ck_assert_ptr_nonnull(tokenizer_text(tokenizer, tokenizer_size(tokenizer) - 1, &size));
    tokenizer_close(tokenizer);
    free(path);
}
END_TEST

SUITE(recorded)
{
    TCase *recorded = tcase_create("recorded");
    tcase_add_loop_test(recorded, every_text_has_the_ids_of_the_package, 0, 3);
    tcase_add_loop_test(recorded, what_the_files_say_of_texts_is_known, 0, 3);
    return suite_run("recorded tokenizers", recorded, NULL);
}
