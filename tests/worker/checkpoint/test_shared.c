/* test_shared.c - a folder that is another one on another node is found out. */
#include "common/base/memory.h"
#include "tests/support/ranks.h"
#include "tests/support/suite.h"
#include "tests/worker/checkpoint/checkpoints.h"
#include "worker/checkpoint/saver.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 3

struct looker {
    struct saver_folder test;
    pthread_t thread;
    int rc;
    struct error err;
};

static void *look(void *context)
{
    struct looker *looker = context;
    looker->rc = saver_check_folder(&looker->test, &looker->err);
    return NULL;
}

/* Rank r sees folders[r]. */
static void check(struct looker *lookers, char *const *folders)
{
    static const char *const nodes[RANKS] = {"node-a", "node-b", "node-c"};
    struct rendezvous *rendezvous = test_rendezvous_create(10);
    for (int rank = 0; rank < RANKS; rank++) {
        lookers[rank] = (struct looker){.test = {.folder = folders[rank],
                                                 .epoch = 4,
                                                 .rank = rank,
                                                 .ranks = RANKS,
                                                 .node = nodes[rank],
                                                 .first = nodes[0],
                                                 .rendezvous = rendezvous}};
        ck_assert_int_eq(pthread_create(&lookers[rank].thread, NULL, look, &lookers[rank]), 0);
    }
    for (int rank = 0; rank < RANKS; rank++)
        pthread_join(lookers[rank].thread, NULL);
    test_rendezvous_destroy(rendezvous);
}

static size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *directory = opendir(path);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 2; /* "." and ".." */
}

START_TEST(one_folder_is_shared_and_nothing_is_left_in_it)
{
    struct looker lookers[RANKS];
    char *folder = checkpoints_make_folder();
    check(lookers, (char *[]){folder, folder, folder});
    for (int rank = 0; rank < RANKS; rank++)
        ck_assert_msg(lookers[rank].rc == 0, "%s", lookers[rank].err.text);
    ck_assert_uint_eq(count_entries(folder), 0);
    checkpoints_delete_folder(folder);
}
END_TEST

START_TEST(the_node_with_another_folder_is_named)
{
    struct looker lookers[RANKS];
    char *shared = checkpoints_make_folder(), *own = checkpoints_make_folder();
    check(lookers, (char *[]){shared, own, shared});
    ck_assert_int_eq(lookers[0].rc, 0);
    ck_assert_int_eq(lookers[1].rc, -EXDEV);
    ck_assert_int_eq(lookers[2].rc, 0);
    char *words = xasprintf("node 'node-b' does not find in '%s' what node 'node-a' wrote", own);
    ck_assert_msg(strstr(lookers[1].err.text, words) != NULL, "%s", lookers[1].err.text);
    free(words);
    checkpoints_delete_folder(shared);
    checkpoints_delete_folder(own);
}
END_TEST

SUITE(shared)
{
    TCase *tcase = tcase_create("shared");
    tcase_add_test(tcase, one_folder_is_shared_and_nothing_is_left_in_it);
    tcase_add_test(tcase, the_node_with_another_folder_is_named);
    return suite_run("shared", tcase, NULL);
}
