/* test_ancestor.c - a job that goes on from a checkpoint has its model, and all else that is not as
 * it was is told field by field. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/checkpoint/ancestor.h"
#include "common/models/model.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define JOB                                                                                        \
    "apiVersion: gimbal/v1\n"                                                                      \
    "name: verses\n"                                                                               \
    "model: {family: llama, layers: 2, hidden: 32, heads: 4, seq: 16, kv_heads: 4}\n"              \
    "data: {text: [/texts]}\n"                                                                     \
    "train: {steps: 200, global_batch: 8, lr: 0.003}\n"

static struct job_config *job;
static struct graph *graph;
static struct texts differences;
static struct error err;

static int compare(const char *text, const char *spec)
{
    const struct ancestor origin = {
        .folder = (char *)"/saved/step-100.epoch-1", .spec = (char *)spec, .step = 100};
    ck_assert_msg(job_config_parse(text, strlen(text), "job", &job, &err) == 0, "%s", err.text);
    ck_assert_msg(model_build(&job->model, job->train.dtype, &graph, &err) == 0, "%s", err.text);
    return ancestor_compare(&origin, NULL, job, graph, &differences, &err);
}

static void teardown(void)
{
    ancestor_forget(&differences);
    graph_destroy(graph);
    job_config_destroy(job);
    graph = NULL;
    job = NULL;
}

/* JOB with one text in the place of another. */
static char *changed(const char *from, const char *to)
{
    const char *at = strstr(JOB, from);
    ck_assert_ptr_nonnull(at);
    return xasprintf("%.*s%s%s", (int)(at - JOB), JOB, to, at + strlen(from));
}

START_TEST(the_same_job_differs_in_nothing)
{
    ck_assert_int_eq(compare(JOB, JOB), 0);
    ck_assert_uint_eq(differences.count, 0);
}
END_TEST

static const struct {
    const char *from, *to, *words;
} followed[] = {
    {"lr: 0.003", "lr: 0.001", "train.lr is 0.001 and was 0.003"},
    {"[/texts]", "[/texts, /more]", "data.text is /texts,/more and was /texts"},
    {"steps: 200", "steps: 300", "train.steps is 300 and was 200"},
    {"global_batch: 8", "global_batch: 4", "train.global_batch is 4 and was 8"},
    {"lr: 0.003", "lr: 0.003, seed: 7", "train.seed is 7 and was 1"},
    {"seq: 16", "seq: 32", "model.seq is 32 and was 16"},
    {"name: verses\n", "name: verses\ncheckpoint: {dir: /saved}\n",
     "checkpoint.dir is /saved and was not given"},
};

START_TEST(what_is_changed_is_followed_and_told)
{
    char *text = changed(followed[_i].from, followed[_i].to);
    ck_assert_msg(compare(text, JOB) == 0, "%s", err.text);
    ck_assert_uint_ge(differences.count, 1);
    ck_assert_str_eq(differences.items[0], followed[_i].words);
    free(text);
}
END_TEST

/* Those with the same tensors, too. */
static const struct {
    const char *from, *to, *words;
} refused[] = {
    {"layers: 2", "layers: 3", "another model: model.layers is 3 and was 2"},
    {"heads: 4, seq: 16, kv_heads: 4", "heads: 8, seq: 16, kv_heads: 8",
     "another model: model.heads is 8 and was 4"},
    {"seq: 16", "seq: 16, norm_epsilon: 1.0e-6", "another model: model.norm_epsilon"},
    {"seq: 16", "seq: 16, rope_theta: 5.0e5", "another model: model.rope_theta"},
    {"seq: 16", "seq: 16, rope_scaling: {rope_type: linear, factor: 2}",
     "another model: model.rope_scaling.rope_type is linear and was default"},
    {"seq: 16", "seq: 16, ffn: 48", "another model: 'layers.0."},
    {"seq: 16", "seq: 16, tied: true", "another model: "},
};

START_TEST(another_model_is_refused)
{
    char *text = changed(refused[_i].from, refused[_i].to);
    ck_assert_int_eq(compare(text, JOB), -EINVAL);
    ck_assert_msg(strstr(err.text, refused[_i].words) &&
                      strstr(err.text, "the checkpoint '/saved/step-100.epoch-1': "),
                  "%s", err.text);
    free(text);
}
END_TEST

static const struct {
    const char *from, *to;
} spelled[] = {
    {", kv_heads: 4", ""},
    {"seq: 16", "seq: 16, norm_epsilon: 1.0e-5, rope_theta: 10000"},
    {"seq: 16", "seq: 16, tied: false"},
    {"seq: 16", "seq: 16, weights: /shared/model"},
};

START_TEST(another_spelling_is_the_same_model)
{
    char *text = changed(spelled[_i].from, spelled[_i].to);
    ck_assert_msg(compare(text, JOB) == 0, "%s", err.text);
    ck_assert_uint_eq(differences.count, 0);
    free(text);
}
END_TEST

START_TEST(what_cannot_be_compared_is_told)
{
    ck_assert_int_eq(compare(JOB, NULL), 0);
    ck_assert_uint_eq(differences.count, 1);
    ck_assert_ptr_nonnull(strstr(differences.items[0], "an older release wrote it"));
    teardown();
    ck_assert_int_eq(compare(JOB, "apiVersion: gimbal/v9\n"), 0);
    ck_assert_uint_eq(differences.count, 1);
    ck_assert_ptr_nonnull(strstr(differences.items[0], "is not one of this release's"));
}
END_TEST

START_TEST(a_job_that_ends_where_it_would_begin_is_refused)
{
    struct ancestor origin = {.folder = (char *)"/saved/step-200.epoch-1", .step = 200};
    ck_assert_int_eq(compare(JOB, JOB), 0);
    ck_assert_int_eq(ancestor_leaves(&origin, job, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "nothing is left to train"));
    origin.step = 199;
    ck_assert_int_eq(ancestor_leaves(&origin, job, &err), 0);
}
END_TEST

START_TEST(other_contents_of_the_data_are_told)
{
    struct manifest_file was[] = {{(char *)"/a", 10, 1}, {(char *)"/b", 20, 2}};
    struct manifest_file now[] = {{(char *)"/a", 10, 1}, {(char *)"/b", 20, 3}};
    const struct manifest manifest = {.origin = {.files = was, .file_count = 2}}, unknown = {0};
    ancestor_compare_files(&manifest, was, 2, &differences);
    ancestor_compare_files(&unknown, now, 2, &differences);
    ck_assert_uint_eq(differences.count, 0);
    ancestor_compare_files(&manifest, now, 2, &differences);
    ancestor_compare_files(&manifest, was, 1, &differences);
    ck_assert_uint_eq(differences.count, 2);
    ck_assert_str_eq(differences.items[0], "the data: file 2, /b, has other contents");
    ck_assert_str_eq(differences.items[1], "the data: file 2 is none and was /b");
}
END_TEST

/* A folder of this name, complete or not. */
static void put(const char *root, const char *name, bool complete)
{
    char *folder = xasprintf("%s/%s", root, name), *path = xasprintf("%s/manifest.json", folder);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    if (complete)
        ck_assert_int_eq(file_write(path, "{}", 0600, &err), 0);
    free(path);
    free(folder);
}

START_TEST(of_several_the_newest_complete_one_is_found)
{
    char root[] = "/tmp/gimbal-origin-XXXXXX", *found, *right;
    ck_assert_ptr_nonnull(mkdtemp(root));
    ck_assert_int_eq(ancestor_find(root, &found, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "has no manifest.json"));
    put(root, "step-90.epoch-1", true);
    put(root, "step-100.epoch-1", true);
    put(root, "step-100.epoch-2", true);
    put(root, "step-110.epoch-2", false);
    put(root, "step-200", true);
    right = xasprintf("%s/step-100.epoch-2", root);
    for (int i = 0; i < 2; i++) {
        ck_assert_msg(ancestor_find(i ? right : root, &found, &err) == 0, "%s", err.text);
        ck_assert_str_eq(found, right);
        free(found);
    }
    char *remove = xasprintf("rm -rf '%s'", root);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
    free(right);
}
END_TEST

#define COUNT(list) (sizeof(list) / sizeof *(list))

SUITE(ancestor)
{
    TCase *tcase = tcase_create("ancestor");
    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_test(tcase, the_same_job_differs_in_nothing);
    tcase_add_loop_test(tcase, what_is_changed_is_followed_and_told, 0, COUNT(followed));
    tcase_add_loop_test(tcase, another_model_is_refused, 0, COUNT(refused));
    tcase_add_loop_test(tcase, another_spelling_is_the_same_model, 0, COUNT(spelled));
    tcase_add_test(tcase, what_cannot_be_compared_is_told);
    tcase_add_test(tcase, a_job_that_ends_where_it_would_begin_is_refused);
    tcase_add_test(tcase, other_contents_of_the_data_are_told);
    tcase_add_test(tcase, of_several_the_newest_complete_one_is_found);
    return suite_run("ancestor", tcase, NULL);
}
