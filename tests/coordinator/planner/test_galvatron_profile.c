/* test_galvatron_profile.c - profiles in Galvatron's form: keys of its old and new versions, what
 * is told beside them, and clear words for what is missing or wrong. */
#include "common/base/memory.h"
#include "tests/coordinator/planner/galvatron_recorded.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gimbal-galvatron-XXXXXX";
static struct galvatron_profile profile;
static struct error err;

static const char *const names[] = {
    "computation_profiling_bf16_small.json", "memory_profiling_bf16_small.json",
    "allreduce_bandwidth_1nodes_4gpus_per_node.json", "p2p_bandwidth_1nodes_4gpus_per_node.json",
    "overlap_coefficient.json"};

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

/* A model of one type of layers on four devices. */
static struct galvatron_spec spec_of(int64_t seq)
{
    struct galvatron_spec spec = galvatron_spec_default();
    spec.types[0] = (struct galvatron_type){32, seq, 2};
    spec.type_count = 1;
    spec.nodes = 1;
    spec.gpus_per_node = 4;
    spec.memory_gb = 16;
    return spec;
}

static void load(const char *const *texts, const struct galvatron_spec *spec)
{
    make_folder(texts);
    int rc = galvatron_load(folder, folder, spec, &profile, &err);
    remove_folder();
    ck_assert_msg(rc == 0, "%s", err.text);
}

static double at(const struct galvatron_table *table, int key)
{
    double value = 0;
    galvatron_find(table, key, &value);
    return value;
}

START_TEST(keys_with_the_length_of_sequences_are_read)
{
    struct galvatron_spec spec = spec_of(16);
    load(new_style, &spec);
    ck_assert(profile.mixed && profile.sequence_parallel);
    /* Of a sample 2 ms, of four 6: a line, as there are two batch sizes. */
    ck_assert_double_eq_tol(profile.layers[0].forward_ms.slope, 4.0 / 3, 1e-12);
    ck_assert_double_eq_tol(profile.layers[0].forward_ms.fixed, 2.0 / 3, 1e-12);
    ck_assert_double_eq(profile.other_ms.slope, 1); /* of one batch size, as it stands */
    ck_assert_double_eq(profile.layers[0].parameter_mb, 48);
    ck_assert_double_eq(at(&profile.layers[0].activation_mb, 2), 6);
    ck_assert_double_eq(at(&profile.layers[0].activation_mb, 4), 0);
    ck_assert_double_eq(profile.layers[0].checkpoint_mb, 2);
    ck_assert_double_eq(at(&profile.alone.activation_mb, 2), 5);
    ck_assert_double_eq(at(&profile.first.states_mb, 1), 50);
    ck_assert_double_eq(at(&profile.last.activation_mb, 1), 3);
    ck_assert_double_eq(at(&profile.allreduce_gb_s[1], 4), 159.1);
    ck_assert_double_eq(at(&profile.allreduce_gb_s[0], 2), 151.3);
    ck_assert_double_eq(at(&profile.p2p_gb_s, 4), 138.6);
    ck_assert_double_eq(profile.overlap, 1.125);
    /* That project's default takes the first value as it stands. */
    spec.time_mode = GALVATRON_STATIC;
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    load(new_style, &spec);
    ck_assert_double_eq(profile.layers[0].forward_ms.slope, 1.5);
    ck_assert_double_eq(profile.layers[0].forward_ms.fixed, 0);
}
END_TEST

START_TEST(keys_without_a_length_are_read)
{
    struct galvatron_spec spec = spec_of(77);
    load(old_style, &spec);
    ck_assert(!profile.sequence_parallel);
    ck_assert_double_eq(profile.layers[0].forward_ms.slope, 2);
    ck_assert_double_eq(profile.other_ms.slope, 1);
    ck_assert_double_eq(at(&profile.layers[0].activation_mb, 2), 6);
    ck_assert_double_eq(profile.layers[0].checkpoint_mb, 0);
    ck_assert_double_eq(at(&profile.last.states_mb, 1), 60);
}
END_TEST

static const struct {
    int file; /* in place of this one */
    const char *text, *words;
} refused[] = {
    {0, NULL, "has no file computation_*.json"},
    {0, "[1]", "is no JSON object"},
    {0, "{", "is no JSON object: "},
    {0, "{\"layertype_0_bsz1_seq32\": 5}",
     "has no layertype_0_bszB_seq16, nor one without a length: it was not measured with sequences "
     "of 16"},
    {0, "{\"layertype_0_bsz1_seq16\": -3}", "layertype_0_bsz1_seq16 is -3, and has to be above 0"},
    {0, "{\"layertype_0_bsz1_seq16\": \"3\"}", "layertype_0_bsz1_seq16 is no number"},
    {0, "{\"layertype_0_bsz1_seq16\": 3}", "has no layertype_other_bszB_seq16"},
    {1, "{}", "layertype_0 is missing"},
    {1, "{\"layertype_0\": {\"32\": {}}}", "layertype_0 has neither parameter_size nor 16"},
    {1, "{\"layertype_0\": {\"parameter_size\": 0}}", "parameter_size is 0, and has to be above 0"},
    {1, "{\"layertype_0\": {\"parameter_size\": 1}}",
     "tp_activation_per_bsz_dict is missing, or no object by degree"},
    {1, "{\"layertype_0\": {\"parameter_size\": 1, \"tp_activation_per_bsz_dict\": {\"2\": -1}}}",
     "tp_activation_per_bsz_dict.2 is -1, and has to be at least 0"},
    {1, "{\"layertype_0\": {\"parameter_size\": 1, \"tp_activation_per_bsz_dict\": {}}}",
     "other_memory_pp_off is missing"},
    {2, NULL,
     "has no file allreduce_bandwidth_1nodes_4gpus_per_node.json: profile machines of that "
     "shape"},
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
    struct galvatron_spec spec = spec_of(16);
    int rc = galvatron_load(folder, folder, &spec, &profile, &err);
    remove_folder();
    ck_assert_int_eq(rc, refused[_i].text ? -EINVAL : -ENOENT);
    ck_assert_msg(strstr(err.text, refused[_i].words), "%s", err.text);
    ck_assert_msg(strstr(err.text, folder), "no file is named: %s", err.text);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_named)
{
    struct galvatron_spec spec = spec_of(16);
    ck_assert_int_eq(galvatron_load("/proc/nowhere", "/proc/nowhere", &spec, &profile, &err),
                     -ENOENT);
    ck_assert_str_eq(err.text, "folder '/proc/nowhere': No such file or directory");
}
END_TEST

/* With no mode told, the file says what it was profiled for. */
START_TEST(a_mode_that_is_not_told_is_what_the_file_holds)
{
    struct recorded recorded = recorded_read(_i);
    struct galvatron_spec spec = recorded.problem.spec;
    char *folder_of = xstrdup(recorded.path);
    *strstr(folder_of, "/recorded/") = '\0';
    char *model = xasprintf("%s/models/%s", folder_of, spec.model);
    char *machines = xasprintf("%s/hardware", folder_of);
    spec.time_mode = spec.memory_mode = GALVATRON_AUTO;
    spec.sequence_parallel = spec.mixed = GALVATRON_AS_PROFILED;
    int rc = galvatron_load(model, machines, &spec, &profile, &err);
    ck_assert_msg(rc == 0, "%s: %s", recorded.path, err.text);
    const struct galvatron_profile *told = &recorded.problem.profile;
    ck_assert_int_eq(profile.mixed, told->mixed);
    ck_assert_int_eq(profile.sequence_parallel, told->sequence_parallel);
    for (int i = 0; i < spec.type_count; i++) {
        ck_assert_double_eq(profile.layers[i].forward_ms.slope, told->layers[i].forward_ms.slope);
        ck_assert_double_eq(profile.layers[i].forward_ms.fixed, told->layers[i].forward_ms.fixed);
        ck_assert_double_eq(profile.layers[i].parameter_mb, told->layers[i].parameter_mb);
    }
    free(machines);
    free(model);
    free(folder_of);
    recorded_finish(&recorded);
}
END_TEST

static int read_spec(const char *text, struct galvatron_spec *out)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file("overlap_coefficient.json", text);
    char *path = xasprintf("%s/overlap_coefficient.json", folder);
    *out = galvatron_spec_default();
    int rc = galvatron_spec_read(path, out, &err);
    if (rc == 0)
        rc = galvatron_spec_check(out, &err);
    else
        ck_assert_msg(strstr(err.text, path), "no file is named: %s", err.text);
    free(path);
    remove_folder();
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    return rc;
}

#define LAYERS "\"layers\": [{\"hidden_size\": 8, \"seq_len\": 16, \"layer_num\": 3}]"

/* As keys, and as the words of that project's command line. */
START_TEST(flags_say_what_keys_say)
{
    struct galvatron_spec keys, flags;
    ck_assert_int_eq(
        read_spec("{\"batch_asked\": 64, \"spec\": {\"model\": \"m\", \"nodes\": 2, "
                  "\"gpus_per_node\": 4, \"memory_GB\": 40, " LAYERS ", \"time_mode\": \"batch\", "
                  "\"sequence_parallel\": true, \"async_grad_reduce\": false, \"max_tp\": 4, "
                  "\"zero2\": true, \"precision\": \"bf16\", \"global_buffer\": false, "
                  "\"sp_space\": \"tp+sp\"}}",
                  &keys),
        0);
    ck_assert_int_eq(
        read_spec("{\"batch_asked\": 64, \"spec\": {\"model\": \"m\", " LAYERS ", \"flags\": "
                  "[\"--num_nodes\", \"2\", \"--num_gpus_per_node\", \"4\", "
                  "\"--memory_constraint\", \"40\", \"--time_profile_mode\", \"batch\", "
                  "\"--sequence_parallel\", \"--no_async_grad_reduce\", \"--max_tp_deg\", \"4\", "
                  "\"--default_dp_type\", \"zero2\", \"--pipeline_type\", \"pipedream_flush\", "
                  "\"--no_global_memory_buffer\", \"--fine_grained_mode\", \"1\", "
                  "\"--sp_space\", \"tp+sp\"]}}",
                  &flags),
        0);
    flags.mixed = keys.mixed;
    ck_assert_int_eq(keys.batch, 64);
    ck_assert_int_eq(keys.nodes, 2);
    ck_assert_int_eq(keys.memory_mode, GALVATRON_STATIC);
    ck_assert_int_eq(memcmp(&keys, &flags, sizeof keys), 0);
}
END_TEST

static const struct {
    const char *text, *words;
} bad_specs[] = {
    {"{", "is no JSON object: line 1"},
    {"{\"nodes\": 1}", "nothing says the spec's layers: write it into the spec"},
    {"{" LAYERS "}", "nothing says the spec's nodes"},
    {"{" LAYERS ", \"nodes\": 1, \"gpus_per_node\": 8}", "nothing says the spec's memory_GB"},
    {"{\"nodes\": 1.5}", "nodes is 1.5: write a whole number from 1 on"},
    {"{\"nodes\": \"2\"}", "nodes is no number: write a whole number from 1 on"},
    {"{\"memory_GB\": -8}", "memory_GB is -8, and has to be above 0"},
    {"{\"layers\": []}", "layers has 0 types of layers: write a list of 1 to 16 objects"},
    {"{\"layers\": [{\"hidden_size\": 8, \"seq_len\": 16}]}", "layers[0].layer_num is missing"},
    {"{\"time_mode\": \"fast\"}",
     "time_mode is 'fast': write one of auto, static, batch, sequence"},
    {"{\"time_modus\": \"batch\"}", "a spec has no key time_modus: it has model, layers, nodes"},
    {"{\"zero2\": \"yes\"}", "zero2 is neither true nor false"},
    {"{\"precision\": 16}", "precision is no text: write one of fp32, bf16, fp16"},
    {"{\"flags\": [\"--num_nodes\", \"two\"]}", "flag --num_nodes is 'two', which is no number"},
    {"{" LAYERS ", \"nodes\": 60000, \"gpus_per_node\": 8, \"memory_GB\": 8}",
     "60000 nodes of 8 devices are too many"},
};

START_TEST(what_is_wrong_in_a_spec_is_named)
{
    struct galvatron_spec spec;
    ck_assert_int_eq(read_spec(bad_specs[_i].text, &spec), -EINVAL);
    ck_assert_msg(strstr(err.text, bad_specs[_i].words), "%s", err.text);
}
END_TEST

/* Curves need points. */
START_TEST(a_mode_that_the_profile_cannot_serve_is_told)
{
    struct galvatron_spec spec = spec_of(32);
    make_folder(new_style);
    spec.time_mode = GALVATRON_BATCH;
    ck_assert_int_eq(galvatron_load(folder, folder, &spec, &profile, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "time_mode batch needs layertype_0_bszB_seq32 of 2 batch sizes, "
                                   "and there are 1"),
                  "%s", err.text);
    spec.time_mode = GALVATRON_SEQUENCE;
    ck_assert_int_eq(galvatron_load(folder, folder, &spec, &profile, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "time_mode sequence needs layertype_0_bsz1_seqS of 3 lengths, "
                                   "and there are 2"),
                  "%s", err.text);
    spec.type_count = 0;
    ck_assert_int_eq(galvatron_load(folder, folder, &spec, &profile, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "nothing says the spec's layers"), "%s", err.text);
    spec = spec_of(16);
    spec.sequence_parallel = GALVATRON_NO;
    ck_assert_int_eq(galvatron_load(folder, folder, &spec, &profile, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "layertype_0 is missing"), "%s", err.text);
    remove_folder();
}
END_TEST

SUITE(galvatron)
{
    TCase *keys = tcase_create("keys"), *specs = tcase_create("specs");
    tcase_add_test(keys, keys_with_the_length_of_sequences_are_read);
    tcase_add_test(keys, keys_without_a_length_are_read);
    tcase_add_loop_test(keys, what_is_missing_or_wrong_is_named, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(keys, a_folder_that_is_not_there_is_named);
    tcase_add_test(keys, a_mode_that_the_profile_cannot_serve_is_told);
    tcase_add_loop_test(keys, a_mode_that_is_not_told_is_what_the_file_holds, 0, 24);
    tcase_add_test(specs, flags_say_what_keys_say);
    tcase_add_loop_test(specs, what_is_wrong_in_a_spec_is_named, 0,
                        (int)(sizeof bad_specs / sizeof *bad_specs));
    return suite_run("galvatron", keys, specs, NULL);
}
