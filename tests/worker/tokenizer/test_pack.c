/* test_pack.c - a packed text is the text that data.text reads, and half of one is nothing. */
#include "common/base/memory.h"
#include "tests/worker/data/data_fixture.h"
#include "worker/tokenizer/pack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int pack(struct pack_request request, struct pack_result *out, struct error *err)
{
    struct tokenizer *bytes;
    tokenizer_open_bytes(true, &bytes);
    request.tokenizer = bytes;
    request.out = request.out ? request.out : "out.bin";
    request.end = request.end ? request.end : -1;
    while (request.names[request.name_count])
        request.name_count++;
    int rc = pack_run(&request, out, err);
    tokenizer_close(bytes);
    return rc;
}
#define NAMES(...)                                                                                 \
    .names = (const char *const[])                                                                 \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

static struct pack_result pack_well(struct pack_request request)
{
    struct pack_result result = {0};
    struct error err = {""};
    ck_assert_msg(pack(request, &result, &err) == 0, "%s", err.text);
    return result;
}

static void check_fails(struct pack_request request, int rc, const char *sentence)
{
    struct pack_result result;
    struct error err = {""};
    ck_assert_int_eq(pack(request, &result, &err), rc);
    ck_assert_str_eq(err.text, sentence);
}

static size_t count_files(void)
{
    DIR *folder = opendir(".");
    ck_assert_ptr_nonnull(folder);
    size_t count = 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 2; /* . and .. */
}

START_TEST(packed_texts_are_what_data_text_reads)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    write_ramp("d/z", 1, 90);
    write_ramp("d/a", 3, 101);
    write_file("d/binary", "a\0b", 3);
    write_ramp("bytes", 0, 251); /* NUL among them */
    write_ramp("empty", 0, 0);
    struct pack_result result = pack_well((struct pack_request){NAMES("bytes", "empty", "d")});
    ck_assert_uint_eq(result.documents, 3);
    ck_assert_uint_eq(result.text_bytes, 442);
    ck_assert_uint_eq(result.tokens, 442);
    ck_assert_uint_eq(result.file_bytes, 1024 + 2 * 442);
    struct data_source *text = open_data("text: [bytes, empty, d]", 20, 0.25, 1);
    struct data_source *packed = open_data("tokens: out.bin", 20, 0.25, 1);
    ck_assert_uint_eq(data_size(packed), data_size(text));
    for (int split = DATA_TRAIN; split <= DATA_HOLDOUT; split++) {
        int32_t one[5 * 20], other[5 * 20];
        data_fill(text, (enum data_split)split, 3, 0, 5, 0, 20, true, one);
        data_fill(packed, (enum data_split)split, 3, 0, 5, 0, 20, true, other);
        ck_assert_mem_eq(one, other, sizeof one);
    }
    data_close(text);
    data_close(packed);
}
END_TEST

START_TEST(a_token_ends_every_text_that_is_not_empty)
{
    write_file("a", "abc", 3);
    write_file("empty", "", 0);
    write_file("b", "d", 1);
    struct pack_result result =
        pack_well((struct pack_request){NAMES("a", "empty", "b"), .end_of_text = true});
    ck_assert_uint_eq(result.documents, 2);
    ck_assert_uint_eq(result.tokens, 6);
    struct data_source *source = open_data("tokens: out.bin", 5, 0, 1);
    int32_t tokens[5];
    data_fill(source, DATA_TRAIN, 0, 0, 1, 0, 5, false, tokens);
    const int32_t inputs[] = {'a', 'b', 'c', 256, 'd'};
    ck_assert_mem_eq(tokens, inputs, sizeof tokens);
    data_fill(source, DATA_TRAIN, 0, 0, 1, 4, 5, true, tokens);
    ck_assert_int_eq(tokens[0], 256);
    data_close(source);
}
END_TEST

#define LONG_SEQ 1000002

START_TEST(a_text_longer_than_the_buffer_is_whole)
{
    write_ramp("long", 0, LONG_SEQ + 1);
    int input = open("long", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(input, 0);
    pack_well((struct pack_request){NAMES("-"), .input = input});
    ck_assert_int_eq(close(input), 0);
    struct data_source *source = open_data("tokens: out.bin", LONG_SEQ, 0, 1);
    int32_t *tokens = xcalloc(2 * LONG_SEQ, sizeof *tokens), *expected = tokens + LONG_SEQ;
    for (int i = 0; i < LONG_SEQ; i++)
        expected[i] = i % 251;
    data_fill(source, DATA_TRAIN, 0, 0, 1, 0, LONG_SEQ, false, tokens);
    ck_assert_mem_eq(tokens, expected, LONG_SEQ * sizeof *tokens);
    free(tokens);
    data_close(source);
}
END_TEST

START_TEST(nothing_is_replaced_unless_told)
{
    write_file("a", "abc", 3);
    write_file("out.bin", "mine", 4);
    check_fails((struct pack_request){NAMES("a")}, -EEXIST,
                "'out.bin' is there already: --force replaces it");
    ck_assert_int_eq(link("out.bin", "kept"), 0);
    check_fails((struct pack_request){NAMES("a", "kept"), .force = true}, -EINVAL,
                "'kept' is the output too: name another file for it");
    struct stat status;
    ck_assert_int_eq(stat("out.bin", &status), 0);
    ck_assert_int_eq(status.st_size, 4);
    pack_well((struct pack_request){NAMES("a"), .force = true});
    ck_assert_int_eq(stat("out.bin", &status), 0);
    ck_assert_int_eq(status.st_size, 1024 + 2 * 3);
    ck_assert_int_eq(stat("kept", &status), 0);
    ck_assert_int_eq(status.st_size, 4);
    ck_assert_uint_eq(count_files(), 3);
}
END_TEST

START_TEST(what_cannot_be_packed_leaves_nothing)
{
    write_file("a", "abc", 3);
    write_file("empty", "", 0);
    ck_assert_int_eq(mkdir("d", 0700), 0);
    check_fails((struct pack_request){NAMES("a", "nowhere")}, -ENOENT,
                "cannot read 'nowhere': No such file or directory");
    check_fails((struct pack_request){NAMES("a", "d")}, -ENOENT,
                "there is no text file in the directory 'd'");
    check_fails((struct pack_request){NAMES("empty")}, -EINVAL,
                "there is no text to pack: every file is empty");
    int empty = open("empty", O_RDONLY | O_CLOEXEC), folder = open("d", O_RDONLY | O_CLOEXEC);
    check_fails((struct pack_request){NAMES("a", "-"), .input = empty}, -EINVAL,
                "standard input is empty: pipe a text into it");
    check_fails((struct pack_request){NAMES("a", "-"), .input = folder}, -EISDIR,
                "cannot read standard input beyond byte 0: Is a directory");
    close(empty);
    close(folder);
    check_fails((struct pack_request){NAMES("a"), .out = "nowhere/out.bin"}, -ENOENT,
                "cannot write 'nowhere/out.bin': No such file or directory");
    check_fails((struct pack_request){NAMES("a"), .out = "d", .force = true}, -EINVAL,
                "'d' is no regular file: name one for the tokens");
    ck_assert_uint_eq(count_files(), 3);
}
END_TEST

/* The header counts with 31 bits. */
START_TEST(more_tokens_than_a_file_can_count_are_refused_before_anything_is_written)
{
    write_file("sparse", "x", 1);
    ck_assert_int_eq(truncate("sparse", INT32_MAX), 0);
    write_file("a", "abc", 3);
    check_fails((struct pack_request){NAMES("sparse", "a")}, -EFBIG,
                "a text of 2147483650 bytes cannot fit: a token file holds at most 2147483647 "
                "tokens; pack several and name them all in data.tokens");
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

/* A pipe that nobody writes to would be waited for forever. */
START_TEST(who_started_it_ends_it)
{
    int ends[2];
    write_file("a", "abc", 3);
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    ck_assert_int_eq(pipe(ends), 0);
    close(ends[1]);
    check_fails((struct pack_request){NAMES("fifo"), .end = ends[0]}, -ECANCELED, "cancelled");
    close(ends[0]);
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

SUITE(pack)
{
    TCase *tcase = tcase_create("pack");
    tcase_add_checked_fixture(tcase, data_setup, data_teardown);
    tcase_add_test(tcase, packed_texts_are_what_data_text_reads);
    tcase_add_test(tcase, a_token_ends_every_text_that_is_not_empty);
    tcase_add_test(tcase, a_text_longer_than_the_buffer_is_whole);
    tcase_add_test(tcase, nothing_is_replaced_unless_told);
    tcase_add_test(tcase, what_cannot_be_packed_leaves_nothing);
    tcase_add_test(tcase, more_tokens_than_a_file_can_count_are_refused_before_anything_is_written);
    tcase_add_test(tcase, who_started_it_ends_it);
    return suite_run("pack", tcase, NULL);
}
