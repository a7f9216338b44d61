/* test_files.c - which files are read, what they are known by, and what is said of those that will
 * not do. */
#include "common/base/memory.h"
#include "tests/worker/data/data_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    int32_t one[5 * 50], other[5 * 50];
    data_fill(whole, DATA_TRAIN, 0, 0, 5, 0, 50, true, one);
    data_fill(parts, DATA_TRAIN, 0, 0, 5, 0, 50, true, other);
    ck_assert_mem_eq(one, other, sizeof one);
    data_fill(mixed, DATA_TRAIN, 0, 0, 5, 0, 50, true, other);
    ck_assert_mem_ne(one, other, sizeof one);
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
    if (geteuid() == 0 && setegid(65534) == 0 && chown(data_folder, 65534, 65534) == 0)
        ck_assert_int_eq(seteuid(65534), 0); /* root may read everything */
    ck_assert_int_eq(mkdir("d", 0700), 0);
    write_file("d/a", "aaaa", 4);
    write_file("d/b", "bbbb", 4);
    ck_assert_int_eq(chmod("d/b", 0), 0);
    check_refused("text: d", 2, 0, -EACCES, "data.text: cannot open 'd/b': Permission denied");
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(unlink("d/b"), 0);
    ck_assert_int_eq(symlink("c", "d/c"), 0);
    check_refused("text: d", 2, 0, -ELOOP,
                  "data.text: cannot read 'd/c': Too many levels of symbolic links");
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

SUITE(files)
{
    TCase *tcase = tcase_create("files");
    tcase_add_checked_fixture(tcase, data_setup, data_teardown);
    tcase_add_test(tcase, every_byte_of_a_small_file_counts);
    tcase_add_test(tcase, of_a_large_file_samples_count);
    tcase_add_test(tcase, many_files_end_in_one_entry_that_stands_for_the_rest);
    tcase_add_test(tcase, files_are_one_corpus_in_the_given_order);
    tcase_add_test(tcase, a_directory_is_its_text_files_by_name);
    tcase_add_test(tcase, a_named_file_may_hold_any_byte);
    tcase_add_test(tcase, what_cannot_be_read_is_named_with_the_reason);
    tcase_add_test(tcase, a_file_without_permission_is_an_error_even_in_a_directory);
    return suite_run("files", tcase, NULL);
}
