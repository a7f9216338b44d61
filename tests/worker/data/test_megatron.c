/* test_megatron.c - datasets of Megatron-LM: how they are named, and what is said of those that
 * will not do. */
#include "tests/worker/data/data_fixture.h"
#include "tests/worker/data/token_files.h"

#include "common/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(megatron_datasets_are_named_by_either_file_or_by_what_both_begin_with)
{
    int32_t tokens[COUNT];
    struct made bin = {0};
    size_t width = _i ? 4 : 2;
    struct index index = index_of(thirds, 3, width);
    ramp(tokens);
    put_tokens(&bin, tokens, COUNT, width);
    save(&bin, "a_text.document.bin");
    save_index(&index, "a_text.document.idx");
    check_tokens("tokens: a_text.document.bin", tokens, COUNT);
    check_tokens("tokens: a_text.document.idx", tokens, COUNT);
    check_tokens("tokens: a_text.document", tokens, COUNT);
    ck_assert_int_eq(mkdir("a_text.document", 0700), 0); /* where its texts came from */
    check_tokens("tokens: a_text.document", tokens, COUNT);
}
END_TEST

/* Three documents, of sequences of 3; of 2, 0 and 4; and of 1 token, as IndexedDatasetBuilder of
 * megatron-core 0.16.1 wrote them. */
START_TEST(what_megatron_core_wrote_is_read_and_ours_is_the_same)
{
    static const int32_t tokens[] = {1, 2, 299, 10, 20, 30, 40, 50, 60, 256};
    static const size_t lengths[] = {3, 2, 0, 4, 1};
    size_t width = _i ? 4 : 2;
    struct index index = index_of(lengths, 5, width);
    struct made bin = {0};
    char path[256], data[300], command[800];
    snprintf(path, sizeof path, "%s/data/recorded/megatron%zu", RECORDED, 8 * width);
    snprintf(data, sizeof data, "tokens: '%s'", path);
    check_tokens(data, tokens, 10);
    index.entries = 4;
    index.documents[2] = 4;
    index.documents[3] = 5;
    save_index(&index, "a.idx");
    put_tokens(&bin, tokens, 10, width);
    save(&bin, "a.bin");
    snprintf(command, sizeof command, "cmp a.idx '%s.idx' && cmp a.bin '%s.bin'", path, path);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

START_TEST(the_index_is_compared_between_nodes_too)
{
    struct data_file *files;
    uint64_t hashes[2];
    int32_t tokens[COUNT];
    struct made bin = {0};
    ramp(tokens);
    put_tokens(&bin, tokens, COUNT, 2);
    save(&bin, "a.bin");
    for (int i = 0; i < 2; i++) {
        struct index index = index_of(thirds + i, 1, 2);
        index.lengths[0] = COUNT;
        index.entries = (uint64_t)(2 + i); /* one document, or an empty one before it */
        index.documents[1] = (uint64_t)(1 - i);
        index.documents[2] = 1;
        save_index(&index, "a.idx");
        struct data_source *source = open_data("tokens: a", 4, 0, 1);
        ck_assert_uint_eq(data_files(source, &files), 2);
        ck_assert_str_eq(files[0].path, "a.bin");
        ck_assert_str_eq(files[1].path, "a.idx");
        hashes[i] = files[1].hash;
        data_files_free(files, 2);
        data_close(source);
    }
    ck_assert_uint_ne(hashes[0], hashes[1]);
}
END_TEST

/* Each spoils one thing of an index whose sequences have 7, 0 and 13 tokens of 2 bytes. */
static void spoil_magic(struct index *index)
{
    index->magic = "TNTIDX\0\0\0";
}

static void spoil_version(struct index *index)
{
    index->version = 2;
}

static void spoil_type(struct index *index)
{
    index->type = 7;
}

static void spoil_type_more(struct index *index)
{
    index->type = 5;
}

static void spoil_type_most(struct index *index)
{
    index->type = 77;
}

static void spoil_length(struct index *index)
{
    index->lengths[2] = UINT32_MAX;
}

static void spoil_pointer(struct index *index)
{
    index->pointers[2] = 16;
}

static void spoil_sum(struct index *index)
{
    index->lengths[2]++;
}

static void spoil_documents(struct index *index)
{
    index->documents[2] = 4;
}

static void spoil_order(struct index *index)
{
    index->documents[2] = 0;
}

static void spoil_documents_end(struct index *index)
{
    index->entries = 3;
}

/* As the writer leaves it whose documents were never ended. */
static void spoil_documents_all(struct index *index)
{
    index->entries = 1;
}

static void spoil_documents_none(struct index *index)
{
    index->entries = 0;
}

static void spoil_modes(struct index *index)
{
    index->rest = 3;
}

static void spoil_end(struct index *index)
{
    index->rest = 5;
}

static const struct {
    void (*spoil)(struct index *index);
    const char *sentence;
} spoilt[] = {
    {spoil_magic, "'a.idx' is no index of Megatron-LM's: it does not begin with MMIDIDX"},
    {spoil_version, "'a.idx' has version 2 of Megatron-LM's index: 1 is supported"},
    {spoil_type, "'a.idx' says that its data is float32, code 7, which are no tokens: uint16, code "
                 "8, or int32, code 4, would be"},
    {spoil_type_more, "'a.idx' says that its data is int64, code 5, which are no tokens: uint16, "
                      "code 8, or int32, code 4, would be"},
    {spoil_type_most, "'a.idx' says that its data is of a type unknown here, code 77, which are no "
                      "tokens: uint16, code 8, or int32, code 4, would be"},
    {spoil_length, "'a.idx' is damaged: sequence 2 has -1 tokens"},
    {spoil_pointer, "'a.idx' is damaged: sequence 2 begins at byte 16 of 'a.bin', the one before "
                    "it ends at 14"},
    {spoil_sum, "the sequences of 'a.idx' have 42 bytes, but 'a.bin' has 40: it is truncated, or "
                "the .bin of another index"},
    {spoil_documents, "'a.idx' is damaged: document entry 2 is sequence 4, the one before it is 1, "
                      "and there are 3 sequences"},
    {spoil_order, "'a.idx' is damaged: document entry 2 is sequence 0, the one before it is 1, and "
                  "there are 3 sequences"},
    {spoil_documents_end, "'a.idx' is damaged: its 3 document entries end at sequence 2, and there "
                          "are 3 sequences"},
    {spoil_documents_all, "'a.idx' is damaged: its 1 document entries end at sequence 0, and there "
                          "are 3 sequences"},
    {spoil_documents_none, "'a.idx' is damaged: its 0 document entries end at sequence 0, and "
                           "there are 3 sequences"},
    {spoil_modes, "'a.idx' has 3 bytes more than its 3 sequences and 4 document entries take: "
                  "modes of sequences, of a dataset of more than text"},
    {spoil_end, "'a.idx' has 5 bytes more than its 3 sequences and 4 document entries take: it is "
                "damaged"},
};

START_TEST(a_damaged_index_is_refused_in_words)
{
    int32_t tokens[COUNT];
    struct made bin = {0};
    struct index index = index_of(thirds, 3, 2);
    char words[256];
    ramp(tokens);
    put_tokens(&bin, tokens, COUNT, 2);
    save(&bin, "a.bin");
    spoilt[_i].spoil(&index);
    save_index(&index, "a.idx");
    snprintf(words, sizeof words, "data.tokens: %s", spoilt[_i].sentence);
    check_refused("tokens: a.idx", 8, 0, -EINVAL, words);
}
END_TEST

/* Cut anywhere, either file is refused, and the one that is short is named. */
START_TEST(a_truncated_dataset_is_refused)
{
    int32_t tokens[COUNT];
    struct made bin = {0};
    struct index index = index_of(thirds, 3, 2);
    ramp(tokens);
    put_tokens(&bin, tokens, COUNT, 2);
    save(&bin, "a.bin");
    save_index(&index, "a.idx");
    for (off_t size = 34 + 3 * 12 + 4 * 8 - 1; size >= 0; size--) {
        char words[160] = "data.tokens: 'a.idx' is no index of Megatron-LM's: it does not begin "
                          "with MMIDIDX";
        ck_assert_int_eq(truncate("a.idx", size), 0);
        if (size >= 34)
            snprintf(words, sizeof words,
                     "data.tokens: 'a.idx' is truncated: its %d bytes have no room for the 3 "
                     "sequences and 4 document entries that it counts",
                     (int)size);
        else if (size >= 9)
            snprintf(words, sizeof words,
                     "data.tokens: 'a.idx' is truncated: it has %d bytes, the header of "
                     "Megatron-LM's index alone has 34",
                     (int)size);
        check_refused(size >= 9 ? "tokens: a.bin" : "tokens: a", 8, 0, -EINVAL, words);
    }
    save_index(&index, "a.idx");
    ck_assert_int_eq(truncate("a.bin", 39), 0);
    check_refused("tokens: a", 8, 0, -EINVAL,
                  "data.tokens: the sequences of 'a.idx' have 40 bytes, but 'a.bin' has 39: it is "
                  "truncated, or the .bin of another index");
    ck_assert_int_eq(truncate("a.bin", 44), 0);
    check_refused("tokens: a", 8, 0, -EINVAL,
                  "data.tokens: the sequences of 'a.idx' have 40 bytes, but 'a.bin' has 44: it is "
                  "damaged, or the .bin of another index");
}
END_TEST

START_TEST(counts_that_no_file_could_hold_are_refused)
{
    struct made idx = {0};
    put(&idx, 0x58444944494d4d, 8); /* MMIDIDX and a NUL */
    put(&idx, 0, 1);
    put(&idx, 1, 8);
    put(&idx, 8, 1);
    put(&idx, UINT64_MAX / 12 + 1, 8); /* 12 times this wraps around */
    put(&idx, UINT64_MAX / 8 + 1, 8);
    save(&idx, "a.idx");
    write_file("a.bin", "", 0);
    check_refused("tokens: a", 8, 0, -EINVAL,
                  "data.tokens: 'a.idx' is truncated: its 34 bytes have no room for the "
                  "1537228672809129302 sequences and 2305843009213693952 document entries that it "
                  "counts");
}
END_TEST

START_TEST(half_a_dataset_is_refused_with_the_other_half)
{
    struct index index = index_of(thirds, 3, 2);
    save_index(&index, "a.idx");
    check_refused("tokens: a.idx", 8, 0, -ENOENT,
                  "data.tokens: 'a.bin' is not there, and a dataset of Megatron-LM's needs both it "
                  "and 'a.idx'");
    check_refused("tokens: a.bin", 8, 0, -ENOENT,
                  "data.tokens: 'a.bin' is not there, and a dataset of Megatron-LM's needs both it "
                  "and 'a.idx'");
    write_file("b.bin", "abcd", 4);
    check_refused("tokens: b", 8, 0, -ENOENT,
                  "data.tokens: 'b.idx' is not there, and a dataset of Megatron-LM's needs both it "
                  "and 'b.bin'");
    check_refused("tokens: b.idx", 8, 0, -ENOENT,
                  "data.tokens: 'b.idx' is not there, and a dataset of Megatron-LM's needs both it "
                  "and 'b.bin'");
    check_refused("tokens: b.bin", 8, 0, -EINVAL, "data.tokens: 'b.bin'" UNKNOWN);
}
END_TEST

SUITE(megatron)
{
    TCase *tcase = tcase_create("megatron");
    tcase_add_checked_fixture(tcase, data_setup, data_teardown);
    tcase_add_loop_test(
        tcase, megatron_datasets_are_named_by_either_file_or_by_what_both_begin_with, 0, 2);
    tcase_add_loop_test(tcase, what_megatron_core_wrote_is_read_and_ours_is_the_same, 0, 2);
    tcase_add_test(tcase, the_index_is_compared_between_nodes_too);
    tcase_add_loop_test(tcase, a_damaged_index_is_refused_in_words, 0,
                        sizeof spoilt / sizeof *spoilt);
    tcase_add_test(tcase, a_truncated_dataset_is_refused);
    tcase_add_test(tcase, counts_that_no_file_could_hold_are_refused);
    tcase_add_test(tcase, half_a_dataset_is_refused_with_the_other_half);
    return suite_run("megatron", tcase, NULL);
}
