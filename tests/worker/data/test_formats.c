/* test_formats.c - files of tokens of every format, made byte by byte: what is read of them, and
 * what is said of those that will not do. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/token_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(llm_c_files_are_read_in_both_widths)
{
    int32_t tokens[COUNT];
    ramp(tokens);
    save_llm_c("a", tokens, COUNT, _i ? 4 : 2);
    check_tokens("tokens: a", tokens, COUNT);
}
END_TEST

START_TEST(bare_tokens_are_read_as_the_job_says)
{
    int32_t tokens[COUNT];
    struct made bin = {0};
    size_t width = _i ? 4 : 2;
    char data[64];
    ramp(tokens);
    put_tokens(&bin, tokens, COUNT, width);
    save(&bin, "train.bin");
    put_tokens(&bin, tokens, 3, width);
    save(&bin, "val.bin");
    snprintf(data, sizeof data, "tokens: train.bin, format: uint%zu", 8 * width);
    check_tokens(data, tokens, COUNT);
    int32_t both[COUNT + 3];
    memcpy(both, tokens, sizeof tokens);
    memcpy(both + COUNT, tokens, 3 * sizeof *tokens);
    snprintf(data, sizeof data, "tokens: [train.bin, val.bin], format: uint%zu", 8 * width);
    check_tokens(data, both, COUNT + 3);
}
END_TEST

/* Write part of the tokens as a file of the i-th kind; returns how a job may name it. */
static char *save_part(uint64_t seed, uint64_t i, const int32_t *tokens, size_t count)
{
    size_t lengths[64], documents = 0, width = random_below(seed, i, 0, 2) ? 2 : 4;
    char *name = xasprintf("part-%" PRIu64, i);
    if (random_below(seed, i, 1, 3) == 0) {
        save_llm_c(name, tokens, count, width);
        return name;
    }
    for (size_t left = count; left || documents == 0; documents++) {
        size_t most = documents == 63 ? 0 : left;
        lengths[documents] = most ? random_below(seed, i, 3 + documents, most + 1) : left;
        left -= lengths[documents];
    }
    const char *const ends[] = {".bin", ".idx", ""};
    struct index index = index_of(lengths, documents, width);
    char *bin_path = xasprintf("%s.bin", name), *index_path = xasprintf("%s.idx", name);
    struct made bin = {0};
    put_tokens(&bin, tokens, count, width);
    save(&bin, bin_path);
    save_index(&index, index_path);
    free(bin_path);
    free(index_path);
    char *named = xasprintf("%s%s", name, ends[random_below(seed, i, 2, 3)]);
    free(name);
    return named;
}

/* Any number of files, each of any format and width: the tokens come one after the other. */
START_TEST(a_list_may_have_files_of_all_formats)
{
    enum { TOKENS_MOST = 6000 };
    uint64_t seed = test_seed() + (uint64_t)_i;
    int32_t *tokens = xcalloc(TOKENS_MOST, sizeof *tokens);
    size_t count = 0, files = 1 + random_below(seed, 0, 0, 6);
    char *data = xasprintf("tokens: [");
    for (uint64_t i = 1; i <= files; i++) {
        size_t part = random_below(seed, 1000 + i, 0, 900) + (i == 1 ? 3 : 0);
        for (size_t j = 0; j < part; j++)
            tokens[count + j] = (int32_t)random_below(seed, 1000 + i, 1 + j, 300);
        char *name = save_part(seed, i, tokens + count, part);
        char *more = xasprintf("%s%s%s", data, i == 1 ? "" : ", ", name);
        free(name);
        free(data);
        data = more;
        count += part;
    }
    char *list = xasprintf("%s]", data);
    check_tokens(list, tokens, count);
    free(list);
    free(data);
    free(tokens);
}
END_TEST

START_TEST(a_wrong_llm_c_file_is_refused_in_words)
{
    int32_t tokens[64];
    for (int i = 0; i < 64; i++)
        tokens[i] = 256 + i;
    save_llm_c("a", tokens, COUNT, 2);
    save_llm_c("big", tokens, 64, 2);
    check_refused("tokens: big", 8, 0, -ERANGE,
                  "data.tokens: token 44 of 'big' is 300, but model.vocab is 300");
    ck_assert_int_eq(truncate("a", 1024 + 39), 0);
    check_refused("tokens: a", 8, 0, -EINVAL,
                  "data.tokens: 'a' says it has 20 tokens of 2 bytes, but 39 bytes follow its "
                  "header");
    ck_assert_int_eq(truncate("a", 1000), 0);
    check_refused("tokens: a", 8, 0, -EINVAL,
                  "data.tokens: 'a' has 1000 bytes, llm.c's header alone has 1024: it is "
                  "truncated");
}
END_TEST

/* Behind whole blocks, at their ends, and where only the sign would tell. */
START_TEST(a_token_outside_the_vocabulary_is_found_wherever_it_is)
{
    static const size_t places[] = {0, 1, 1023, 1024, 2047, 2999};
    size_t place = places[_i / 2], width = _i % 2 ? 4 : 2;
    uint32_t wrong = width == 2 ? 65535 : UINT32_MAX;
    int32_t *tokens = xcalloc(3000, sizeof *tokens);
    char words[128];
    tokens[place] = (int32_t)wrong;
    save_llm_c("a", tokens, 3000, width);
    snprintf(words, sizeof words,
             "data.tokens: token %zu of 'a' is %" PRIu32 ", but model.vocab is 300", place, wrong);
    check_refused("tokens: a", 8, 0, -ERANGE, words);
    free(tokens);
}
END_TEST

START_TEST(a_file_of_no_known_format_is_refused_with_what_could_be_said)
{
    write_file("short", "abc", 3);
    check_refused("tokens: short", 8, 0, -EINVAL, "data.tokens: 'short'" UNKNOWN);
    struct made odd = {0};
    put(&odd, 20240520, 4);
    put(&odd, 2, 4); /* a version that it does not have */
    save(&odd, "odd.bin");
    check_refused("tokens: odd.bin", 8, 0, -EINVAL,
                  "data.tokens: 'odd.bin' is a file of llm.c's in another version, and no tokens "
                  "from its first byte on: version 1 is supported");
    check_refused("tokens: none.bin", 8, 0, -ENOENT,
                  "data.tokens: cannot open 'none.bin': No such file or directory");
    ck_assert_int_eq(mkdir("d", 0700), 0);
    check_refused("tokens: d", 8, 0, -EISDIR, "data.tokens: 'd' is a directory, not a file");
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    check_refused("tokens: fifo", 8, 0, -EINVAL, "data.tokens: 'fifo' is no regular file");
}
END_TEST

START_TEST(bare_tokens_that_cannot_be_are_refused)
{
    int32_t tokens[COUNT];
    struct made bin = {0};
    struct index index = index_of(thirds, 3, 2);
    ramp(tokens);
    put_tokens(&bin, tokens, COUNT, 2);
    save(&bin, "train.bin");
    ck_assert_int_eq(truncate("train.bin", 39), 0);
    check_refused("tokens: train.bin, format: uint16", 8, 0, -EINVAL,
                  "data.tokens: 'train.bin' has 39 bytes, which are no tokens of 2 bytes each: it "
                  "is truncated, or of another format");
    ck_assert_int_eq(truncate("train.bin", 36), 0);
    check_refused("tokens: train.bin, format: uint32", 8, 0, -ERANGE,
                  "data.tokens: token 0 of 'train.bin' is 16843008, but model.vocab is 300");
    save_llm_c("a", tokens, COUNT, 2);
    check_refused("tokens: a, format: uint16", 8, 0, -EINVAL,
                  "data.tokens: 'a' is a file of llm.c's format, which tells how it is read: "
                  "format: uint16 is for files without, leave it out");
    save_index(&index, "train.idx");
    check_refused("tokens: train.bin, format: uint32", 8, 0, -EINVAL,
                  "data.tokens: 'train.bin' is a file of Megatron-LM's format, which tells how it "
                  "is read: format: uint32 is for files without, leave it out");
}
END_TEST

/* As the tools themselves begin them. */
static const struct {
    const char *head;
    size_t size, at;
    const char *words;
} foreigns[] = {
#define HEAD(text, at) text, sizeof(text) - 1, at
    {HEAD("\x93NUMPY\1\0v\0{'descr': '<u2', ", 0), "an array of numpy's (.npy)"},
    {HEAD("PK\3\4\x14\0\0\0", 0), "a zip archive"},
    {HEAD("\x1f\x8b\x08\0\0\0\0\0\2\3", 0),
     "compressed by gzip, and no tokens from its first byte on: gunzip it first"},
    {HEAD("\x28\xb5\x2f\xfd\x04", 0), "compressed by zstd"},
    {HEAD("\xfd\x37zXZ\0\0\4", 0), "compressed by xz"},
    {HEAD("BZh91AY&SY", 0), "compressed by bzip2"},
    {HEAD("7z\xbc\xaf\x27\x1c\0\4", 0), "a 7z archive"},
    {HEAD("ustar\0", 257), "a tar archive"},
    {HEAD("LITPKDS\1\0\0\0\0\0\0\0\x08", 0), "a packed dataset of LitGPT's"},
    {HEAD("MMIDIDX\0\0\1\0", 0), "an index of Megatron-LM's"},
    {HEAD("\x88\xd8\x34\x01\2\0\0\0", 0), "in another version"},
    {HEAD("\x89HDF\r\n\x1a\n", 0), "an HDF5 file"},
    {HEAD("PAR1\x15\4\x15\x10", 0), "a Parquet file"},
    {HEAD("ARROW1\0\0", 0), "an Arrow file"},
    {HEAD("SQLite format 3\0\x10\0", 0), "an SQLite database"},
    {HEAD("\x80\4\x95\x10\0", 0), "a pickle"},
    {HEAD("\x40\0\0\0\0\0\0\0{\"tokens\":", 0), "a safetensors file"},
    {HEAD("{\"text\": \"Zwei mal drei macht vier, und drei macht neune.\"}\n{\"text\": \"Ich", 0),
     "a text, and no tokens from its first byte on: 'gimbal data pack' makes tokens of texts"},
#undef HEAD
};

START_TEST(another_tools_file_is_no_bare_tokens_and_is_named)
{
    static const char *const kinds[] = {"", ", format: uint16", ", format: uint32"};
    unsigned char bytes[300] = {0};
    memcpy(bytes + foreigns[_i].at, foreigns[_i].head, foreigns[_i].size);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct error err = {""};
        char data[64];
        write_file("x.bin", bytes, foreigns[_i].at + foreigns[_i].size);
        snprintf(data, sizeof data, "tokens: x.bin%s", kinds[i]);
        ck_assert_int_eq(refuse_data(data, "", 0, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, "'x.bin' is ") && strstr(err.text, foreigns[_i].words), "%s",
                      err.text);
    }
}
END_TEST

/* The model's vocabulary may be padded; what no text gives is not a token. */
START_TEST(a_token_that_the_tokenizer_does_not_have_is_refused)
{
    static const int32_t tokens[] = {0, 65, 256, 257, 1, 2, 3, 4, 5};
    save_llm_c("a", tokens, sizeof tokens / sizeof *tokens, 2);
    struct error err = {""};
    ck_assert_int_eq(refuse_data("tokens: a", "", 257, &err), -ERANGE);
    ck_assert_str_eq(err.text,
                     "data.tokens: token 3 of 'a' is 257, but the size of data.tokenizer, "
                     "which cannot have made that token, is 257");
    ck_assert_int_eq(refuse_data("tokens: a", "", 256, &err), -ERANGE);
    ck_assert_str_eq(err.text,
                     "data.tokens: token 2 of 'a' is 256, but the size of data.tokenizer, "
                     "which cannot have made that token, is 256");
    struct data_source *source = open_data("tokens: a", 8, 0, 1);
    data_close(source);
}
END_TEST

SUITE(formats)
{
    TCase *tcase = tcase_create("formats");
    tcase_add_checked_fixture(tcase, data_setup, data_teardown);
    tcase_add_loop_test(tcase, llm_c_files_are_read_in_both_widths, 0, 2);
    tcase_add_loop_test(tcase, bare_tokens_are_read_as_the_job_says, 0, 2);
    tcase_add_loop_test(tcase, a_list_may_have_files_of_all_formats, 0, test_share(60));
    tcase_add_test(tcase, a_wrong_llm_c_file_is_refused_in_words);
    tcase_add_loop_test(tcase, a_token_outside_the_vocabulary_is_found_wherever_it_is, 0, 12);
    tcase_add_test(tcase, a_file_of_no_known_format_is_refused_with_what_could_be_said);
    tcase_add_test(tcase, bare_tokens_that_cannot_be_are_refused);
    tcase_add_loop_test(tcase, another_tools_file_is_no_bare_tokens_and_is_named, 0,
                        sizeof foreigns / sizeof *foreigns);
    tcase_add_test(tcase, a_token_that_the_tokenizer_does_not_have_is_refused);
    return suite_run("formats", tcase, NULL);
}
