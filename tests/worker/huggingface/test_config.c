/* test_config.c - every key of every type's config.json, as transformers takes it: what was
 * recorded by record_config.py is accepted where the model is the same, and refused where not. */
#include "common/base/memory.h"
#include "common/models/huggingface.h"
#include "tests/support/suite.h"
#include "worker/huggingface/tensor_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const records[] = {"gpt2",    "llama", "llama-slowed",  "llama-old",
                                      "mistral", "qwen2", "qwen2-windows", "qwen3"};

/* What is refused although transformers takes it for the same model, and why. */
static const struct {
    const char *type, *key, *value;
} stricter[] = {
    /* Releases before 5 would follow it, and not rope_parameters. */
    {"*", "rope_theta", "50.0"},
    {"*", "rope_theta", "10000.0"},
    {"*", "rope_theta", "10000"},
    {"*", "rope_theta", "null"},
    /* Another head is stored, which only release 5 prefers to the tied one. */
    {"llama", "tie_word_embeddings", "true"},
    {"mistral", "tie_word_embeddings", "true"},
    {"qwen2", "tie_word_embeddings", "true"},
    {"qwen3", "tie_word_embeddings", "true"},
    /* Longer texts than a sample would be turned otherwise. */
    {"*", "rope_parameters", "{\"rope_type\": \"dynamic\", \"factor\": 4.0}"},
    {"*", "rope_scaling", "{\"rope_type\": \"dynamic\", \"factor\": 4.0}"},
    /* Releases before 5 turn that part of a head. */
    {"*", "partial_rotary_factor", "0.5"},
    /* Whoever reads it may take null for false. */
    {"*", "is_causal", "null"},
    /* Releases before 5 drop these heads. */
    {"*", "pruned_heads", "null"},
    {"*", "pruned_heads", "{\"0\": [1]}"},
    {"*", "pruned_heads", "true"},
};

static char *folder;
static struct error err;

static int64_t number(const json_t *config, const char *key, const char *other)
{
    const json_t *value = json_object_get(config, key);
    return json_integer_value(value ? value : json_object_get(config, other));
}

static enum job_rope_type read_rope_type(const json_t *rope)
{
    const char *type = json_string_value(json_object_get(rope, "rope_type"));
    for (int i = 0; type && job_rope_types[i]; i++)
        if (strcmp(job_rope_types[i], type) == 0)
            return (enum job_rope_type)i;
    return JOB_ROPE_DEFAULT;
}

/* The job's model that the recorded one is. */
static struct job_model model_of(const json_t *record)
{
    const json_t *config = json_object_get(record, "config");
    const char *type = json_string_value(json_object_get(record, "type"));
    bool gpt = strcmp(type, "gpt2") == 0;
    const json_t *rope = json_object_get(config, "rope_parameters");
    const json_t *theta = json_object_get(rope, "rope_theta");
    if (!rope)
        rope = json_object_get(config, "rope_scaling");
    if (!theta)
        theta = json_object_get(config, "rope_theta");
    struct job_model out = {
        .family = gpt                          ? "gpt"
                  : strcmp(type, "qwen2") == 0 ? "qwen"
                  : strcmp(type, "qwen3") == 0 ? "qwen3"
                                               : "llama",
        .layers = number(config, "num_hidden_layers", "n_layer"),
        .hidden = number(config, "hidden_size", "n_embd"),
        .heads = number(config, "num_attention_heads", "n_head"),
        .seq = json_integer_value(json_object_get(record, "seq")),
        .vocab = number(config, "vocab_size", "vocab_size"),
        .ffn = number(config, "intermediate_size", "n_inner"),
    };
    const json_t *epsilon = json_object_get(config, gpt ? "layer_norm_epsilon" : "rms_norm_eps");
    out.norm_epsilon = json_number_value(epsilon);
    if (gpt)
        return out;
    out.head_dim = number(config, "head_dim", "head_dim");
    out.kv_heads = number(config, "num_key_value_heads", "num_key_value_heads");
    out.rope_theta = json_number_value(theta);
    out.rope_scaling = (struct job_rope_scaling){
        .rope_type = read_rope_type(rope),
        .factor = json_number_value(json_object_get(rope, "factor")),
        .low_freq_factor = json_number_value(json_object_get(rope, "low_freq_factor")),
        .high_freq_factor = json_number_value(json_object_get(rope, "high_freq_factor")),
        .original_max_position_embeddings =
            number(rope, "original_max_position_embeddings", "original_max_position_embeddings"),
    };
    return out;
}

/* Whether the config.json with the key at this value, "absent" or JSON as Python writes it, is that
 * of the model, with weights for as many tokens and positions as before. Others write it as text,
 * so that what is no JSON is read, too. */
static bool accepts(const struct job_model *model, const struct graph *graph, const json_t *config,
                    const char *key, const char *value)
{
    json_t *rest = json_deep_copy(config), *theirs = NULL;
    const int64_t positions = number(config, "n_positions", "n_positions");
    struct sizes sizes;
    json_object_del(rest, key);
    char *most = json_dumps(rest, JSON_COMPACT);
    char *text = strcmp(value, "absent") == 0 ? xstrdup(most)
                                              : xasprintf("{\"%s\": %s%s%s", key, value,
                                                          most[1] == '}' ? "" : ",", most + 1);
    char *path = xasprintf("%s/config.json", folder);
    FILE *file = fopen(path, "we"); /* without the fsync of file_write(), which takes its time */
    ck_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    int rc = tensor_files_json(folder, "config.json", &theirs, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    rc = huggingface_compare(model, graph, theirs, &sizes, &err);
    if (rc == 0 && (sizes_get(&sizes, 'v') != model->vocab ||
                    (positions && sizes_get(&sizes, 's') != positions)))
        rc = error_set(&err, -EINVAL, "the weights are others");
    json_decref(theirs);
    json_decref(rest);
    free(path);
    free(text);
    free(most);
    return rc == 0;
}

static bool may_be_stricter(const char *type, const char *key, const char *value)
{
    for (size_t i = 0; i < sizeof stricter / sizeof *stricter; i++)
        if ((*stricter[i].type == '*' || strcmp(stricter[i].type, type) == 0) &&
            strcmp(stricter[i].key, key) == 0 &&
            (*stricter[i].value == '*' || strcmp(stricter[i].value, value) == 0))
            return true;
    return false;
}

/* Keys that change nothing are accepted whatever they say, and what is not supported is refused
 * unless it is null; all others decide as transformers does. Returns false with words on what is
 * wrong. */
static bool is_right(enum huggingface_effect effect, bool accepted, const char *value,
                     const char *verdict, bool stricter_here)
{
    bool same = strcmp(verdict, "same") == 0, none = strcmp(value, "null") == 0;
    if (effect == EFFECT_NOTHING || (effect == EFFECT_REFUSED && none))
        return accepted && strcmp(verdict, "other") != 0;
    return accepted ? same : !same || effect == EFFECT_REFUSED || stricter_here;
}

static json_t *open_record(const char *path)
{
    json_error_t why;
    json_t *record = json_load_file(path, 0, &why);
    ck_assert_msg(record, "%s: %s", path, why.text);
    return record;
}

START_TEST(every_key_decides_as_in_transformers)
{
    char *path = xasprintf(RECORDED "/huggingface/recorded/%s.json", records[_i]);
    json_t *record = open_record(path), *cases, *verdict;
    const char *key, *value, *type = json_string_value(json_object_get(record, "type"));
    const json_t *config = json_object_get(record, "config");
    struct job_model model = model_of(record);
    const struct huggingface *family = model_find(model.family)->huggingface;
    const struct huggingface_type *of = family->types;
    struct graph *graph;
    int wrong = 0, count = 0;
    while (strcmp(of->model_type, type) != 0)
        of++;
    ck_assert_msg(model_build(&model, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    json_object_foreach(json_object_get(record, "keys"), key, cases)
    {
        enum huggingface_effect effect = huggingface_effect(family, of, key);
        json_object_foreach(cases, value, verdict)
        {
            err.text[0] = '\0';
            bool accepted = accepts(&model, graph, config, key, value);
            const char *word = json_string_value(verdict);
            bool may = may_be_stricter(type, key, value);
            count++;
            if (is_right(effect, accepted, value, word, may))
                continue;
            wrong++;
            printf("%s: %s %s is %s in transformers, and %s here%s%s\n", records[_i], key, value,
                   word, accepted ? "accepted" : "refused", *err.text ? ": " : "", err.text);
        }
    }
    printf("%s: %d of %d are not as in transformers\n", records[_i], wrong, count);
    fflush(stdout);
    ck_assert(count > 20 && wrong == 0);
    graph_destroy(graph);
    json_decref(record);
    free(path);
}
END_TEST

START_TEST(every_key_that_is_written_or_read_is_known)
{
    char *path = xasprintf(RECORDED "/huggingface/recorded/%s.json", records[_i]);
    json_t *record = open_record(path), *cases;
    const char *key, *type = json_string_value(json_object_get(record, "type"));
    int unknown = 0;
    for (int m = 0; models[m]; m++) {
        const struct huggingface *family = models[m]->huggingface;
        for (const struct huggingface_type *of = family ? family->types : NULL;
             of && of->model_type; of++)
            if (strcmp(of->model_type, type) == 0)
                json_object_foreach(json_object_get(record, "keys"), key, cases)
                {
                    if (huggingface_effect(family, of, key) != EFFECT_UNKNOWN)
                        continue;
                    printf("%s: %s is in no list\n", records[_i], key);
                    unknown++;
                }
    }
    fflush(stdout);
    ck_assert_int_eq(unknown, 0);
    json_decref(record);
    free(path);
}
END_TEST

/* Values that are none of what any key is for; all together, or one at a time. */
START_TEST(no_value_breaks_what_reads_it)
{
    static const char *const values[] = {
        "true",
        "-9223372036854775808",
        "9223372036854775807",
        "0",
        "1e308",
        "NaN",
        "\"\"",
        "[]",
        "{}",
        "[[1], null]",
        "{\"rope_theta\": [], \"rope_type\": 3, \"type\": {}, \"factor\": \"x\"}"};
    char *path = xasprintf(RECORDED "/huggingface/recorded/%s.json", records[_i]);
    json_t *record = open_record(path), *cases, *config = json_object_get(record, "config");
    struct job_model model = model_of(record);
    struct graph *graph;
    const char *key;
    ck_assert_msg(model_build(&model, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        json_t *all = json_object();
        json_object_foreach(json_object_get(record, "keys"), key, cases)
        {
            json_t *value = json_loads(values[i], JSON_DECODE_ANY, NULL);
            err.text[0] = '\0';
            ck_assert(accepts(&model, graph, config, key, values[i]) || *err.text);
            json_object_set_new(all, key, value ? value : json_real(1));
        }
        json_object_set(all, "model_type", json_object_get(config, "model_type"));
        ck_assert(!accepts(&model, graph, all, "nothing", "null"));
        json_decref(all);
    }
    graph_destroy(graph);
    json_decref(record);
    free(path);
}
END_TEST

/* What the files of published models say, whole, with keys that nothing reads. */
static const struct {
    struct job_model model;
    const char *config;
} published[] = {
    {{.family = "gpt", .layers = 24, .hidden = 1024, .heads = 16, .seq = 1024, .vocab = 50257},
     "{'model_type': 'gpt2', 'architectures': ['GPT2LMHeadModel'], 'activation_function': "
     "'gelu_new', "
     "'attn_pdrop': 0.1, 'embd_pdrop': 0.1, 'resid_pdrop': 0.1, 'bos_token_id': 50256, "
     "'eos_token_id': 50256, "
     "'initializer_range': 0.02, 'layer_norm_epsilon': 1e-05, 'n_ctx': 1024, 'n_embd': 1024, "
     "'n_head': 16, "
     "'n_layer': 24, 'n_positions': 1024, 'n_special': 0, 'predict_special_tokens': true, "
     "'summary_activation': null, 'summary_first_dropout': 0.1, 'summary_proj_to_labels': true, "
     "'summary_type': 'cls_index', 'summary_use_proj': true, 'vocab_size': 50257, "
     "'task_specific_params': {'text-generation': {'do_sample': true, 'max_length': 50}}}"},
    {{.family = "llama",
      .layers = 30,
      .hidden = 576,
      .heads = 9,
      .kv_heads = 3,
      .ffn = 1536,
      .seq = 2048,
      .vocab = 49152,
      .rope_theta = 1e5,
      .tied = ANSWER_YES},
     "{'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'attention_bias': false, "
     "'attention_dropout': 0.0, 'bos_token_id': 0, 'eos_token_id': 0, 'hidden_act': 'silu', "
     "'hidden_size': 576, "
     "'initializer_range': 0.041666666666666664, 'intermediate_size': 1536, 'is_llama_config': "
     "true, "
     "'max_position_embeddings': 8192, 'mlp_bias': false, 'num_attention_heads': 9, "
     "'num_hidden_layers': 30, "
     "'num_key_value_heads': 3, 'pretraining_tp': 1, 'rms_norm_eps': 1e-05, 'rope_interleaved': "
     "false, "
     "'rope_scaling': null, 'rope_theta': 100000, 'tie_word_embeddings': true, 'torch_dtype': "
     "'bfloat16', "
     "'transformers_version': '4.40.1', 'use_cache': true, 'vocab_size': 49152, "
     "'transformers.js_config': {'dtype': 'q4'}}"},
    {{.family = "llama",
      .layers = 16,
      .hidden = 2048,
      .heads = 32,
      .kv_heads = 8,
      .ffn = 8192,
      .seq = 8192,
      .vocab = 128256,
      .rope_theta = 5e5,
      .tied = ANSWER_YES,
      .rope_scaling = {JOB_ROPE_LLAMA3, 32, 1, 4, 8192}},
     "{'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'attention_bias': false, "
     "'attention_dropout': 0.0, 'bos_token_id': 128000, 'eos_token_id': [128001, 128008, 128009], "
     "'head_dim': 64, "
     "'hidden_act': 'silu', 'hidden_size': 2048, 'initializer_range': 0.02, 'intermediate_size': "
     "8192, "
     "'max_position_embeddings': 131072, 'mlp_bias': false, 'num_attention_heads': 32, "
     "'num_hidden_layers': 16, "
     "'num_key_value_heads': 8, 'pretraining_tp': 1, 'rms_norm_eps': 1e-05, 'rope_scaling': "
     "{'factor': 32.0, "
     "'high_freq_factor': 4.0, 'low_freq_factor': 1.0, 'original_max_position_embeddings': 8192, "
     "'rope_type': 'llama3'}, 'rope_theta': 500000.0, 'tie_word_embeddings': true, 'torch_dtype': "
     "'bfloat16', "
     "'transformers_version': '4.45.0.dev0', 'use_cache': true, 'vocab_size': 128256}"},
    {{.family = "llama",
      .layers = 32,
      .hidden = 4096,
      .heads = 32,
      .kv_heads = 8,
      .ffn = 14336,
      .seq = 4096,
      .vocab = 32000},
     "{'model_type': 'mistral', 'architectures': ['MistralForCausalLM'], 'bos_token_id': 1, "
     "'eos_token_id': 2, "
     "'hidden_act': 'silu', 'hidden_size': 4096, 'initializer_range': 0.02, 'intermediate_size': "
     "14336, "
     "'max_position_embeddings': 32768, 'num_attention_heads': 32, 'num_hidden_layers': 32, "
     "'num_key_value_heads': 8, 'rms_norm_eps': 1e-05, 'rope_theta': 10000.0, 'sliding_window': "
     "4096, "
     "'tie_word_embeddings': false, 'torch_dtype': 'bfloat16', 'transformers_version': "
     "'4.34.0.dev0', "
     "'use_cache': true, 'vocab_size': 32000}"},
    {{.family = "qwen",
      .layers = 24,
      .hidden = 896,
      .heads = 14,
      .kv_heads = 2,
      .ffn = 4864,
      .seq = 2048,
      .vocab = 151665,
      .rope_theta = 1e6,
      .norm_epsilon = 1e-6,
      .tied = ANSWER_YES},
     "{'model_type': 'qwen2', 'architectures': ['Qwen2ForCausalLM'], 'attention_dropout': 0.0, "
     "'bos_token_id': 151643, 'eos_token_id': 151643, 'hidden_act': 'silu', 'hidden_size': 896, "
     "'initializer_range': 0.02, 'intermediate_size': 4864, 'max_position_embeddings': 32768, "
     "'max_window_layers': 24, 'num_attention_heads': 14, 'num_hidden_layers': 24, "
     "'num_key_value_heads': 2, "
     "'rms_norm_eps': 1e-06, 'rope_theta': 1000000.0, 'sliding_window': 32768, "
     "'tie_word_embeddings': true, "
     "'torch_dtype': 'bfloat16', 'transformers_version': '4.40.1', 'use_cache': true, 'use_mrope': "
     "false, "
     "'use_sliding_window': false, 'vocab_size': 151936}"},
    {{.family = "qwen3",
      .layers = 28,
      .hidden = 1024,
      .heads = 16,
      .kv_heads = 8,
      .head_dim = 128,
      .ffn = 3072,
      .seq = 4096,
      .vocab = 151936,
      .rope_theta = 1e6,
      .norm_epsilon = 1e-6,
      .tied = ANSWER_YES},
     "{'model_type': 'qwen3', 'architectures': ['Qwen3ForCausalLM'], 'attention_bias': false, "
     "'attention_dropout': 0.0, 'bos_token_id': 151643, 'eos_token_id': 151645, 'head_dim': 128, "
     "'hidden_act': 'silu', 'hidden_size': 1024, 'initializer_range': 0.02, 'intermediate_size': "
     "3072, "
     "'max_position_embeddings': 40960, 'max_window_layers': 28, 'num_attention_heads': 16, "
     "'num_hidden_layers': 28, 'num_key_value_heads': 8, 'rms_norm_eps': 1e-06, 'rope_scaling': "
     "null, "
     "'rope_theta': 1000000, 'sliding_window': null, 'tie_word_embeddings': true, 'torch_dtype': "
     "'bfloat16', "
     "'transformers_version': '4.51.0', 'use_cache': true, 'use_sliding_window': false, "
     "'vocab_size': 151936}"},
};

START_TEST(what_published_models_say_is_accepted)
{
    struct graph *graph;
    struct sizes sizes;
    char *text = xstrdup(published[_i].config);
    for (char *at = text; (at = strchr(at, '\''));)
        *at = '"';
    json_t *config = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(config);
    ck_assert_msg(model_build(&published[_i].model, ELEMENT_F32, &graph, &err) == 0, "%s",
                  err.text);
    int rc = huggingface_compare(&published[_i].model, graph, config, &sizes, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    ck_assert_int_ge(sizes_get(&sizes, 'v'), published[_i].model.vocab);
    graph_destroy(graph);
    json_decref(config);
    free(text);
}
END_TEST

static void setup(void)
{
    folder = xstrdup("/tmp/gimbal-config-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void)
{
    char *path = xasprintf("%s/config.json", folder);
    remove(path);
    remove(folder);
    free(path);
    free(folder);
}

SUITE(foreign_config)
{
    const int count = (int)(sizeof records / sizeof *records);
    TCase *tcase = tcase_create("config");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_loop_test(tcase, every_key_decides_as_in_transformers, 0, count);
    tcase_add_loop_test(tcase, every_key_that_is_written_or_read_is_known, 0, count);
    tcase_add_loop_test(tcase, no_value_breaks_what_reads_it, 0, count);
    tcase_add_loop_test(tcase, what_published_models_say_is_accepted, 0,
                        (int)(sizeof published / sizeof *published));
    return suite_run("config", tcase, NULL);
}
