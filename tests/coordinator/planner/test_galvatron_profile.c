/* test_galvatron_profile.c - profiles in Galvatron's form: keys of its old and new versions, and
 * clear words for what is missing or wrong. With GIMBAL_TEST_GALVATRON the folder of the project's
 * own samples (models/NAME and hardware) is read too. */
#include "common/base/memory.h"
#include "coordinator/planner/galvatron/profile.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gimbal-galvatron-XXXXXX";
static struct galvatron_profile profile;
static struct error err;

static const char *const names[] = {"computation_profiling_bf16_small.json",
                                    "memory_profiling_bf16_small.json",
                                    "allreduce_bandwidth_1nodes_4gpus.json",
                                    "p2p_bandwidth_1nodes_4gpus.json", "overlap_coefficient.json"};

static const char *const new_style[] = {
    "{\"layernum[1]_bsz1_seq16\": 9, \"layertype_0_bsz4_seq16\": 1.5, "
    "\"layertype_0_bsz1_seq16\": 2, \"layertype_0_bsz1_seq32\": 5, "
    "\"layertype_other_0_bsz1_seq16\": 1}",
    "{\"1_1_4_sp\": {\"layernum[1]_bsz8_seq16_rank0_ms\": 160},"
    " \"layertype_0_sp\": {\"16\": {\"parameter_size\": 48, "
    "\"tp_activation_per_bsz_dict\": {\"1\": 10, \"2\": 6, \"checkpoint\": 2}}},"
    " \"other_memory_pp_off_sp\": {\"16\": {\"model_states\": {\"1\": 100}, "
    "\"activation\": {\"1\": 8, \"2\": 5}}},"
    " \"other_memory_pp_on_first_sp\": {\"16\": {\"model_states\": {\"1\": 50}, "
    "\"activation\": {\"1\": 4}}},"
    " \"other_memory_pp_on_last_sp\": {\"16\": {\"model_states\": {\"1\": 60}, "
    "\"activation\": {\"1\": 3}}}}",
    "{\"allreduce_size_4_consec_1\": 159.1, \"allreduce_size_2_consec_1\": 138.2, "
    "\"allreduce_size_2_consec_0\": 151.3}",
    "{\"pp_size_2\": 163.7, \"pp_size_4\": 138.6}", "{\"overlap_coe\": 1.125}"};

/* The first versions' keys had no lengths of sequences. */
static const char *const old_style[] = {
    "{\"layertype_0\": 2, \"layertype_other\": 1}",
    "{\"layertype_0\": {\"parameter_size\": 48, "
    "\"tp_activation_per_bsz_dict\": {\"1\": 10, \"2\": 6}},"
    " \"other_memory_pp_off\": {\"model_states\": {\"1\": 100}, \"activation\": {\"1\": 8}},"
    " \"other_memory_pp_on_first\": {\"model_states\": {\"1\": 50}, \"activation\": {\"1\": 4}},"
    " \"other_memory_pp_on_last\": {\"model_states\": {\"1\": 60}, \"activation\": {\"1\": 3}}}",
    "{\"allreduce_size_2_consec_1\": 138.2}", "{\"pp_size_2\": 163.7}", "{\"overlap_coe\": 1.125}"};

static void write_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
}

static void make_folder(const char *const *texts)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    for (int i = 0; i < 5; i++)
        if (texts[i])
            write_file(names[i], texts[i]);
}

static void remove_folder(void)
{
    for (int i = 0; i < 5; i++) {
        char *path = xasprintf("%s/%s", folder, names[i]);
        unlink(path);
        free(path);
    }
    rmdir(folder);
}

static void load(const char *const *texts, int64_t seq)
{
    make_folder(texts);
    int rc = galvatron_load(folder, folder, seq, &profile, &err);
    remove_folder();
    ck_assert_msg(rc == 0, "%s", err.text);
}

START_TEST(keys_with_the_length_of_sequences_are_read)
{
    load(new_style, 16);
    ck_assert(profile.mixed && profile.sequence);
    ck_assert_uint_eq(profile.layer.count, 2);
    ck_assert_double_eq(galvatron_ms(&profile.layer, 0.5), 2);
    ck_assert_double_eq(galvatron_ms(&profile.layer, 3), 2);
    ck_assert_double_eq(galvatron_ms(&profile.layer, 4), 1.5);
    ck_assert_double_eq(galvatron_ms(&profile.other, 4), 1);
    ck_assert_double_eq(profile.parameter_mb, 48);
    ck_assert_double_eq(profile.activation_mb[galvatron_level(2)], 6);
    ck_assert_double_eq(profile.activation_mb[galvatron_level(4)], 0);
    ck_assert_double_eq(profile.checkpoint_mb, 2);
    ck_assert_double_eq(profile.alone.activation_mb[1], 5);
    ck_assert_double_eq(profile.first.states_mb[0], 50);
    ck_assert_double_eq(profile.last.activation_mb[0], 3);
    ck_assert_double_eq(profile.allreduce_gb_s[1][2], 159.1);
    ck_assert_double_eq(profile.allreduce_gb_s[0][1], 151.3);
    ck_assert_double_eq(profile.p2p_gb_s[2], 138.6);
    ck_assert_double_eq(profile.overlap, 1.125);
}
END_TEST

START_TEST(keys_without_a_length_are_read)
{
    load(old_style, 77);
    ck_assert(!profile.sequence);
    ck_assert_double_eq(galvatron_ms(&profile.layer, 9), 2);
    ck_assert_double_eq(galvatron_ms(&profile.other, 9), 1);
    ck_assert_double_eq(profile.activation_mb[1], 6);
    ck_assert_double_eq(profile.checkpoint_mb, 0);
    ck_assert_double_eq(profile.last.states_mb[0], 60);
}
END_TEST

static const struct {
    int file; /* in place of this one */
    const char *text, *words;
} refused[] = {
    {0, NULL, "has no file computation_profiling_*.json"},
    {0, "[1]", "is no JSON object"},
    {0, "{", "is no JSON object: "},
    {0, "{\"layertype_0_bsz1_seq32\": 5}",
     "has no layertype_0_bszB_seq16, nor one without a length: it was not measured with sequences "
     "of 16"},
    {0, "{\"layertype_0_bsz1_seq16\": -3}", "layertype_0_bsz1_seq16 is -3, and has to be above 0"},
    {0, "{\"layertype_0_bsz1_seq16\": \"3\"}", "layertype_0_bsz1_seq16 is no number"},
    {0, "{\"layertype_0_bsz1_seq16\": 3}", "has no layertype_other_0_bszB_seq16"},
    {1, "{}", "layertype_0 is missing"},
    {1, "{\"layertype_0\": {\"32\": {}}}", "layertype_0 has neither parameter_size nor 16"},
    {1, "{\"layertype_0\": {\"parameter_size\": 0}}", "parameter_size is 0, and has to be above 0"},
    {1, "{\"layertype_0\": {\"parameter_size\": 1}}",
     "tp_activation_per_bsz_dict is missing, or no object by degree"},
    {1, "{\"layertype_0\": {\"parameter_size\": 1, \"tp_activation_per_bsz_dict\": {\"2\": -1}}}",
     "degree 2: "},
    {1, "{\"layertype_0\": {\"parameter_size\": 1, \"tp_activation_per_bsz_dict\": {}}}",
     "other_memory_pp_off is missing"},
    {2, "{\"allreduce_size_2_consec_1\": 0}", "allreduce_size_2_consec_1 is 0"},
    {3, "{\"pp_size_2\": null}", "pp_size_2 is no number"},
    {4, "{}", "overlap_coe is missing"},
};

START_TEST(what_is_missing_or_wrong_is_named)
{
    const char *texts[5];
    memcpy(texts, new_style, sizeof texts);
    texts[refused[_i].file] = refused[_i].text;
    make_folder(texts);
    int rc = galvatron_load(folder, folder, 16, &profile, &err);
    remove_folder();
    ck_assert_int_eq(rc, refused[_i].text ? -EINVAL : -ENOENT);
    ck_assert_msg(strstr(err.text, refused[_i].words), "%s", err.text);
    ck_assert_msg(strstr(err.text, folder), "no file is named: %s", err.text);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_named)
{
    ck_assert_int_eq(galvatron_load("/nowhere", "/nowhere", 16, &profile, &err), -ENOENT);
    ck_assert_str_eq(err.text, "folder '/nowhere': No such file or directory");
}
END_TEST

static const struct {
    const char *model;
    int64_t seq;
} samples[] = {{"bert-large", 512}, {"gpt-6.7b", 2048}, {"vit-huge", 197}};

/* That folder has the files of one node and of two side by side: those of one. */
static const char *const one_node[] = {
    "allreduce_bandwidth_1nodes_8gpus_per_node.json", "p2p_bandwidth_1nodes_8gpus_per_node.json",
    "sp_time_1nodes_8gpus_per_node.json", "overlap_coefficient.json"};

/* For each of them, a link in the folder `to`; without `from` it is removed. */
static void link_one_node(const char *from, const char *to)
{
    for (size_t i = 0; i < sizeof one_node / sizeof *one_node; i++) {
        char *theirs = from ? xasprintf("%s/hardware/%s", from, one_node[i]) : NULL;
        char *ours = xasprintf("%s/%s", to, one_node[i]);
        ck_assert_msg((from ? symlink(theirs, ours) : unlink(ours)) == 0, "%s", ours);
        free(theirs);
        free(ours);
    }
}

START_TEST(the_projects_own_profiles_are_read)
{
    const char *where = getenv("GIMBAL_TEST_GALVATRON");
    char *model = xasprintf("%s/models/%s", where, samples[_i].model);
    char machine[] = "/tmp/gimbal-galvatron-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(machine));
    link_one_node(where, machine);
    int rc = galvatron_load(model, machine, samples[_i].seq, &profile, &err);
    link_one_node(NULL, machine);
    rmdir(machine);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert(profile.mixed);
    ck_assert(profile.parameter_mb > 10 && profile.parameter_mb < 1000);
    ck_assert_double_lt(profile.activation_mb[1], profile.activation_mb[0]);
    ck_assert_double_lt(profile.checkpoint_mb, profile.activation_mb[0]);
    ck_assert_double_gt(profile.allreduce_gb_s[1][3], 100);
    free(model);
}
END_TEST

SUITE(galvatron)
{
    TCase *keys = tcase_create("keys"), *own = tcase_create("own");
    tcase_add_test(keys, keys_with_the_length_of_sequences_are_read);
    tcase_add_test(keys, keys_without_a_length_are_read);
    tcase_add_loop_test(keys, what_is_missing_or_wrong_is_named, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(keys, a_folder_that_is_not_there_is_named);
    if (getenv("GIMBAL_TEST_GALVATRON"))
        tcase_add_loop_test(own, the_projects_own_profiles_are_read, 0,
                            (int)(sizeof samples / sizeof *samples));
    else
        suite_skip("galvatron's own profiles", "GIMBAL_TEST_GALVATRON names no folder of them");
    return suite_run("galvatron", keys, own, NULL);
}
