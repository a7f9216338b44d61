/* test_data.c - windows, split and samples, and what is said when the files will not do. */
#include "common/base/memory.h"
#include "worker/data/data.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

/* Every test runs in an empty directory of its own. */
static void setup(void)
{
    snprintf(folder, sizeof folder, "/tmp/gimbal-data-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
}

static void teardown(void)
{
    char *command = xasprintf("rm -r '%s'", folder);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* Byte i is i modulo 251, from first on: with no more than 251 bytes, each tells its place. */
static void write_ramp(const char *path, size_t first, size_t size)
{
    unsigned char *bytes = xcalloc(size, 1);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)((first + i) % 251);
    write_file(path, bytes, size);
    free(bytes);
}

/* data: the section's inside, such as "text: [a, b]". */
static int open_job(const char *data, int seq, double holdout, int seed,
                    struct data_source **source, struct error *err)
{
    char *text =
        xasprintf("apiVersion: gimbal/v1\nname: test\n"
                  "model: {family: gpt, layers: 1, hidden: 8, heads: 1, seq: %d, vocab: 300}\n"
                  "data: {%s}\ntrain: {steps: 1, global_batch: 1, lr: 1, seed: %d}\n"
                  "eval: {holdout: %g}\n",
                  seq, data, seed, holdout);
    struct job_config *job;
    struct error words = {""};
    int rc = job_config_parse(text, strlen(text), "job", &job, &words);
    ck_assert_msg(rc == 0, "%s", words.text);
    free(text);
    rc = data_open(job, source, err);
    job_config_destroy(job); /* the source does not need it any more */
    return rc;
}

static struct data_source *open_data(const char *data, int seq, double holdout, int seed)
{
    struct data_source *source = NULL;
    struct error err = {""};
    int rc = open_job(data, seq, holdout, seed, &source, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    return source;
}

static void check_refused(const char *data, int seq, double holdout, int rc, const char *sentence)
{
    struct data_source *source = NULL;
    struct error err = {""};
    ck_assert_int_eq(open_job(data, seq, holdout, 1, &source, &err), rc);
    ck_assert_str_eq(err.text, sentence);
    ck_assert_ptr_null(source);
}

START_TEST(targets_are_the_next_tokens)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 10, 0, 1);
    ck_assert_uint_eq(data_size(source), 251);
    ck_assert_uint_eq(data_samples(source, DATA_TRAIN), 25);
    int32_t inputs[10], targets[10];
    for (uint64_t sample = 0; sample < 60; sample++) {
        data_fill(source, DATA_TRAIN, sample, 0, 1, 0, 10, false, inputs);
        data_fill(source, DATA_TRAIN, sample, 0, 1, 0, 10, true, targets);
        ck_assert_int_eq(inputs[0] % 10, 0);
        for (int i = 0; i < 10; i++) {
            ck_assert_int_eq(inputs[i], inputs[0] + i);
            ck_assert_int_eq(targets[i], inputs[i] + 1);
        }
    }
    data_close(source);
}
END_TEST

START_TEST(an_epoch_has_every_window_once_and_no_held_out_token)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 10, 0.2, 1);
    uint64_t train = data_samples(source, DATA_TRAIN);
    uint64_t holdout = data_samples(source, DATA_HOLDOUT);
    ck_assert_uint_eq(holdout, 5);
    ck_assert_uint_eq(train, 19);
    int trained[251] = {0}, held[251] = {0}, starts[251] = {0};
    int32_t tokens[10];
    for (uint64_t sample = 0; sample < train; sample++) {
        for (int targets = 0; targets < 2; targets++) {
            data_fill(source, DATA_TRAIN, sample, 0, 1, 0, 10, targets, tokens);
            starts[tokens[0]] += !targets;
            for (int i = 0; i < 10; i++)
                trained[tokens[i]] = 1;
        }
    }
    for (uint64_t sample = 0; sample < holdout; sample++) {
        for (int targets = 0; targets < 2; targets++) {
            data_fill(source, DATA_HOLDOUT, sample, 0, 1, 0, 10, targets, tokens);
            for (int i = 0; i < 10; i++)
                held[tokens[i]] = 1;
        }
    }
    for (uint64_t window = 0; window < train; window++)
        ck_assert_int_eq(starts[window * 10], 1);
    for (int token = 0; token < 251; token++)
        ck_assert_int_eq(trained[token] && held[token], 0);
    ck_assert_int_eq(held[250], 1); /* the tail */
    ck_assert_int_eq(held[200], 1);
    ck_assert_int_eq(held[199], 0);
    data_close(source);
}
END_TEST

/* A batch of 12 samples of 16 tokens, whole and by every cut in two of both dims. */
START_TEST(a_batch_read_by_pieces_is_the_batch)
{
    enum { SAMPLES = 12, SEQ = 16, FIRST = 31 };
    write_ramp("a", 0, 1000);
    struct data_source *source = open_data("text: a", SEQ, 0, 1);
    int32_t whole[SAMPLES][SEQ], piece[SAMPLES * SEQ];
    data_fill(source, DATA_TRAIN, FIRST, 0, SAMPLES, 0, SEQ, _i, &whole[0][0]);
    for (int cut = 0; cut <= SAMPLES; cut++) {
        for (int seq_cut = 0; seq_cut <= SEQ; seq_cut++) {
            data_fill(source, DATA_TRAIN, FIRST, cut, SAMPLES, seq_cut, SEQ, _i, piece);
            for (int i = cut; i < SAMPLES; i++)
                ck_assert_mem_eq(&whole[i][seq_cut], piece + (i - cut) * (SEQ - seq_cut),
                                 (size_t)(SEQ - seq_cut) * sizeof *piece);
            data_fill(source, DATA_TRAIN, FIRST, 0, cut, 0, seq_cut, _i, piece);
            for (int i = 0; i < cut; i++)
                ck_assert_mem_eq(&whole[i][0], piece + i * seq_cut,
                                 (size_t)seq_cut * sizeof *piece);
        }
        data_fill(source, DATA_TRAIN, FIRST + (uint64_t)cut, 0, SAMPLES - cut, 0, SEQ, _i, piece);
        ck_assert_mem_eq(piece, &whole[0][0] + cut * SEQ,
                         (size_t)((SAMPLES - cut) * SEQ) * sizeof *piece);
    }
    data_close(source);
}
END_TEST

static int count_equal_samples(const struct data_source *one, uint64_t first,
                               const struct data_source *other, uint64_t other_first)
{
    int equal = 0;
    for (uint64_t i = 0; i < 50; i++) {
        int32_t token, other_token;
        data_fill(one, DATA_TRAIN, first + i, 0, 1, 0, 1, false, &token);
        data_fill(other, DATA_TRAIN, other_first + i, 0, 1, 0, 1, false, &other_token);
        equal += token == other_token;
    }
    return equal;
}

START_TEST(the_order_follows_seed_and_epoch_only)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 5, 0, 1);
    struct data_source *same = open_data("text: a", 5, 0, 1);
    struct data_source *other = open_data("text: a", 5, 0, 2);
    ck_assert_uint_eq(data_samples(source, DATA_TRAIN), 50);
    ck_assert_int_eq(count_equal_samples(source, 0, same, 0), 50);
    ck_assert_int_lt(count_equal_samples(source, 0, other, 0), 10);
    ck_assert_int_lt(count_equal_samples(source, 0, source, 50), 10);
    data_close(source);
    data_close(same);
    data_close(other);
}
END_TEST

START_TEST(held_out_samples_come_in_order_and_then_ignored_ones)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 10, 0.2, 1);
    int32_t inputs[4][10], targets[4][10];
    data_fill(source, DATA_HOLDOUT, 3, 0, 4, 0, 10, false, &inputs[0][0]);
    data_fill(source, DATA_HOLDOUT, 3, 0, 4, 0, 10, true, &targets[0][0]);
    ck_assert_int_eq(inputs[0][0], 230);
    ck_assert_int_eq(targets[1][9], 250);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(inputs[2][i], 0);
        ck_assert_int_eq(targets[2][i], DATA_IGNORED);
        ck_assert_int_eq(targets[3][i], DATA_IGNORED);
    }
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 3, 4), 20);
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 0, 4), 40);
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 9, 4), 0);
    ck_assert_uint_eq(data_targets(source, DATA_TRAIN, 1000, 4), 40);
    data_close(source);
}
END_TEST

START_TEST(files_are_one_corpus_in_the_given_order)
{
    write_ramp("whole", 0, 251);
    write_ramp("z", 0, 3);
    write_ramp("empty", 0, 0);
    write_ramp("a", 3, 101);
    write_ramp("m", 104, 147);
    struct data_source *whole = open_data("text: whole", 50, 0, 1);
    struct data_source *parts = open_data("text: [z, empty, a, m]", 50, 0, 1);
    struct data_source *mixed = open_data("text: [a, z, m]", 50, 0, 1);
    ck_assert_uint_eq(data_size(parts), 251);
    ck_assert_uint_eq(data_hash(parts), data_hash(whole));
    ck_assert_uint_ne(data_hash(mixed), data_hash(whole));
    int32_t one[5 * 50], other[5 * 50];
    data_fill(whole, DATA_TRAIN, 0, 0, 5, 0, 50, true, one);
    data_fill(parts, DATA_TRAIN, 0, 0, 5, 0, 50, true, other);
    ck_assert_mem_eq(one, other, sizeof one);
    data_close(whole);
    data_close(parts);
    data_close(mixed);
}
END_TEST

START_TEST(a_directory_is_its_text_files_by_name)
{
    ck_assert_int_eq(mkdir("d", 0700), 0);
    ck_assert_int_eq(mkdir("d/inner", 0700), 0);
    write_file("d/inner/x", "xxxx", 4);
    write_file("d/b", "bb", 2);
    write_file("d/B", "BB", 2);
    write_file("d/a", "aa", 2);
    write_file("d/binary", "a\0b", 3);
    ck_assert_int_eq(mkfifo("d/fifo", 0600), 0);
    ck_assert_int_eq(symlink("nowhere", "d/dangling"), 0);
    ck_assert_int_eq(symlink("a", "d/a.again"), 0); /* the same text under two names */
    ck_assert_int_eq(link("d/b", "d/b.again"), 0);
    struct data_source *source = open_data("text: d", 5, 0, 1);
    ck_assert_uint_eq(data_size(source), 6);
    int32_t tokens[5];
    data_fill(source, DATA_TRAIN, 0, 0, 1, 0, 5, false, tokens);
    const int32_t expected[] = {'B', 'B', 'a', 'a', 'b'};
    ck_assert_mem_eq(tokens, expected, sizeof tokens);
    data_close(source);
}
END_TEST

/* Given by name, a file may hold any bytes. */
START_TEST(a_named_file_may_hold_any_byte)
{
    write_file("a", "\0\xff\0", 3);
    struct data_source *source = open_data("text: a", 2, 0, 1);
    int32_t tokens[2];
    data_fill(source, DATA_TRAIN, 0, 0, 1, 0, 2, true, tokens);
    ck_assert_int_eq(tokens[0], 255);
    ck_assert_int_eq(tokens[1], 0);
    data_close(source);
}
END_TEST

START_TEST(what_cannot_be_read_is_named_with_the_reason)
{
    check_refused("text: [none.txt]", 8, 0, -ENOENT,
                  "data.text: cannot open 'none.txt': No such file or directory");
    ck_assert_int_eq(mkdir("d", 0700), 0);
    check_refused("text: d", 8, 0, -ENOENT,
                  "data.text: there is no text file in the directory 'd'");
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    check_refused("text: fifo", 8, 0, -EINVAL, "data.text: 'fifo' is no regular file");
    check_refused("tokens: d", 8, 0, -EISDIR, "data.tokens: 'd' is a directory, not a file");
    ck_assert_int_eq(symlink("loop", "loop"), 0);
    check_refused("text: loop", 8, 0, -ELOOP,
                  "data.text: cannot open 'loop': Too many levels of symbolic links");
}
END_TEST

START_TEST(a_file_without_permission_is_an_error_even_in_a_directory)
{
    if (geteuid() == 0 && setegid(65534) == 0 && chown(folder, 65534, 65534) == 0)
        ck_assert_int_eq(seteuid(65534), 0); /* root may read everything */
    ck_assert_int_eq(mkdir("d", 0700), 0);
    write_file("d/a", "aaaa", 4);
    write_file("d/b", "bbbb", 4);
    ck_assert_int_eq(chmod("d/b", 0), 0);
    check_refused("text: d", 2, 0, -EACCES, "data.text: cannot open 'd/b': Permission denied");
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(too_short_a_corpus_is_refused_with_the_sizes)
{
    write_ramp("a", 0, 40);
    check_refused(
        "text: a", 40, 0, -EINVAL,
        "data.text: 40 tokens are too few for one sample: model.seq 40 needs at least 41");
    check_refused(
        "text: a", 10, 0.1, -EINVAL,
        "data.text: 40 tokens make 3 samples of model.seq 10: eval.holdout 0.1 of them is "
        "less than one, write 0.333 or more");
    check_refused("text: a", 20, 0.5, -EINVAL,
                  "data.text: 40 tokens leave no sample of model.seq 20 to train on beside an "
                  "eval.holdout of 1: at least 42 are needed");
    write_ramp("a", 0, 42);
    data_close(open_data("text: a", 20, 0.5, 1));
}
END_TEST

/* llm.c's header and n tokens 0, 1, 2 ... */
static void write_tokens(const char *path, int32_t magic, int32_t version, int width, int count)
{
    unsigned char bytes[1024 + 4 * 64] = {0};
    int32_t header[3] = {magic, version, count};
    memcpy(bytes, header, sizeof header);
    for (int i = 0; i < count; i++) {
        bytes[1024 + i * width] = (unsigned char)i;
        bytes[1024 + i * width + 1] = 1; /* 256 + i: wider than a byte */
    }
    write_file(path, bytes, (size_t)(1024 + count * width));
}

START_TEST(token_files_are_read_in_both_widths)
{
    write_tokens("a", _i ? 20240801 : 20240520, _i ? 7 : 1, _i ? 4 : 2, 20);
    struct data_source *source = open_data("tokens: [a, a]", 39, 0, 1);
    ck_assert_uint_eq(data_size(source), 40);
    int32_t tokens[39];
    data_fill(source, DATA_TRAIN, 0, 0, 1, 0, 39, true, tokens);
    for (int i = 0; i < 39; i++)
        ck_assert_int_eq(tokens[i], 256 + (i + 1) % 20);
    data_close(source);
}
END_TEST

START_TEST(a_wrong_token_file_is_refused_in_words)
{
    write_file("short", "abc", 3);
    check_refused("tokens: short", 8, 0, -EINVAL,
                  "data.tokens: 'short' is no token file (llm.c's .bin)");
    write_tokens("odd", 20240520, 2, 2, 20);
    check_refused("tokens: odd", 8, 0, -EINVAL,
                  "data.tokens: 'odd' is no token file (llm.c's .bin)");
    write_tokens("a", 20240520, 1, 2, 20);
    write_tokens("b", 20240801, 7, 4, 20);
    check_refused("tokens: [a, b]", 8, 0, -EINVAL,
                  "data.tokens: 'b' has tokens of 4 bytes, the files before it of 2");
    write_tokens("big", 20240520, 1, 2, 64);
    check_refused("tokens: big", 8, 0, -ERANGE,
                  "data.tokens: token 44 of 'big' is 300, but model.vocab is 300");
    ck_assert_int_eq(truncate("a", 1024 + 39), 0);
    check_refused("tokens: a", 8, 0, -EINVAL,
                  "data.tokens: 'a' says it has 20 tokens of 2 bytes, but 39 bytes follow its "
                  "header");
}
END_TEST

/* The only file of a corpus, as it is reported. */
static struct data_file only_file(const char *path)
{
    struct data_file *files;
    char *data = xasprintf("text: [%s]", path);
    struct data_source *source = open_data(data, 4, 0, 1);
    ck_assert_uint_eq(data_files(source, &files), 1);
    ck_assert_str_eq(files[0].path, path);
    struct data_file file = {NULL, files[0].size, files[0].hash};
    data_files_free(files, 1);
    data_close(source);
    free(data);
    return file;
}

START_TEST(every_byte_of_a_small_file_counts)
{
    write_ramp("a", 0, 200);
    write_ramp("b", 0, 200);
    ck_assert_uint_eq(only_file("a").hash, only_file("b").hash);
    ck_assert_uint_eq(only_file("a").size, 200);
    write_file("b", "x", 1);
    ck_assert_int_eq(truncate("b", 200), 0);
    ck_assert_uint_ne(only_file("a").hash, only_file("b").hash);
}
END_TEST

static uint64_t hash_with_byte(const char *path, off_t place)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ftruncate(fileno(file), (off_t)200 << 20), 0);
    ck_assert_int_eq(fseeko(file, place, SEEK_SET), 0);
    ck_assert_int_ne(fputc('x', file), EOF);
    ck_assert_int_eq(fclose(file), 0);
    return only_file(path).hash;
}

/* 64 MiB of 200: the head, the tail, and what lies evenly between them. */
START_TEST(of_a_large_file_samples_count)
{
    const off_t mib = 1 << 20;
    uint64_t between = hash_with_byte("large", 2 * mib);
    ck_assert_uint_eq(hash_with_byte("large", 199 * mib - 1), between);
    ck_assert_uint_ne(hash_with_byte("large", 0), between);
    ck_assert_uint_ne(hash_with_byte("large", 200 * mib - 1), between);
    ck_assert_uint_ne(hash_with_byte("large", 199 * mib * 31 / 63), between);
}
END_TEST

START_TEST(many_files_end_in_one_entry_that_stands_for_the_rest)
{
    struct data_file *files;
    char path[32];
    uint64_t hashes[2];
    ck_assert_int_eq(mkdir("many", 0700), 0);
    for (int i = 0; i < DATA_FILES_MAX + 10; i++) {
        snprintf(path, sizeof path, "many/%05d", i);
        write_file(path, path, 10); /* any text that is another's */
    }
    for (int i = 0; i < 2; i++) {
        struct data_source *source = open_data("text: [many]", 4, 0, 1);
        ck_assert_uint_eq(data_files(source, &files), DATA_FILES_MAX);
        ck_assert_str_eq(files[0].path, "many/00000");
        ck_assert_str_eq(files[DATA_FILES_MAX - 1].path, "11 more files");
        ck_assert_uint_eq(files[DATA_FILES_MAX - 1].size, 110);
        hashes[i] = files[DATA_FILES_MAX - 1].hash;
        data_files_free(files, DATA_FILES_MAX);
        data_close(source);
        write_file(path, "many/other", 10); /* the last one */
    }
    ck_assert_uint_ne(hashes[0], hashes[1]);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("data");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, every_byte_of_a_small_file_counts);
    tcase_add_test(tcase, of_a_large_file_samples_count);
    tcase_add_test(tcase, many_files_end_in_one_entry_that_stands_for_the_rest);
    tcase_add_test(tcase, targets_are_the_next_tokens);
    tcase_add_test(tcase, an_epoch_has_every_window_once_and_no_held_out_token);
    tcase_add_loop_test(tcase, a_batch_read_by_pieces_is_the_batch, 0, 2);
    tcase_add_test(tcase, the_order_follows_seed_and_epoch_only);
    tcase_add_test(tcase, held_out_samples_come_in_order_and_then_ignored_ones);
    tcase_add_test(tcase, files_are_one_corpus_in_the_given_order);
    tcase_add_test(tcase, a_directory_is_its_text_files_by_name);
    tcase_add_test(tcase, a_named_file_may_hold_any_byte);
    tcase_add_test(tcase, what_cannot_be_read_is_named_with_the_reason);
    tcase_add_test(tcase, a_file_without_permission_is_an_error_even_in_a_directory);
    tcase_add_test(tcase, too_short_a_corpus_is_refused_with_the_sizes);
    tcase_add_loop_test(tcase, token_files_are_read_in_both_widths, 0, 2);
    tcase_add_test(tcase, a_wrong_token_file_is_refused_in_words);
    Suite *suite = suite_create("data");
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
