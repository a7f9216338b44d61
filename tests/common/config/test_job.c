/* test_job.c - the job file: the example of the manual, its defaults, and what contradicts itself.
 */
#include "common/base/memory.h"
#include "common/config/job.h"
#include "coordinator/planning/cluster_file.h"

#include "tests/support/printing.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char full[] =
    "apiVersion: gimbal/v1\n"
    "name: gpt2-124m\n"
    "model: {family: gpt, layers: 12, hidden: 768, heads: 12, seq: 1024, vocab: 50257}\n"
    "data:  {tokens: [corpus.bin]}\n"
    "train: {steps: 2000, global_batch: 64, lr: 6.0e-4, warmup: 100, weight_decay: 0.1, clip: 1.0, "
    "dtype: bf16, seed: 1}\n"
    "devices: {min: 1, max: 8}\n"
    "plan:  {objective: throughput, memory: 16GiB, search: exact, pin: {tp: 2}, forbid: {zero: "
    "3}}\n"
    "elastic: {copy_every: 1, copy_share: 0.1, orphan: 10m, max_restarts: 20, max_skipped: 10}\n"
    "eval:  {every: 100, holdout: 0.05}\n"
    "checkpoint: {dir: checkpoints, every: 200, keep: 3}\n";

static const char least[] = "apiVersion: gimbal/v1\n"
                            "name: small\n"
                            "model:\n"
                            "  family: gpt\n"
                            "  layers: 2\n"
                            "  hidden: 64\n"
                            "  heads: 4\n"
                            "  seq: 32\n"
                            "data:\n"
                            "  text: [corpus.txt]\n"
                            "train:\n"
                            "  steps: 100\n"
                            "  global_batch: 8\n"
                            "  lr: 0.001\n";

static struct job_config *parse(const char *text)
{
    struct job_config *job = NULL;
    struct error err = {""};
    int rc = job_config_parse(text, strlen(text), "job.yaml", &job, &err);
    ck_assert_msg(rc == 0, "%s\n%s", err.text, text);
    return job;
}

START_TEST(the_example_is_read)
{
    struct job_config *job = parse(full);
    ck_assert_str_eq(job->name, "gpt2-124m");
    ck_assert_str_eq(job->model.family, "gpt");
    ck_assert_int_eq(job->model.layers, 12);
    ck_assert_int_eq(job->model.vocab, 50257);
    ck_assert_int_eq(job->model.ffn, 0); /* the family's own */
    ck_assert_str_eq(job->data.tokens.items[0], "corpus.bin");
    ck_assert_int_eq(job->train.steps, 2000);
    ck_assert_double_eq(job->train.lr, 6e-4);
    ck_assert_int_eq(job->train.dtype, ELEMENT_BF16);
    ck_assert_int_eq(job->devices.max, 8);
    ck_assert_uint_eq(job->plan.memory, 16ull << 30);
    ck_assert_int_eq(job->plan.pin.tp, 2);
    ck_assert_int_eq(job->plan.pin.pp, 0);
    ck_assert_uint_eq(job->plan.forbid.zero, 1u << 3);
    ck_assert_double_eq(job->elastic.orphan, 600);
    ck_assert_double_eq(job->eval.holdout, 0.05);
    ck_assert_str_eq(job->checkpoint.dir, "checkpoints");
    ck_assert_int_eq(job->checkpoint.every, 200);
    job_config_destroy(job);
}
END_TEST

START_TEST(the_least_job_gets_its_defaults)
{
    struct job_config *job = parse(least);
    ck_assert_int_eq(job->model.vocab, 256);
    ck_assert_int_eq(job->model.ffn, 0);
    ck_assert_int_eq(job->train.warmup, 0);
    ck_assert_double_eq(job->train.weight_decay, 0.1);
    ck_assert_double_eq(job->train.clip, 1);
    ck_assert_int_eq(job->train.dtype, ELEMENT_F32);
    ck_assert_int_eq(job->train.seed, 1);
    ck_assert_double_eq(job->train.beta1, 0.9);
    ck_assert_double_eq(job->train.beta2, 0.95);
    ck_assert_double_eq(job->train.epsilon, 1e-8);
    ck_assert_int_eq(job->devices.min, 1);
    ck_assert_int_eq(job->devices.max, 0);
    ck_assert_int_eq(job->plan.objective, JOB_THROUGHPUT);
    ck_assert_uint_eq(job->plan.memory, 0);
    ck_assert_ptr_null(job->plan.search);
    ck_assert_ptr_null(job->plan.schedule);
    ck_assert_int_eq(job->elastic.copy_every, 1);
    ck_assert_int_eq(job->elastic.max_restarts, 20);
    ck_assert_int_eq(job->elastic.max_skipped, 10);
    ck_assert_int_eq(job->eval.every, 0);
    ck_assert_ptr_null(job->checkpoint.dir);
    job_config_destroy(job);
}
END_TEST

START_TEST(printing_and_parsing_gives_the_same_job)
{
    struct job_config *job = parse(_i ? full : least);
    char *text = fields_print(job_config_fields, job);
    struct job_config *again = parse(text);
    char *text_again = fields_print(job_config_fields, again);
    ck_assert_str_eq(text, text_again);
    ck_assert_int_eq(again->model.ffn, job->model.ffn);
    ck_assert_double_eq(again->train.lr, job->train.lr);
    ck_assert_double_eq(again->train.epsilon, job->train.epsilon);
    ck_assert_uint_eq(again->plan.memory, job->plan.memory);
    ck_assert_uint_eq(again->plan.forbid.zero, job->plan.forbid.zero);
    ck_assert_double_eq(again->elastic.orphan, job->elastic.orphan);
    ck_assert_int_eq(again->checkpoint.keep, job->checkpoint.keep);
    free(text);
    free(text_again);
    job_config_destroy(job);
    job_config_destroy(again);
}
END_TEST

/* The least job with one piece of its text replaced, and the whole sentence that answers it. */
static const struct {
    const char *piece, *instead, *sentence;
} faults[] = {
    {"gimbal/v1", "gimbal/v2",
     "job.yaml:1:13: apiVersion: 'gimbal/v2' is not known: write gimbal/v1"},
    {"apiVersion: gimbal/v1\n", "", "job.yaml:1:1: apiVersion: missing: write gimbal/v1"},
    {"name: small", "name: a/b",
     "job.yaml:2:7: name: 'a/b' cannot be a name: write at most 63 letters, digits, '-', '_' and "
     "'.', the first a letter or digit"},
    {"name: small", "name: ..",
     "job.yaml:2:7: name: '..' cannot be a name: write at most 63 letters, digits, '-', '_' and "
     "'.', "
     "the first a letter or digit"},
    {"  layers: 2", "  layer: 2", "job.yaml:5:3: model.layer: unknown key; did you mean 'layers'?"},
    {"  hidden: 64", "  hidden: 0",
     "job.yaml:6:11: model.hidden: '0' is out of range: write a whole "
     "number (features), 1 to 1048576"},
    {"  heads: 4\n", "",
     "job.yaml:4:3: model.heads: missing: write a whole number (heads), 1 to 65536"},
    {"  seq: 32", "  seq: 32\n  vocab: 100",
     "job.yaml:9:10: model.vocab: 100 is too small for data.text, where every byte is a token: "
     "write "
     "at least 256 or leave it out"},
    {"  seq: 32", "  seq: 32\n  rope_scaling: {factor: 8}",
     "job.yaml:9:26: model.rope_scaling.factor: is of rope_type: linear or llama3"},
    {"  seq: 32", "  seq: 32\n  rope_scaling: {rope_type: linear}",
     "job.yaml:9:17: model.rope_scaling.factor: missing: write by how much positions turn slower, "
     "such as 8"},
    {"  seq: 32", "  seq: 32\n  rope_scaling: {rope_type: linear, factor: 2, low_freq_factor: 1}",
     "job.yaml:9:65: model.rope_scaling.low_freq_factor: is of rope_type: llama3"},
    {"  seq: 32", "  seq: 32\n  rope_scaling: {rope_type: llama3, factor: 2, low_freq_factor: 5}",
     "job.yaml:9:65: model.rope_scaling.low_freq_factor: 5 is not less than high_freq_factor, 4"},
    {"  seq: 32", "  seq: 32\n  rope_scaling: {rope_type: yarn, factor: 2}",
     "job.yaml:9:29: model.rope_scaling.rope_type: 'yarn' is not known: write default, linear or "
     "llama3"},
    {"text: [corpus.txt]", "tokens: [corpus.bin]",
     "job.yaml:4:3: model.vocab: missing: token files need the size of their vocabulary"},
    {"text: [corpus.txt]", "images: [cats, dogs]\n  tokenizer: bytes",
     "job.yaml:11:14: data.tokenizer: is for tokens: images have none"},
    {"text: [corpus.txt]", "text: [corpus.txt]\n  tokenizer: /shared/gpt2",
     "job.yaml:11:14: data.tokenizer: is for data.tokens, every byte of data.text is a token: pack "
     "the texts with 'gimbal data pack --tokenizer /shared/gpt2 TEXT... -o corpus.bin'"},
    {"text: [corpus.txt]", "tokens: [corpus.bin]\n  tokenizer: byts",
     "job.yaml:11:14: data.tokenizer: 'byts' is not known: write other, bytes or the path of a "
     "tokenizer.json, such as /shared/gpt2/tokenizer.json"},
    {"text: [corpus.txt]", "tokens: [corpus.bin]\n  tokenizer: ./tokenizer.json",
     "job.yaml:4:3: model.vocab: missing: token files need the size of their vocabulary"},
    {"  seq: 32\ndata:\n  text: [corpus.txt]",
     "  seq: 32\n  vocab: 100\ndata:\n  tokens: a.bin\n  tokenizer: bytes",
     "job.yaml:9:10: model.vocab: 100 is too small for data.tokenizer: bytes, where every byte is "
     "a token: write at least 256 or leave it out"},
    {"text: [corpus.txt]", "text: a.txt\n  tokens: b.bin",
     "job.yaml:11:11: data.tokens: data.text is written too: write one of the two"},
    {"text: [corpus.txt]", "text: a.txt\n  format: uint16",
     "job.yaml:11:11: data.format: is for data.tokens, and data.text has no format to tell"},
    {"text: [corpus.txt]", "tokens: a.bin\n  format: int16",
     "job.yaml:11:11: data.format: 'int16' is not known: write auto, uint16 or uint32"},
    {"text: [corpus.txt]", "text: []",
     "job.yaml:10:3: data: names no files: write text: [FILE or DIRECTORY, ...] or tokens: [FILE, "
     "...]"},
    {"data:\n  text: [corpus.txt]\n", "",
     "job.yaml:1:1: data: missing: write a section of keys and values"},
    {"  lr: 0.001\n", "  lr: 0.001\n  warmup: 101\n",
     "job.yaml:15:11: train.warmup: 101 steps are more than train.steps, 100"},
    {"  lr: 0.001\n", "  lr: 0.001\n  dtype: fp8\n",
     "job.yaml:15:10: train.dtype: 'fp8' is not known: write f32 or bf16"},
    {"  lr: 0.001\n", "  lr: 0.001\n  beta2: 1\n",
     "job.yaml:15:10: train.beta2: '1' is out of range: write a number (no unit), at least 0 and "
     "below 1"},
    {"  lr: 0.001\n", "  lr: 0.001\n  holdout: 0.1\n",
     "job.yaml:15:3: train.holdout: unknown key here; it belongs in 'eval'"},
    {"  lr: 0.001\n", "  lr: 0.001\ndevices: {min: 4, max: 2}\n",
     "job.yaml:15:16: devices.min: 4 is more than devices.max, 2"},
    {"  lr: 0.001\n", "  lr: 0.001\nplan: {pin: {micro_batches: 3}}\n",
     "job.yaml:15:29: plan.pin.micro_batches: 3 does not divide train.global_batch, 8 samples"},
    {"  lr: 0.001\n", "  lr: 0.001\ndevices: {max: 7}\nplan: {pin: {dp: 2, tp: 4}}\n",
     "job.yaml:16:13: plan.pin: dp x tp x pp is more than devices.max, 7"},
    {"  lr: 0.001\n", "  lr: 0.001\nplan: {forbid: {zero: [0, 1, 2, 3]}}\n",
     "job.yaml:15:23: plan.forbid.zero: forbids 0, 1, 2 and 3: leave one of them"},
    {"  lr: 0.001\n", "  lr: 0.001\nplan: {forbid: {recompute: [none, selective, full]}}\n",
     "job.yaml:15:28: plan.forbid.recompute: forbids none, selective and full: leave one of them"},
    {"  lr: 0.001\n", "  lr: 0.001\nelastic: {orphan: 600}\n",
     "job.yaml:15:19: elastic.orphan: '600' is not a duration: write a duration with its unit, 1s "
     "to "
     "168h"},
    {"  lr: 0.001\n", "  lr: 0.001\neval: {every: 10}\n",
     "job.yaml:15:7: eval.holdout: missing or 0: eval.every needs data that is held out, such as "
     "holdout: 0.05, or an eval.data"},
    {"  lr: 0.001\n", "  lr: 0.001\neval: {every: 10, holdout: 0.1, data: val.bin}\n",
     "job.yaml:15:39: eval.data: eval.holdout is written too: write one of the two"},
    {"  lr: 0.001\n", "  lr: 0.001\neval: {holdout: 0.1, samples: 64}\n",
     "job.yaml:15:31: eval.samples: nothing is evaluated without eval.every: write how many steps "
     "are between two evaluations"},
    {"  lr: 0.001\n", "  lr: 0.001\neval: {data: val.bin}\n",
     "job.yaml:15:14: eval.data: nothing is evaluated without eval.every: write how many steps are "
     "between two evaluations"},
    {"  lr: 0.001\n", "  lr: 0.001\neval: {holdout: 0.95}\n",
     "job.yaml:15:17: eval.holdout: '0.95' is out of range: write a number (no unit), 0 to 0.9"},
};

static char *replace(const char *text, const char *piece, const char *instead)
{
    const char *at = strstr(text, piece);
    ck_assert_ptr_nonnull(at);
    return xasprintf("%.*s%s%s", (int)(at - text), text, instead, at + strlen(piece));
}

START_TEST(a_contradiction_is_named_with_its_place_and_both_sides)
{
    char *text = replace(least, faults[_i].piece, faults[_i].instead);
    struct job_config *job = NULL;
    struct error err = {""};
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job.yaml", &job, &err), -EINVAL);
    ck_assert_str_eq(err.text, faults[_i].sentence);
    ck_assert_ptr_null(job);
    free(text);
}
END_TEST

START_TEST(tokens_that_are_bytes_need_no_vocabulary)
{
    char *text = replace(least, "text: [corpus.txt]", "tokens: a.bin\n  tokenizer: bytes");
    struct job_config *job = parse(text);
    ck_assert_int_eq(job->model.vocab, 256);
    ck_assert(!job_ends_texts(job));
    job->model.vocab = 257;
    ck_assert(job_ends_texts(job));
    job_config_destroy(job);
    job = parse(least); /* a text is bytes, and nothing ends it */
    ck_assert_int_eq(job_tokenizer(job), JOB_BYTES);
    job->model.vocab = 257;
    ck_assert(!job_ends_texts(job));
    job_config_destroy(job);
    free(text);
}
END_TEST

START_TEST(an_empty_section_is_its_defaults)
{
    char *text = replace(least, "  lr: 0.001\n", "  lr: 0.001\nplan:\neval:\n");
    struct job_config *job = parse(text);
    ck_assert_ptr_null(job->plan.search);
    job_config_destroy(job);
    free(text);
}
END_TEST

START_TEST(a_job_is_loaded_from_its_file)
{
    char path[] = "/tmp/gimbal-job-XXXXXX";
    int descriptor = mkstemp(path);
    ck_assert_int_ge(descriptor, 0);
    ck_assert_int_eq(write(descriptor, full, strlen(full)), (ssize_t)strlen(full));
    struct job_config *job = NULL;
    int rc = job_config_load(path, &job, NULL);
    unlink(path);
    close(descriptor);
    ck_assert_int_eq(rc, 0);
    ck_assert_str_eq(job->name, "gpt2-124m");
    job_config_destroy(job);

    struct error err;
    ck_assert_int_eq(job_config_load("/proc/nonexistent.yaml", &job, &err), -ENOENT);
    ck_assert_str_eq(err.text, "cannot open '/proc/nonexistent.yaml': No such file or directory");
}
END_TEST

/* No number without unit and limits, no default outside them. */
static void check_rows(const struct field *fields)
{
    for (const struct field *field = fields; field->key; field++) {
        if (field->kind == FIELD_SECTION) {
            check_rows(field->fields);
            continue;
        }
        if (field->kind == FIELD_INTEGER || field->kind == FIELD_REAL)
            ck_assert_msg(field->unit, "%s has no unit", field->key);
        if (field->kind <= FIELD_DURATION)
            ck_assert_msg(field->least < field->greatest, "%s has no limits", field->key);
        if (field->kind == FIELD_CHOICE)
            ck_assert_msg(field->required || field->standard, "%s may stay unset", field->key);
        char values[64] = {0};
        struct field row[2] = {*field, {.key = NULL}};
        row[0].offset = 0;
        struct error err = {""};
        if (field->standard)
            ck_assert_msg(field_set(row, field->standard, values, &err) == 0, "%s: %s", field->key,
                          err.text);
        fields_clear(row, values);
    }
}

START_TEST(every_number_has_a_unit_and_limits_that_hold_its_default)
{
    check_rows(job_config_fields);
}
END_TEST

/* `gimbal explain` has a line for each. */
static void check_abouts(const struct field *fields)
{
    for (const struct field *field = fields; field->key; field++) {
        ck_assert_msg(field->about && *field->about, "nothing is said about %s", field->key);
        if (field->fields)
            check_abouts(field->fields);
    }
}

START_TEST(something_is_said_about_every_key)
{
    check_abouts(job_config_fields);
    check_abouts(cluster_config_fields);
}
END_TEST

START_TEST(a_sentence_about_a_field_gets_its_place)
{
    static const char *const sentences[][2] = {
        {"model.heads 4 is odd", "job.yaml:7:10: model.heads: 4 is odd"},
        {"model.vocab 256 is small", "job.yaml:4:3: model.vocab: 256 is small"},
        {"this cannot be", "job.yaml: this cannot be"},
        {"model.heads", "job.yaml: model.heads"},
    };
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        struct error err;
        error_set(&err, 0, "%s", sentences[i][0]);
        job_config_place(least, strlen(least), "job.yaml", &err);
        ck_assert_str_eq(err.text, sentences[i][1]);
    }
}
END_TEST

/* Refused where it begins to be too much; a reader that builds it first is at work for minutes. */
START_TEST(a_text_cannot_keep_its_reader_busy)
{
    static const struct {
        const char *unit, *words;
    } texts[] = {
        {"[", "job.yaml:1:33: lists and sections stand in each other more than 32 deep"},
        {"{", "job.yaml:1:33: lists and sections stand in each other more than 32 deep"},
        {"- &a", "job.yaml:101:3: there are more than 100 anchors"},
    };
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    for (int i = 0; i < 100000; i++) {
        fputs(texts[_i].unit, out);
        if (_i == 2)
            fprintf(out, "%d x\n", i);
    }
    fclose(out);
    struct job_config *job = NULL;
    struct error err;
    ck_assert_int_eq(job_config_parse(text, size, "job.yaml", &job, &err), -EINVAL);
    ck_assert_str_eq(err.text, texts[_i].words);
    free(text);
}
END_TEST

START_TEST(a_tab_that_yaml_does_not_take_is_named)
{
    static const char *const texts[] = {
        "model:\n\tfamily: gpt\n",
        "# \u00fc\u20ac\nmodel:\n  family: gpt\n\tlayers: 2\n",
        "\xef\xbb\xbfmodel:\n\tfamily: gpt\n",
    };
    struct job_config *job = NULL;
    struct error err;
    const char *text = texts[_i];
    ck_assert_int_eq(job_config_parse(text, strlen(text), "job.yaml", &job, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, ":1: not YAML: there is a tab here; write spaces") != NULL, "%s",
                  err.text);
}
END_TEST

SUITE(job)
{
    TCase *tcase = tcase_create("job");
    tcase_add_test(tcase, the_example_is_read);
    tcase_add_test(tcase, the_least_job_gets_its_defaults);
    tcase_add_loop_test(tcase, printing_and_parsing_gives_the_same_job, 0, 2);
    tcase_add_loop_test(tcase, a_contradiction_is_named_with_its_place_and_both_sides, 0,
                        sizeof faults / sizeof *faults);
    tcase_add_test(tcase, a_sentence_about_a_field_gets_its_place);
    tcase_add_loop_test(tcase, a_text_cannot_keep_its_reader_busy, 0, 3);
    tcase_add_loop_test(tcase, a_tab_that_yaml_does_not_take_is_named, 0, 3);
    tcase_add_test(tcase, an_empty_section_is_its_defaults);
    tcase_add_test(tcase, tokens_that_are_bytes_need_no_vocabulary);
    tcase_add_test(tcase, a_job_is_loaded_from_its_file);
    tcase_add_test(tcase, something_is_said_about_every_key);
    tcase_add_test(tcase, every_number_has_a_unit_and_limits_that_hold_its_default);
    return suite_run("job", tcase, NULL);
}
