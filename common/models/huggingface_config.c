/* huggingface_config.c - whether a config.json describes our model.
 *
 * Theirs is completed first, as transformers does it: what is missing gets the standard value of
 * its type, never ours. Then it is settled (struct huggingface), and then compared key by key. A
 * key that nobody here knows is refused: it may be what makes it another model. */
#include "common/models/huggingface.h"

#include "common/base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 80 /* characters of a value in a message */

/* ---- the keys of all types ---- */

/* Also in files of types that know nothing of causality or decoders. Some releases before 5 drop
 * heads that are pruned. */
static const struct huggingface_key every_compared[] = {
    {"model_type"},
    {"is_causal", "true"},
    {"pruned_heads", "{}"},
    {NULL},
};

/* clang-format off */
/* What concerns training with dropout, other tasks, how results are handed out, memory, and texts
 * that are generated: those of transformers 5 and of releases before, and what is in the files of
 * published models besides. */
static const char *const every_nothing[] = {
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
    "_commit_hash", "_experts_implementation_internal", "_flash_attn_2_enabled",
    "_from_model_config", "_name_or_path", "_num_labels", "_output_attentions", "_post_init_done",
    "architectures", "assistant_confidence_threshold", "assistant_lookbehind",
    "attention_dropout", "attn_implementation", "bad_words_ids", "begin_suppress_tokens",
    "bos_token_id", "chunk_size_feed_forward", "classifier_dropout",
    "cross_attention_hidden_size", "decoder_start_token_id", "diversity_penalty", "do_sample",
    "dtype", "early_stopping", "encoder_no_repeat_ngram_size", "encoder_repetition_penalty",
    "eos_token_id", "eos_token_ids", "epsilon_cutoff", "eta_cutoff", "experts_implementation",
    "exponential_decay_length_penalty", "finetuning_task", "forced_bos_token_id",
    "forced_eos_token_id", "gradient_checkpointing", "id2label", "initializer_range",
    "is_decoder", "is_encoder_decoder", "is_llama_config", "keep_quantized", "label2id",
    "length_penalty", "max_length", "max_new_tokens", "max_sequence_length", "min_length",
    "model_max_length", "name_or_path", "neftune_noise_alpha", "no_repeat_ngram_size",
    "num_assistant_tokens", "num_assistant_tokens_schedule", "num_beam_groups", "num_beams",
    "num_labels", "num_return_sequences", "output_attentions", "output_cross_attentions",
    "output_hidden_states", "output_past", "output_scores", "pad_token_id", "prefix",
    "problem_type", "remove_invalid_values", "repetition_penalty", "return_dict",
    "return_dict_in_generate", "sep_token_id", "seq_length", "suppress_tokens",
    "target_lookbehind", "task_specific_params", "temperature", "tf_legacy_loss",
    "tie_encoder_decoder", "tie_last_hidden_states", "tokenizer_class", "top_k", "top_p",
    "torch_dtype", "torchscript", "transformers.js_config", "transformers_version", "typical_p",
    "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_cache", "use_flash_attn",
    "use_return_dict", "xla_device", NULL,
};

/* What makes it several models, or other weights than those in the files. */
static const char *const every_refused[] = {
    "_heterogeneity_spec", "_rope_type_labels", "attention_chunk_size", "auto_map",
    "compression_config", "decoder", "fusion_config", "generator", "kv_sharing_modes",
    "layer_types", "mlp_layer_types", "mtp_layer_types", "num_heads", "output_loading_info",
    "per_layer_config", "quantization", "quantization_config", "text_config",
    "transformers_weights", "vision_aspect_ratio", "vision_feature_layer",
    "vision_feature_select_strategy", NULL,
};
/* clang-format on */

static const struct huggingface_keys every = {every_compared, every_nothing, every_refused};

#define GROUPS 3

/* The keys of a type, those that are its own first. */
struct groups {
    const struct huggingface_keys *of[GROUPS];
};

static struct groups groups_of(const struct huggingface *family,
                               const struct huggingface_type *type)
{
    return (struct groups){{&type->keys, &family->keys, &every}};
}

static bool list_has(const char *const *list, const char *key)
{
    for (; list && *list; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

static bool compares(const struct huggingface_key *list, const char *key)
{
    for (; list && list->key; list++)
        if (strcmp(list->key, key) == 0)
            return true;
    return false;
}

enum huggingface_effect huggingface_effect(const struct huggingface *family,
                                           const struct huggingface_type *type, const char *key)
{
    struct groups groups = groups_of(family, type);
    for (int i = 0; i < GROUPS; i++) {
        if (compares(groups.of[i]->compared, key))
            return EFFECT_COMPARED;
        if (list_has(groups.of[i]->nothing, key))
            return EFFECT_NOTHING;
        if (list_has(groups.of[i]->refused, key))
            return EFFECT_REFUSED;
    }
    return EFFECT_UNKNOWN;
}

/* Call for every row, until an error. */
typedef int each_cb(const struct huggingface_key *row, void *data);

static int each_compared(const struct groups *groups, each_cb *row_cb, void *data)
{
    int rc = 0;
    for (int i = 0; i < GROUPS; i++)
        for (const struct huggingface_key *row = groups->of[i]->compared;
             row && row->key && rc == 0; row++)
            rc = row_cb(row, data);
    return rc;
}

void huggingface_settle_word(json_t *theirs, const char *key, const char *const *words,
                             const char *ours)
{
    const char *said = json_string_value(json_object_get(theirs, key));
    if (said && list_has(words, said))
        json_object_set_new(theirs, key, json_string(ours));
}

/* ---- comparing ---- */

struct comparison {
    const json_t *said; /* their file */
    json_t *theirs;     /* what transformers makes of it */
    json_t *ours;
    struct sizes *sizes;
    struct error *err;
};

static char *print_value(const json_t *value)
{
    return value ? json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6))
                 : xstrdup("null");
}

/* Give a key that is missing its standard; in ours, too, unless it can be without any. */
static int complete_key(const struct huggingface_key *row, void *data)
{
    struct comparison *in = data;
    json_t *said = json_object_get(in->said, row->key);
    if (row->as) {
        if (said)
            json_object_set(in->theirs, row->as, said);
        return 0;
    }
    if (said && json_is_null(said) && !row->nullable)
        return error_set(in->err, -EINVAL, "%s is null, which it cannot be", row->key);
    json_t *standard = row->standard ? json_loads(row->standard, JSON_DECODE_ANY, NULL) : NULL;
    if (standard && !json_object_get(in->theirs, row->key))
        json_object_set(in->theirs, row->key, standard);
    if (standard && !json_object_get(in->ours, row->key) && !row->nullable)
        json_object_set(in->ours, row->key, standard);
    json_decref(standard);
    return 0;
}

static bool agree(const json_t *ours, const json_t *theirs);

static bool objects_agree(const json_t *ours, const json_t *theirs)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)theirs, key, value)
    {
        const json_t *own = json_object_get(ours, key);
        if (own ? !agree(own, value) : !json_is_null(value))
            return false;
    }
    json_object_foreach((json_t *)ours, key, value)
    {
        if (!json_object_get(theirs, key))
            return false;
    }
    return true;
}

/* Numbers agree within the precision of a float; one that is whole is written as such. */
static bool agree(const json_t *ours, const json_t *theirs)
{
    if (json_is_integer(ours) && !json_is_integer(theirs))
        return false;
    if (json_is_number(ours) && json_is_number(theirs)) {
        double a = json_number_value(ours), b = json_number_value(theirs);
        return fabs(a - b) <= 1e-6 * fabs(a);
    }
    if (json_is_object(ours) && json_is_object(theirs))
        return objects_agree(ours, theirs);
    return ours && theirs ? json_equal(ours, theirs) == 1
                          : (!ours || json_is_null(ours)) && (!theirs || json_is_null(theirs));
}

static int refuse_value(const struct comparison *in, const char *key, struct error *err)
{
    const json_t *theirs = json_object_get(in->theirs, key);
    char *is = print_value(theirs), *right = print_value(json_object_get(in->ours, key));
    if (json_object_get(in->said, key) || !theirs)
        error_set(err, -EINVAL, "%s is %.*s, the job's model has %.*s", key, SHOWN, is, SHOWN,
                  right);
    else
        error_set(err, -EINVAL,
                  "%s is not said, so that transformers makes it %.*s; the job's model has %.*s",
                  key, SHOWN, is, SHOWN, right);
    free(is);
    free(right);
    return -EINVAL;
}

/* Whether theirs contains ours, with no more beyond it than there may be. */
static bool has_more(const struct huggingface_key *row, const json_t *ours, const json_t *theirs)
{
    json_int_t own = json_integer_value(ours), there = json_integer_value(theirs);
    return json_is_integer(theirs) && there >= own && (!row->more || there - own <= row->more);
}

static int compare_key(const struct huggingface_key *row, void *data)
{
    struct comparison *in = data;
    const json_t *ours = json_object_get(in->ours, row->key);
    const json_t *theirs = json_object_get(in->theirs, row->key);
    if (row->read || row->as)
        return 0;
    if (row->dim && has_more(row, ours, theirs)) {
        sizes_set(in->sizes, row->dim, json_integer_value(theirs));
        return 0;
    }
    return agree(ours, theirs) ? 0 : refuse_value(in, row->key, in->err);
}

static int refuse_type(const struct huggingface *family, const char *type, struct error *err)
{
    char all[160] = "", own[80] = "";
    size_t used = 0, used_own = 0;
    for (int i = 0; models[i]; i++) {
        const struct huggingface *other = models[i]->huggingface;
        for (const struct huggingface_type *t = other ? other->types : NULL; t && t->model_type;
             t++) {
            used += (size_t)snprintf(all + used, sizeof all - used, used ? ", %s" : "%s",
                                     t->model_type);
            if (other == family)
                used_own += (size_t)snprintf(own + used_own, sizeof own - used_own,
                                             used_own ? " or %s" : "%s", t->model_type);
        }
    }
    return error_set(
        err, -EINVAL,
        "model_type is %s%.40s%s: %s would be right for the job's model.family; of all "
        "there are, %s can be read",
        type ? "\"" : "", type ? type : "not said", type ? "\"" : "", own, all);
}

static int find_type(const struct huggingface *family, const json_t *theirs,
                     const struct huggingface_type **out, struct error *err)
{
    const char *type = json_string_value(json_object_get(theirs, "model_type"));
    for (*out = family->types; type && (*out)->model_type; (*out)++)
        if (strcmp((*out)->model_type, type) == 0)
            return 0;
    return refuse_type(family, type, err);
}

/* Refuse what is not supported, and what nobody knows. */
static int check_known(const struct huggingface *family, const struct huggingface_type *type,
                       const json_t *theirs, struct error *err)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)theirs, key, value)
    {
        enum huggingface_effect effect = huggingface_effect(family, type, key);
        if (json_is_null(value) || effect == EFFECT_COMPARED || effect == EFFECT_NOTHING)
            continue;
        char *is = print_value(value);
        if (effect == EFFECT_REFUSED)
            error_set(err, -EINVAL, "%s is %.*s: a model with it is not supported", key, SHOWN, is);
        else
            error_set(err, -EINVAL,
                      "%.60s is no key that this release knows of %s, and may make it another "
                      "model: if it does not, take it out of the file",
                      key, type->model_type);
        free(is);
        return -EINVAL;
    }
    return 0;
}

int huggingface_compare(const struct job_model *config, const struct graph *graph,
                        const json_t *theirs, struct sizes *sizes, struct error *err)
{
    const struct huggingface *family = model_find(config->family)->huggingface;
    const struct huggingface_type *type;
    *sizes = (struct sizes){0};
    if (!json_is_object(theirs))
        return error_set(err, -EINVAL, "it is no object of keys and values");
    int rc = find_type(family, theirs, &type, err);
    if (rc == 0)
        rc = check_known(family, type, theirs, err);
    if (rc < 0)
        return rc;
    struct groups groups = groups_of(family, type);
    struct comparison in = {.said = theirs,
                            .theirs = json_deep_copy(theirs),
                            .ours = family->config(config, graph),
                            .sizes = sizes,
                            .err = err};
    json_object_set_new(in.ours, "model_type", json_string(type->model_type));
    rc = each_compared(&groups, complete_key, &in);
    if (rc == 0) {
        family->settle(in.ours, config);
        family->settle(in.theirs, config);
        rc = each_compared(&groups, compare_key, &in);
    }
    json_decref(in.theirs);
    json_decref(in.ours);
    return rc;
}
