/* test_checkpoints.c - what one plan wrote, any other reads; and what is damaged nobody does. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "tests/worker/checkpoint/checkpoints.h"

#include "tests/support/counts.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct graph *graph;
static char *root, *folder;

static void setup(void)
{
    struct error err;
    ck_assert_int_eq(model_build(&checkpoints_model, ELEMENT_F32, &graph, &err), 0);
    root = checkpoints_make_folder();
    folder = xasprintf("%s/step-40.epoch-2", root);
}

static void teardown(void)
{
    graph_destroy(graph);
    free(folder);
    checkpoints_delete_folder(root);
}

/* By two ranks that split everything and store with zero, so that shards have different slices. */
static struct plan *two_ranks(void)
{
    struct plan *plan =
        engine_plan(graph, 1, (int[]){2}, 1, (const char *[]){"batch"}, 1, 8, "1f1b");
    for (int b = 0; b < plan->block_count; b++)
        plan->blocks[b].zero = 2;
    return plan;
}

static void write_by_two(void)
{
    struct plan *plan = two_ranks();
    struct error err = {""};
    int rc = checkpoints_write(graph, plan, folder, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    plan_destroy(plan);
}

static int read_by_one(struct error *err)
{
    struct plan *plan = engine_plan_one(graph, 1, 8);
    int rc = checkpoints_read(graph, plan, folder, err);
    plan_destroy(plan);
    return rc;
}

/* Loading and verifying both refuse, with these words. */
static void refused(int rc, const char *words)
{
    struct error err = {""};
    ck_assert_int_eq(read_by_one(&err), rc);
    ck_assert_msg(strstr(err.text, words), "'%s' has no '%s'", err.text, words);
    ck_assert_int_lt(checkpoint_verify(folder, NULL, &err), 0);
}

static char *path_of(const char *file)
{
    return xasprintf("%s/%s", folder, file);
}

START_TEST(what_a_random_plan_wrote_another_one_reads)
{
    uint64_t seed = test_seed() + 2 * (uint64_t)_i;
    struct plan *first = engine_plan_random(graph, seed, 8, 8);
    struct plan *second = engine_plan_random(graph, seed + 1, 8, 8);
    char a[128], b[128];
    struct error err = {""};
    plan_print(a, sizeof a, first);
    plan_print(b, sizeof b, second);
    int rc = checkpoints_write(graph, first, folder, &err);
    if (rc == 0)
        rc = checkpoint_verify(folder, NULL, &err);
    if (rc == 0)
        rc = checkpoints_read(graph, second, folder, &err);
    ck_assert_msg(rc == 0, "seed %lu, %s by %s: %s", (unsigned long)seed, a, b, err.text);
    plan_destroy(first);
    plan_destroy(second);
}
END_TEST

START_TEST(every_element_is_written_once)
{
    write_by_two();
    struct checkpoint *checkpoint;
    struct error err;
    ck_assert_int_eq(checkpoint_open(folder, &checkpoint, &err), 0);
    const struct manifest *manifest = checkpoint_manifest(checkpoint);
    ck_assert_uint_eq(manifest->shard_count, 2);
    uint64_t bytes = manifest->shards[0].size + manifest->shards[1].size;
    uint64_t data = (uint64_t)count_parameters(graph) * 4 * STATE_PARTS;
    ck_assert_uint_ge(bytes, data);
    ck_assert_uint_lt(bytes, data + 131072); /* two headers */
    ck_assert_str_eq(manifest->origin.job, "j-7");
    ck_assert_uint_eq(manifest->origin.step, CHECKPOINTS_STEP);
    checkpoint_close(checkpoint);
}
END_TEST

START_TEST(a_flipped_byte_of_the_data_is_found)
{
    write_by_two();
    checkpoints_flip(folder, "rank-00001.safetensors", -1);
    refused(-EIO, "rank-00001.safetensors' is not what was written: it is damaged");
}
END_TEST

START_TEST(a_flipped_byte_of_a_header_is_found)
{
    write_by_two();
    checkpoints_flip(folder, "rank-00000.safetensors", 40);
    refused(-EIO, "the header of '");
}
END_TEST

START_TEST(a_flipped_byte_anywhere_is_found_by_verify)
{
    write_by_two();
    struct stat status;
    char *path = path_of("rank-00000.safetensors");
    ck_assert_int_eq(stat(path, &status), 0);
    for (int i = 0; i < 16; i++) {
        long offset = (long)(status.st_size - 1) * i / 15;
        struct error err;
        checkpoints_flip(folder, "rank-00000.safetensors", offset);
        ck_assert_int_lt(checkpoint_verify(folder, NULL, &err), 0);
        checkpoints_flip(folder, "rank-00000.safetensors", offset);
        ck_assert_int_eq(checkpoint_verify(folder, NULL, &err), 0);
    }
    free(path);
}
END_TEST

START_TEST(a_missing_shard_is_named)
{
    write_by_two();
    char *path = path_of("rank-00001.safetensors");
    ck_assert_int_eq(unlink(path), 0);
    free(path);
    refused(-ENOENT, "rank-00001.safetensors': No such file or directory");
}
END_TEST

START_TEST(a_shard_that_ends_too_early_is_found)
{
    write_by_two();
    char *path = path_of("rank-00001.safetensors");
    ck_assert_int_eq(truncate(path, 4096), 0);
    free(path);
    refused(-EIO, "has 4096 bytes, ");
}
END_TEST

START_TEST(a_folder_without_a_manifest_is_no_checkpoint)
{
    write_by_two();
    char *path = path_of("manifest.json");
    ck_assert_int_eq(unlink(path), 0);
    free(path);
    refused(-ENOENT, "manifest.json': No such file or directory");
}
END_TEST

/* Where the manifest says less, by one shard, what that one held is missed. */
START_TEST(a_tensor_that_is_in_no_shard_is_missed)
{
    struct manifest manifest;
    struct error err;
    write_by_two();
    ck_assert_int_eq(manifest_read(folder, &manifest, &err), 0);
    free(manifest.shards[1].file);
    manifest.shard_count = 1;
    ck_assert_int_eq(manifest_write(&manifest, folder, &err), 0);
    manifest_finish(&manifest);
    refused(-ENODATA, "elements are in no shard of the checkpoint");
}
END_TEST

START_TEST(a_checkpoint_of_another_model_is_refused)
{
    write_by_two();
    struct job_model other = checkpoints_model;
    struct error err = {""};
    other.ffn = 64;
    graph_destroy(graph);
    ck_assert_int_eq(model_build(&other, ELEMENT_F32, &graph, &err), 0);
    ck_assert_int_eq(read_by_one(&err), -EINVAL);
    ck_assert_msg(strstr(err.text, "another model: 'layers.0.") && strstr(err.text, "48") &&
                      strstr(err.text, "64"),
                  "%s", err.text);
}
END_TEST

START_TEST(another_step_is_refused)
{
    struct checkpoint *checkpoint;
    struct error err;
    write_by_two();
    ck_assert_int_eq(checkpoint_open(folder, &checkpoint, &err), 0);
    ck_assert_int_eq(checkpoint_expect(checkpoint, 41, graph, &err), -EINVAL);
    ck_assert_str_eq(err.text, "it is of step 40, step 41 would be right");
    checkpoint_close(checkpoint);
}
END_TEST

START_TEST(what_is_there_is_not_overwritten)
{
    struct plan *plan = two_ranks();
    struct error err;
    write_by_two();
    ck_assert_int_eq(checkpoints_write(graph, plan, folder, &err), -EEXIST);
    ck_assert_int_eq(checkpoint_verify(folder, NULL, &err), 0);
    plan_destroy(plan);
}
END_TEST

static long count_files(void)
{
    char *command = xasprintf("ls -A '%s' | wc -l", folder);
    FILE *list = popen(command, "r");
    long count = -1;
    ck_assert_int_eq(fscanf(list, "%ld", &count), 1);
    pclose(list);
    free(command);
    return count;
}

START_TEST(a_full_disk_is_told_and_leaves_nothing)
{
    struct plan *plan = two_ranks();
    struct error err;
    struct rlimit limit, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small = (struct rlimit){10000, limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_eq(checkpoints_write(graph, plan, folder, &err), -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_msg(strstr(err.text, "rank-00000.safetensors': File too large"), "%s", err.text);
    ck_assert_int_eq(count_files(), 0);
    write_by_two(); /* there is room again */
    ck_assert_int_eq(checkpoint_verify(folder, NULL, &err), 0);
    plan_destroy(plan);
}
END_TEST

START_TEST(so_is_one_that_a_drill_fills)
{
    struct plan *plan = two_ranks();
    struct error err;
    disk_space_deny(60000);
    ck_assert_int_eq(checkpoints_write(graph, plan, folder, &err), -ENOSPC);
    ck_assert_msg(strstr(err.text, "rank-00000.safetensors': No space left"), "%s", err.text);
    ck_assert_int_eq(count_files(), 0);
    disk_space_deny(0);
    write_by_two();
    ck_assert_int_eq(checkpoint_verify(folder, NULL, &err), 0);
    plan_destroy(plan);
}
END_TEST

/* A file that was put in the place of a shard, with its size and checksums in the manifest. */
static void put_header(uint64_t claimed, const char *json)
{
    char *path = path_of("rank-00000.safetensors");
    struct error err;
    mkdir(folder, 0700);
    FILE *file = fopen(path, "we");
    for (int i = 0; i < 8; i++)
        fputc((int)(claimed >> 8 * i & 0xff), file);
    fputs(json, file);
    ck_assert_int_eq(fclose(file), 0);
    free(path);

    struct manifest manifest;
    struct manifest_shard shard = {.file = (char *)"rank-00000.safetensors",
                                   .size = 8 + strlen(json)};
    manifest_init(&manifest, &checkpoints_origin, graph);
    manifest_add(&manifest, &shard);
    ck_assert_int_eq(manifest_write(&manifest, folder, &err), 0);
    manifest_finish(&manifest);
}

START_TEST(a_length_that_cannot_be_is_refused)
{
    put_header((uint64_t)1 << 30, "{}");
    refused(-EINVAL, "claims a header of 1073741824 bytes: at most 2 can be here");
    put_header(UINT64_MAX, "{}");
    refused(-EINVAL, "claims a header of 18446744073709551615 bytes");
}
END_TEST

/* A manifest with its right fingerprint, of one tensor and no shard; NULL: of no tensor. */
static void put_shape(const char *shape, const struct box *told)
{
    struct manifest manifest = {
        .tensors = &(struct manifest_tensor){.name = (char *)"wte", .whole = *told},
        .tensor_count = shape ? 1 : 0,
    };
    char *path = path_of("manifest.json"), *tensor = xasprintf("\"wte\": %s", shape ? shape : "");
    char *text = xasprintf("{\"apiVersion\": \"gimbal/v1\", \"kind\": \"Checkpoint\", "
                           "\"job\": \"j-7\", \"epoch\": 2, \"step\": 40, \"model\": "
                           "{\"fingerprint\": \"%016lx\", \"tensors\": {%s}}, \"data\": "
                           "{\"seed\": \"0000000000000007\", \"global_batch\": 8}, "
                           "\"shards\": []}",
                           (unsigned long)manifest_fingerprint(&manifest), shape ? tensor : "");
    struct error err = {""};
    int rc = folder_make(folder, &err);
    if (rc == 0)
        rc = file_write(path, text, 0600, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    free(text);
    free(tensor);
    free(path);
}

START_TEST(a_shape_that_cannot_be_is_refused)
{
    static const struct {
        const char *shape;
        struct box told;
        const char *words;
    } cases[] = {
        {"[4294967296, 4294967296]",
         {.dims = 2, .high = {4294967296, 4294967296}},
         "model.tensors.wte: no file holds a tensor of this shape, at most 2305843009213693951 "
         "elements would be right"},
        {"[2305843009213693952]", {.dims = 1, .high = {INT64_C(1) << 61}}, "no file holds"},
        {"[3, 0]", {.dims = 2, .high = {3, 0}}, "length 1 is no whole number of 1 or more"},
        {"[-1, -1]", {.dims = 2, .high = {-1, -1}}, "length 0 is no whole number"},
        {"[3, \"4\"]", {.dims = 2, .high = {3, 0}}, "length 1 is no whole number"},
        {"[1, 1, 1, 1, 1, 1]", {0}, "no list of up to 5 lengths"},
        {"12", {0}, "no list of up to 5 lengths"},
        {NULL, {0}, "model.tensors names no tensor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_shape(cases[i].shape, &cases[i].told);
        refused(-EINVAL, cases[i].words);
    }
    put_shape("[3, 4]", &(struct box){.dims = 2, .high = {3, 4}});
    struct error err;
    ck_assert_int_eq(checkpoint_verify(folder, NULL, &err), -ENODATA);
}
END_TEST

START_TEST(what_is_dropped_or_left_behind_is_deleted)
{
    static const char *const names[] = {"step-10.epoch-1", "step-20.epoch-1", "step-30.epoch-2",
                                        "step-40.epoch-2", "step-50.epoch-2", "step-20.epoch-3",
                                        "notes",           "step-7"};
    static const bool stays[] = {false, true, false, true, true, true, true, true};
    const char *keep[] = {"step-20.epoch-1", "step-40.epoch-2"};
    struct error err;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s/%s", root, names[i]);
        char *file = xasprintf("%s/rank-00000.safetensors.part", path);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        ck_assert_int_eq(file_write(file, "half", 0600, &err), 0);
        free(file);
        free(path);
    }
    int rc = checkpoint_clean(root, 2, 40, keep, 2, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *path = xasprintf("%s/%s", root, names[i]);
        ck_assert_msg((access(path, F_OK) == 0) == stays[i], "%s", names[i]);
        free(path);
    }
}
END_TEST

SUITE(checkpoints)
{
    TCase *plans = tcase_create("plans"), *damage = tcase_create("damage");
    tcase_add_checked_fixture(plans, setup, teardown);
    tcase_add_checked_fixture(damage, setup, teardown);
    tcase_set_timeout(plans, 60);
    tcase_add_loop_test(plans, what_a_random_plan_wrote_another_one_reads, 0, test_share(30));
    tcase_add_test(plans, every_element_is_written_once);
    tcase_add_test(damage, a_flipped_byte_of_the_data_is_found);
    tcase_add_test(damage, a_flipped_byte_of_a_header_is_found);
    tcase_add_test(damage, a_flipped_byte_anywhere_is_found_by_verify);
    tcase_add_test(damage, a_missing_shard_is_named);
    tcase_add_test(damage, a_shard_that_ends_too_early_is_found);
    tcase_add_test(damage, a_folder_without_a_manifest_is_no_checkpoint);
    tcase_add_test(damage, a_tensor_that_is_in_no_shard_is_missed);
    tcase_add_test(damage, a_checkpoint_of_another_model_is_refused);
    tcase_add_test(damage, another_step_is_refused);
    tcase_add_test(damage, what_is_there_is_not_overwritten);
    tcase_add_test(damage, a_full_disk_is_told_and_leaves_nothing);
    tcase_add_test(damage, so_is_one_that_a_drill_fills);
    tcase_add_test(damage, a_length_that_cannot_be_is_refused);
    tcase_add_test(damage, a_shape_that_cannot_be_is_refused);
    tcase_add_test(damage, what_is_dropped_or_left_behind_is_deleted);
    return suite_run("checkpoints", plans, damage, NULL);
}
