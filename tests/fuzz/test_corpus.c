/* test_corpus.c - the committed inputs of every fuzz target, run once each. */
#include "tests/fuzz/targets.h"
#include "tests/support/suite.h"

#include "common/base/memory.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

static void run_file(const struct fuzz_target *target, const char *path)
{
    uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "re");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    target->run(target, bytes, size);
}

/* A copy in memory of its own size, so that a sanitizer sees what is read behind it. */
static void run_cut(const struct fuzz_target *target, const char *path)
{
    uint8_t bytes[1 << 16];
    FILE *file = fopen(path, "re");
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut < size; cut += 1 + size / 64) {
        uint8_t *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        target->run(target, part, cut);
        free(part);
    }
}

START_TEST(every_input_of_the_corpus_is_taken_or_refused_in_words)
{
    const struct fuzz_target *target = fuzz_target_at((size_t)_i);
    char *folder = xasprintf(CORPUS "/%s", target->name);
    DIR *directory = opendir(folder);
    ck_assert_msg(directory != NULL, "there is no %s: make it with tests/fuzz/seeds", folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.')
            continue;
        char *path = xasprintf("%s/%s", folder, entry->d_name);
        run_file(target, path);
        run_cut(target, path);
        free(path);
        count++;
    }
    closedir(directory);
    ck_assert_msg(count > 0, "%s is empty", folder);
    free(folder);
}
END_TEST

int main(void)
{
    int count = 0;
    while (fuzz_target_at((size_t)count))
        count++;
    TCase *tcase = tcase_create("corpus");
    tcase_add_loop_test(tcase, every_input_of_the_corpus_is_taken_or_refused_in_words, 0, count);
    return suite_run("fuzz corpus", tcase, NULL);
}
