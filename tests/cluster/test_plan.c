/* test_plan.c - `gimbal plan` without a coordinator, as people run it: for a cluster of a file. */
#include "common/base/memory.h"
#include "common/base/units.h"
#include "tests/cluster/command.h"
#include "tests/support/suite.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static struct command command;

static char *in_folder(const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "we");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void write_job_of(int vocab, const char *more)
{
    char *text = xasprintf("apiVersion: gimbal/v1\nname: small\n"
                           "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 16, "
                           "vocab: %d}\n"
                           "data: {tokens: [corpus.bin]}\n"
                           "train: {steps: 3, global_batch: 8, lr: 0.001}\n%s",
                           vocab, more);
    write_file("job.yaml", text);
    free(text);
}

static void write_job(const char *more)
{
    write_job_of(64, more);
}

static void setup(void)
{
    strcpy(folder, "/tmp/gimbal-plan-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_job("");
    write_file("cluster.yaml", "apiVersion: gimbal/v1\nkind: Cluster\nnodes:\n"
                               "  - name: a\n"
                               "    devices: {kind: gpu, model: X, count: 4, memory: 4GiB, "
                               "flops: 10TFLOP/s, bandwidth: 100GB/s, efficiency: 0.5}\n"
                               "links:\n  host: {bandwidth: 10GB/s, latency: 5us}\n");
}

static void teardown(void)
{
    char *remove = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(remove), 0);
    free(remove);
}

static int run(const char *const *words)
{
    command_start(&command, words);
    return command_finish(&command);
}
#define NOBODY "tcp://127.0.0.1:1"
#define RUN(...) run((const char *const[]){GIMBAL, __VA_ARGS__, NULL})
#define PLAN "-f", in_folder("job.yaml"), "--cluster", in_folder("cluster.yaml")

/* The object on stdout, which is all there is. */
static json_t *object_out(const char *kind)
{
    json_t *json = json_loads(command.out, 0, NULL);
    ck_assert_msg(json != NULL, "%s%s", command.out, command.err);
    ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), kind);
    return json;
}

/* The same of a file of that name, for what is long. */
static json_t *object_in(const char *name, const char *kind)
{
    json_error_t where;
    json_t *json = json_load_file(in_folder(name), 0, &where);
    ck_assert_msg(json != NULL, "%s", where.text);
    ck_assert_str_eq(json_string_value(json_object_get(json, "kind")), kind);
    return json;
}

static void expect_words(const char *words)
{
    ck_assert_msg(strstr(command.err, words) != NULL, "'%s' is not in: %s", words, command.err);
    ck_assert_str_eq(command.out, "");
}

/* The row of the block in the table of blocks; ended where it ends. */
static char *row_of(char *tables, const char *block)
{
    char *heads = strstr(tables, "\nBLOCKS "), *line = xasprintf("\n%s ", block);
    ck_assert_ptr_nonnull(heads);
    char *row = strstr(heads, line);
    free(line);
    ck_assert_msg(row != NULL, "%s: %s", block, tables);
    row = xasprintf("%.*s", (int)strcspn(row + 1, "\n"), row + 1);
    return row;
}

/* Shards of a product over four devices are padded: that is stored, too. */
START_TEST(a_block_takes_as_much_in_each_view)
{
    size_t i;
    json_t *block;
    write_job("plan: {pin: {tp: 4}}\n");
    ck_assert_int_eq(RUN("plan", PLAN, "-o", in_folder("plan.json")), 0);
    ck_assert_int_eq(RUN("plan", "explain", PLAN, "--plan", in_folder("plan.json"), "-o", "json"),
                     0);
    json_t *root = object_out("PlanExplanation");
    ck_assert_int_eq(RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("plan.json"), "-o", "wide"),
                     0);
    json_array_foreach(json_object_get(root, "blocks"), i, block)
    {
        char stored[32], saved[32];
        char *row = row_of(command.out, json_string_value(json_object_get(block, "name")));
        units_print_bytes(stored, sizeof stored,
                          json_number_value(json_object_get(block, "state_bytes")));
        units_print_bytes(saved, sizeof saved,
                          json_number_value(json_object_get(block, "saved_bytes")));
        ck_assert_msg(strstr(row, stored) && strstr(row, saved), "%s, %s: %s", stored, saved, row);
        free(row);
    }
    json_decref(root);
}
END_TEST

/* Galvatron's profiles of a model and of machines, in two folders. */
static void write_profiles(const char *overlap)
{
    char *make = xasprintf("mkdir -p '%s/model' '%s/hardware'", folder, folder);
    ck_assert_int_eq(system(make), 0);
    free(make);
    write_file("model/computation_profiling_fp32_small.json",
               "{\"layertype_0_bsz1_seq16\": 2, \"layertype_0_bsz4_seq16\": 1.25, "
               "\"layertype_other_0_bsz1_seq16\": 1}");
    write_file("model/memory_profiling_fp32_small.json",
               "{\"layertype_0\": {\"16\": {\"parameter_size\": 48, "
               "\"tp_activation_per_bsz_dict\": {\"1\": 10, \"2\": 6, \"4\": 4, "
               "\"checkpoint\": 2}}},"
               " \"other_memory_pp_off\": {\"16\": {\"model_states\": {\"1\": 100, \"2\": 60, "
               "\"4\": 40}, \"activation\": {\"1\": 8, \"2\": 5, \"4\": 3}}},"
               " \"other_memory_pp_on_first\": {\"16\": {\"model_states\": {\"1\": 50, \"2\": 30, "
               "\"4\": 20}, \"activation\": {\"1\": 4, \"2\": 3, \"4\": 2}}},"
               " \"other_memory_pp_on_last\": {\"16\": {\"model_states\": {\"1\": 60, \"2\": 35, "
               "\"4\": 20}, \"activation\": {\"1\": 3, \"2\": 2, \"4\": 1}}}}");
    write_file("hardware/allreduce_bandwidth_1nodes_4gpus_per_node.json",
               "{\"allreduce_size_4_consec_1\": 8, \"allreduce_size_2_consec_1\": 100, "
               "\"allreduce_size_2_consec_0\": 50}");
    write_file("hardware/p2p_bandwidth_1nodes_4gpus_per_node.json",
               "{\"pp_size_2\": 20, \"pp_size_4\": 10}");
    write_file("hardware/overlap_coefficient.json", overlap);
}
#define GALVATRON                                                                                  \
    "plan", PLAN, "--cost", "galvatron", "--profile-dir", in_folder("model"), "--hardware-dir",    \
        in_folder("hardware")

START_TEST(plans_stand_beside_galvatrons_under_its_formula)
{
    static const char *const from[] = {"exact", "bmw", "neutral", "galvatron"};
    write_profiles("{\"overlap_coe\": 1.25}");
    ck_assert_int_eq(RUN(GALVATRON, "-o", "json"), 0);
    json_t *object = object_out("PlanReferees"), *plans = json_object_get(object, "plans");
    ck_assert_uint_eq(json_array_size(plans), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *row = json_array_get(plans, i), *theirs = json_object_get(row, "galvatron");
        ck_assert_str_eq(json_string_value(json_object_get(row, "from")), from[i]);
        ck_assert_double_gt(json_real_value(json_object_get(row, "step_time_s")), 0);
        /* Whole plans, that can be saved and submitted. */
        ck_assert_str_eq(json_string_value(json_object_get(json_object_get(row, "plan"), "kind")),
                         "Plan");
        if (i < 2 && !theirs)
            continue; /* divided as their formula does not know it */
        ck_assert_uint_eq(
            json_array_size(json_object_get(json_object_get(theirs, "plan"), "strategies")), 2);
        ck_assert_double_gt(json_real_value(json_object_get(theirs, "formula_s")), 0);
        ck_assert_double_gt(json_real_value(json_object_get(theirs, "neutral_s")), 0);
        ck_assert(json_is_true(json_object_get(theirs, "fits")));
    }
    json_decref(object);
    ck_assert_int_eq(RUN(GALVATRON, "--search", "uniform"), 0);
    ck_assert_ptr_nonnull(strstr(command.out, "FORMULA"));
    ck_assert_ptr_nonnull(strstr(command.out, "\nuniform "));
    ck_assert_ptr_nonnull(strstr(command.out, "\ngalvatron "));
    ck_assert_ptr_null(strstr(command.out, "\nexact "));
}
END_TEST

/* A pipeline of it: a plan that is given is judged in place of searches. */
START_TEST(a_saved_plan_is_judged_by_galvatrons_formula)
{
    write_profiles("{\"overlap_coe\": 1.25}");
    write_job("plan: {pin: {pp: 2, dp: 2}, schedule: 1f1b}\n");
    ck_assert_int_eq(RUN("plan", PLAN, "-o", "json"), 0);
    write_file("plan.json", command.out);
    ck_assert_int_eq(RUN(GALVATRON, "--plan", in_folder("plan.json")), 0);
    ck_assert_ptr_nonnull(strstr(command.out, "\ngiven "));
    ck_assert_ptr_nonnull(strstr(command.out, "2-1-2 x 2 in 1+1"));
}
END_TEST

/* A model that we have no family for, by that project's own description of it. */
START_TEST(a_spec_stands_for_job_and_cluster)
{
    write_profiles("{\"overlap_coe\": 1.25}");
    write_file("spec.json", "{\"batch_asked\": 8, \"spec\": {\"nodes\": 1, \"gpus_per_node\": 4, "
                            "\"memory_GB\": 2, \"layers\": [{\"hidden_size\": 32, "
                            "\"seq_len\": 16, \"layer_num\": 6}], \"max_tp\": 4}}");
    ck_assert_int_eq(RUN("plan", "--cost", "galvatron", "--profile-dir", in_folder("model"),
                         "--hardware-dir", in_folder("hardware"), "--spec", in_folder("spec.json"),
                         "-o", "json"),
                     0);
    json_t *object = object_out("PlanReferees"), *plans = json_object_get(object, "plans");
    ck_assert_uint_eq(json_array_size(plans), 2);
    for (size_t i = 0; i < 2; i++) {
        json_t *row = json_array_get(plans, i), *theirs = json_object_get(row, "galvatron");
        ck_assert(json_is_true(json_object_get(theirs, "fits")));
        ck_assert_ptr_null(json_object_get(row, "plan"));
        ck_assert_str_eq(json_string_value(json_object_get(row, "note")),
                         "no job names a model of ours");
        /* What is printed can be given again. */
        char *text = json_dumps(json_object_get(theirs, "plan"), 0);
        write_file("theirs.json", text);
        free(text);
    }
    json_decref(object);
    ck_assert_int_eq(RUN("plan", "--cost", "galvatron", "--profile-dir", in_folder("model"),
                         "--hardware-dir", in_folder("hardware"), "--spec", in_folder("spec.json"),
                         "--plan", in_folder("theirs.json")),
                     0);
    ck_assert_ptr_nonnull(strstr(command.out, "\ngiven "));
    ck_assert_int_eq(RUN(GALVATRON, "--spec", in_folder("spec.json")), 65);
    expect_words("the spec is of other layers than the job");
}
END_TEST

static const struct {
    const char *overlap, *words;
} overlaps[] = {
    {"{\"overlap_coe\": NaN}",
     "overlap_coefficient.json' is no JSON object: line 1: invalid token"},
    {"{\"overlap_coe\": -1.1}", "overlap_coe is -1.1, and has to be above 0"},
    {"{\"overlap_coe\": 0}", "overlap_coe is 0, and has to be above 0"},
    {"{\"overlap\": 1.1}", "overlap_coe is missing"},
    {"{\"overlap_coe\": \"1\"}", "overlap_coe is no number"},
};

START_TEST(what_is_wrong_in_a_profile_is_named)
{
    write_profiles(overlaps[_i].overlap);
    ck_assert_int_eq(RUN(GALVATRON), 65);
    expect_words(overlaps[_i].words);
}
END_TEST

START_TEST(flags_of_galvatrons_formula_that_lack_something_are_usage)
{
    ck_assert_int_eq(RUN("plan", PLAN, "--cost", "galvatron"), 64);
    expect_words("needs --profile-dir DIR");
    ck_assert_int_eq(RUN("plan", PLAN, "--profile-dir", folder), 64);
    expect_words("--profile-dir needs --cost galvatron");
    ck_assert_int_eq(
        RUN("plan", "-f", in_folder("job.yaml"), "--cost", "galvatron", "--profile-dir", folder),
        64);
    expect_words("needs a job and --cluster FILE");
    ck_assert_int_eq(RUN("plan", "explain", PLAN, "--cost", "galvatron"), 64);
    expect_words("is for 'gimbal plan' itself");
    ck_assert_int_eq(RUN("plan", PLAN, "--cost", "galvatron", "--profile-dir", folder), 65);
    expect_words("has no file computation_*.json");
    ck_assert_int_eq(RUN("plan", PLAN, "--cost", "galvatrom"), 64);
    expect_words("galvatron");
}
END_TEST

/* Activations take half, and masters as much as before, with a copy beside. */
START_TEST(a_job_in_bf16_is_planned_with_half_the_memory)
{
    uint64_t bytes[2];
    static const char *const dtypes[] = {"f32", "bf16"};
    for (int i = 0; i < 2; i++) {
        char *text = xasprintf("apiVersion: gimbal/v1\nname: small\n"
                               "model: {family: gpt, layers: 2, hidden: 32, heads: 4, seq: 64, "
                               "vocab: 64}\n"
                               "data: {tokens: [corpus.bin]}\n"
                               "train: {steps: 3, global_batch: 64, lr: 0.001, dtype: %s}\n"
                               "devices: {max: 1}\nplan: {pin: {micro_batches: 1}}\n",
                               dtypes[i]);
        write_file("job.yaml", text);
        free(text);
        ck_assert_int_eq(RUN("plan", PLAN, "-o", "json"), 0);
        json_t *plan = object_out("Plan");
        bytes[i] = (uint64_t)json_integer_value(
            json_object_get(json_object_get(plan, "predicted"), "memory_bytes_max"));
        json_decref(plan);
    }
    ck_assert_uint_lt(bytes[1], bytes[0] * 6 / 10);
    ck_assert_uint_gt(bytes[1], bytes[0] * 4 / 10);
}
END_TEST

/* A device whose speed in bf16 is not known is priced as in f32, and that is said. */
START_TEST(a_cluster_file_says_how_fast_bf16_is)
{
    static const struct {
        const char *dtype, *rate;
        bool told;
    } cases[] = {
        {"f32", "", false}, {"bf16", "", true}, {"bf16", "flops_bf16: 80TFLOP/s, ", false}};
    double steps[3];
    for (int i = 0; i < 3; i++) {
        char *job = xasprintf("apiVersion: gimbal/v1\nname: wide\n"
                              "model: {family: gpt, layers: 2, hidden: 1024, heads: 8, seq: 512}\n"
                              "data: {text: [corpus]}\n"
                              "train: {steps: 3, global_batch: 16, lr: 0.001, dtype: %s}\n",
                              cases[i].dtype);
        char *cluster = xasprintf("apiVersion: gimbal/v1\nkind: Cluster\n"
                                  "nodes: [{name: one, devices: {kind: gpu, memory: 16GiB, "
                                  "flops: 10TFLOP/s, %sbandwidth: 1000GB/s}}]\n",
                                  cases[i].rate);
        write_file("job.yaml", job);
        write_file("rates.yaml", cluster);
        free(cluster);
        free(job);
        ck_assert_int_eq(
            RUN("plan", "--cluster", in_folder("rates.yaml"), in_folder("job.yaml"), "-o", "json"),
            0);
        ck_assert_msg((strstr(command.err, "how fast one/0 is in bf16 is not known") != NULL) ==
                          cases[i].told,
                      "%d: %s", i, command.err);
        json_t *plan = object_out("Plan");
        steps[i] =
            json_real_value(json_object_get(json_object_get(plan, "predicted"), "step_time_s"));
        json_decref(plan);
    }
    ck_assert_double_lt(steps[2], steps[1] / 4);
    ck_assert_double_gt(steps[1], steps[0] / 2);
}
END_TEST

struct point {
    double step_s, bytes;
    int devices;
};

static struct point point_of(const json_t *plan)
{
    const json_t *predicted = json_object_get(plan, "predicted");
    size_t index;
    json_t *stage;
    struct point point = {json_real_value(json_object_get(predicted, "step_time_s")),
                          json_number_value(json_object_get(predicted, "memory_bytes_max")), 0};
    json_array_foreach(json_object_get(plan, "stages"), index, stage)
    {
        point.devices += (int)json_array_size(json_object_get(stage, "devices"));
    }
    return point;
}

START_TEST(no_plan_of_the_frontier_beats_another)
{
    ck_assert_int_eq(RUN("plan", PLAN, "-o", "json"), 0);
    json_t *best = object_out("Plan");
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "-o", in_folder("frontier.json")), 0);
    json_t *object = object_in("frontier.json", "PlanFrontier"),
           *plans = json_object_get(object, "plans");
    size_t count = json_array_size(plans), fastest = 0, fewest = 0;
    ck_assert_uint_ge(count, 2);
    for (size_t i = 0; i < count; i++) {
        struct point a = point_of(json_array_get(plans, i));
        ck_assert_double_gt(a.step_s, 0);
        for (size_t j = 0; j < count; j++) {
            struct point b = point_of(json_array_get(plans, j));
            ck_assert(i == j || a.step_s < b.step_s || a.bytes < b.bytes || a.devices < b.devices);
        }
        fastest += a.step_s <= point_of(best).step_s;
        fewest += a.devices == 1;
    }
    ck_assert_uint_ge(fastest, 1);
    ck_assert_uint_ge(fewest, 1);
    json_decref(object);
    json_decref(best);
}
END_TEST

START_TEST(the_frontier_is_a_table_a_drawing_and_plans_to_save)
{
    ck_assert_int_eq(RUN("plan", "frontier", PLAN), 0);
    ck_assert_ptr_eq(strstr(command.out, "PLAN "), command.out);
    ck_assert_ptr_nonnull(strstr(command.out, "  1.00\n"));
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "-o", "svg"), 0);
    ck_assert_ptr_nonnull(strstr(command.out, "</svg>"));
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "-o", in_folder("frontier.json")), 0);
    json_t *object = object_in("frontier.json", "PlanFrontier");
    json_t *last = json_array_get(json_object_get(object, "plans"),
                                  json_array_size(json_object_get(object, "plans")) - 1);
    ck_assert_int_eq(json_dump_file(last, in_folder("plan.json"), 0), 0);
    ck_assert_int_eq(RUN("plan", PLAN, "--plan", in_folder("plan.json"), "-o", "json"), 0);
    json_t *again = object_out("Plan");
    ck_assert_str_eq(json_string_value(json_object_get(again, "id")),
                     json_string_value(json_object_get(last, "id")));
    json_decref(again);
    json_decref(object);
}
END_TEST

START_TEST(a_table_of_plans_has_its_headers_unless_they_are_not_wanted)
{
    ck_assert_int_eq(RUN("plan", PLAN), 0);
    ck_assert_int_eq(strncmp(command.out, "PLAN ", 5), 0);
    ck_assert_int_eq(RUN("plan", PLAN, "--no-headers"), 0);
    ck_assert_int_eq(strncmp(command.out, "p-", 2), 0);
}
END_TEST

/* Whoever reads the file finds it, and no search is begun. */
static const struct {
    const char *plan, *words;
} misnamed[] = {
    {"plan:\n  search: foo\n", "job.yaml:7:11: plan.search: 'foo' is unknown"},
    {"plan:\n  schedule: foo\n", "job.yaml:7:13: plan.schedule: 'foo' is unknown"},
    {"plan:\n  forbid:\n    roles: tensr\n",
     "job.yaml:8:12: plan.forbid.roles: 'tensr' is unknown"},
};

/* Two may write one file at once: what is in the way of the one is not in that of the other. */
START_TEST(files_that_are_mistaken_for_each_other_are_told_apart)
{
    ck_assert_int_eq(RUN("plan", "-f", in_folder("cluster.yaml"), "--local", "1"), 64);
    expect_words("cluster.yaml' describes a cluster: give a job file with -f");
    ck_assert_int_eq(RUN("submit", in_folder("cluster.yaml"), "--address", NOBODY), 64);
    expect_words("cluster.yaml' describes a cluster: give a job file with -f");
    ck_assert_int_eq(RUN("plan", "-f", in_folder("job.yaml"), "--cluster", in_folder("job.yaml")),
                     64);
    expect_words("job.yaml' describes a job: give it with -f, and a cluster with --cluster");
    ck_assert_int_eq(RUN("submit", in_folder("job.yaml"), "--plan", in_folder("cluster.yaml"),
                         "--address", NOBODY),
                     65);
    expect_words("cluster.yaml' describes a cluster: a plan is what 'gimbal plan -o json' writes");
    ck_assert_int_eq(RUN("plan", PLAN, "--plan", in_folder("job.yaml")), 65);
    expect_words("job.yaml' describes a job: a plan is what 'gimbal plan -o json' writes");
    ck_assert_int_eq(RUN("plan", "show", "-f", in_folder("job.yaml"), "--plan",
                         in_folder("job.yaml"), "--address", NOBODY),
                     65);
    expect_words("job.yaml' describes a job: a plan is what 'gimbal plan -o json' writes");
    ck_assert_int_eq(RUN("plan", "-f", in_folder("text"), "--local", "1"), 65);
}
END_TEST

/* Whoever has the file at hand is told the flag, whether or not a coordinator answers. */
START_TEST(a_saved_plan_is_no_job_and_no_job_file)
{
    ck_assert_int_eq(RUN("plan", PLAN, "-o", in_folder("plan.json")), 0);
    ck_assert_int_eq(RUN("plan", "show", in_folder("plan.json"), "--address", NOBODY), 64);
    expect_words("is a file, not a JOB: give a job file with -f, and a saved plan with --plan");
    ck_assert_int_eq(RUN("plan", "explain", in_folder("plan.json"), "--address", NOBODY), 64);
    expect_words("plan.json' is a plan: give its job file with -f");
    ck_assert_int_eq(RUN("plan", in_folder("plan.json"), "--address", NOBODY), 64);
    expect_words("plan.json' is a plan: give its job file with -f");
    ck_assert_int_eq(RUN("submit", in_folder("plan.json"), "--address", NOBODY), 64);
    expect_words("plan.json' is a plan: give its job file with -f");
    ck_assert_int_eq(RUN("plan", "-f", in_folder("job.yaml"), "--cluster", in_folder("plan.json")),
                     64);
    expect_words("plan.json' is a plan: give it with --plan, and a cluster with --cluster");
    ck_assert_int_eq(RUN("plan", "explain", "j-1", "--address", NOBODY), 69);
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_int_eq(RUN("plan", "show", "plan.json", "--address", NOBODY), 64);
    ck_assert_int_eq(mkdir("saved", 0700), 0);
    ck_assert_int_eq(RUN("checkpoint", "verify", "saved", "--address", NOBODY), 65);
    expect_words("'saved' has no manifest.json");
}
END_TEST

START_TEST(the_draft_of_a_file_is_ones_own)
{
    char *make = xasprintf("mkdir '%s.part'", in_folder("plan.json"));
    ck_assert_int_eq(system(make), 0);
    free(make);
    ck_assert_int_eq(RUN("plan", PLAN, "-o", in_folder("plan.json")), 0);
    json_decref(object_in("plan.json", "Plan"));
}
END_TEST

START_TEST(a_name_that_is_none_has_its_place)
{
    write_job(misnamed[_i].plan);
    ck_assert_int_eq(RUN("plan", PLAN), 65);
    expect_words(misnamed[_i].words);
}
END_TEST

START_TEST(too_few_devices_for_what_is_asked_are_the_answer)
{
    ck_assert_int_eq(RUN("plan", "why-not", "tp=8", PLAN), 0);
    ck_assert_str_eq(command.out,
                     "it cannot be divided this way: plan.pin: tp 8 does not divide heads 4 of the "
                     "model; 1, 2, 4 do\n");
    ck_assert_int_eq(RUN("plan", "why-not", "tp=4", "dp=2", PLAN), 0);
    ck_assert_str_eq(command.out,
                     "it cannot be divided this way: plan.pin asks for 8 devices (dp 2, tp 4), "
                     "and there are 4 for the job\n");
    write_job("devices: {max: 2}\n");
    ck_assert_int_eq(RUN("plan", "why-not", "pp=2", "dp=2", PLAN), 0);
    ck_assert_ptr_nonnull(strstr(command.out, "4 devices (dp 2, pp 2), and there are 2 for"));
}
END_TEST

START_TEST(a_frontier_of_nothing_is_told_in_words)
{
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "--search", "uniform"), 64);
    expect_words("the search 'uniform' finds a single plan");
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "--plan", in_folder("plan.json")), 64);
    expect_words("--plan is a single plan");
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "more.yaml"), 64);
    expect_words("'more.yaml' is a second job file");
    ck_assert_int_eq(RUN("plan", "frontier", in_folder("job.yaml"), "--address", NOBODY), 69);
    expect_words("no coordinator answers at " NOBODY);
    expect_words("or plan for --cluster FILE");
    write_job_of(65536, "");
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "--memory", "1MiB"), 3);
    expect_words("no plan fits");
    ck_assert_int_eq(RUN("plan", "frontier", PLAN, "-o", "png"), 64);
}
END_TEST

/* Of every role that a device's words differ by, on one stage and two. */
static const char *const divisions[] = {
    "{pin: {pp: 1}, forbid: {roles: [tensor, tensor_seq, hidden, context, ulysses], zero: [2, 3]}, "
    "overlap: false}",
    "{pin: {pp: 1}, forbid: {roles: [batch, tensor_seq, hidden, context, ulysses]}, "
    "overlap: false}",
    "{pin: {pp: 1, dp: 2}, forbid: {roles: [tensor, hidden, context, ulysses], zero: [0, 1, 2]}, "
    "overlap: false}",
    "{pin: {pp: 2}, forbid: {roles: [tensor_seq, hidden, context, ulysses], "
    "recompute: [none, selective]}, overlap: false}",
};

/* A second program works out all that is said, from the dumped costs. */
START_TEST(what_is_explained_follows_from_the_dumped_costs)
{
    char *more = xasprintf("devices: {min: 4}\nplan: %s\n", divisions[_i]);
    write_job(more);
    free(more);
    ck_assert_int_eq(
        RUN("plan", PLAN, "--dump-costs", in_folder("costs.json"), "-o", in_folder("plan.json")),
        0);
    ck_assert_int_eq(RUN("plan", "explain", PLAN, "--plan", in_folder("plan.json"), "-o",
                         in_folder("explained.json")),
                     0);
    int code = run((const char *const[]){PYTHON, EXPLAINED, in_folder("costs.json"),
                                         in_folder("plan.json"), in_folder("explained.json"), "2",
                                         "32", "16", NULL});
    ck_assert_msg(code == 0, "%s", command.err);
    ck_assert_str_eq(command.out, "");
}
END_TEST

/* Every block of the plan is divided in two, the ends too; and the wish says what is not possible.
 */
START_TEST(a_vocabulary_that_the_ranks_do_not_divide_is_divided)
{
    write_job_of(50257, "plan: {pin: {tp: 2}}\n");
    ck_assert_msg(RUN("plan", PLAN, "-o", in_folder("plan.json")) == 0, "%s", command.err);
    json_t *plan = object_in("plan.json", "Plan"), *block;
    size_t i;
    json_array_foreach(json_object_get(plan, "blocks"), i, block)
    {
        char *roles = json_dumps(json_object_get(block, "roles"), 0);
        ck_assert_msg(strstr(roles, "tensor") != NULL, "%s", roles);
        free(roles);
    }
    ck_assert_uint_eq(i, 4);
    json_decref(plan);
    write_job_of(50257, "plan: {pin: {tp: 3}}\n");
    ck_assert_int_eq(RUN("plan", PLAN), 3);
    expect_words("tp 3 does not divide heads 4 and ffn 128 of the model; 1, 2, 4 do");
}
END_TEST

START_TEST(a_table_says_how_far_a_block_is_from_the_least)
{
    write_job("plan: {pin: {dp: 4, pp: 1}, forbid: {zero: [1, 2, 3]}}\n");
    ck_assert_int_eq(RUN("plan", "explain", PLAN), 0);
    ck_assert_ptr_nonnull(strstr(command.out, "LEAST  SENT/LEAST"));
    ck_assert_ptr_nonnull(strstr(command.out, "\nlayers.1 "));
}
END_TEST

SUITE(plan)
{
    TCase *explain = tcase_create("explain");
    tcase_add_checked_fixture(explain, setup, teardown);
    tcase_set_timeout(explain, 60);
    if (PYTHON[0])
        tcase_add_loop_test(explain, what_is_explained_follows_from_the_dumped_costs, 0,
                            (int)(sizeof divisions / sizeof *divisions));
    else
        suite_skip("what is explained", "there is no python3");
    tcase_add_test(explain, a_block_takes_as_much_in_each_view);
    tcase_add_test(explain, a_table_says_how_far_a_block_is_from_the_least);
    tcase_add_test(explain, a_vocabulary_that_the_ranks_do_not_divide_is_divided);
    tcase_add_test(explain, a_job_in_bf16_is_planned_with_half_the_memory);
    tcase_add_test(explain, a_cluster_file_says_how_fast_bf16_is);
    TCase *frontier = tcase_create("frontier");
    tcase_add_checked_fixture(frontier, setup, teardown);
    tcase_set_timeout(frontier, 60);
    tcase_add_test(frontier, no_plan_of_the_frontier_beats_another);
    tcase_add_test(frontier, the_frontier_is_a_table_a_drawing_and_plans_to_save);
    tcase_add_test(frontier, a_table_of_plans_has_its_headers_unless_they_are_not_wanted);
    tcase_add_test(frontier, a_frontier_of_nothing_is_told_in_words);
    tcase_add_test(frontier, a_saved_plan_is_no_job_and_no_job_file);
    tcase_add_test(frontier, files_that_are_mistaken_for_each_other_are_told_apart);
    tcase_add_test(frontier, the_draft_of_a_file_is_ones_own);
    tcase_add_test(frontier, too_few_devices_for_what_is_asked_are_the_answer);
    tcase_add_loop_test(frontier, a_name_that_is_none_has_its_place, 0,
                        (int)(sizeof misnamed / sizeof *misnamed));
    TCase *tcase = tcase_create("galvatron");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, plans_stand_beside_galvatrons_under_its_formula);
    tcase_add_test(tcase, a_saved_plan_is_judged_by_galvatrons_formula);
    tcase_add_test(tcase, a_spec_stands_for_job_and_cluster);
    tcase_add_loop_test(tcase, what_is_wrong_in_a_profile_is_named, 0,
                        (int)(sizeof overlaps / sizeof *overlaps));
    tcase_add_test(tcase, flags_of_galvatrons_formula_that_lack_something_are_usage);
    return suite_run("plan", explain, frontier, tcase, NULL);
}
