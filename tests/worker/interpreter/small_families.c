/* small_families.c - five models: with and without shared heads of keys, biases and a table for
 * embedding and head, causal and not; and with vocabularies that most numbers of ranks do not
 * divide. */
#include "tests/worker/interpreter/small_families.h"

#include "worker/kernels/devices.h"

#include <check.h>
#include <stdio.h>

const struct job_model families[FAMILIES] = {
    {.family = "gpt", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 37, .ffn = 48},
    /* Two heads of queries for each of keys and values. */
    {.family = "llama",
     .layers = 2,
     .hidden = 32,
     .heads = 8,
     .seq = 12,
     .vocab = 36,
     .ffn = 48,
     .kv_heads = 4,
     .rope_theta = 100,
     .rope_scaling = {JOB_ROPE_LLAMA3, 4, 0.5, 2, 20}},
    {.family = "qwen",
     .layers = 2,
     .hidden = 32,
     .heads = 8,
     .seq = 12,
     .vocab = 38,
     .ffn = 48,
     .kv_heads = 4,
     .tied = ANSWER_YES},
    /* Heads that are not as wide as all of them together would be. */
    {.family = "qwen3",
     .layers = 2,
     .hidden = 24,
     .heads = 8,
     .head_dim = 6,
     .seq = 12,
     .vocab = 37,
     .ffn = 48,
     .kv_heads = 4},
    {.family = "bert", .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 36, .ffn = 48},
};

void families_build(enum element element, struct graph *graphs[FAMILIES])
{
    for (int i = 0; i < FAMILIES; i++) {
        struct error err = {""};
        ck_assert_msg(model_build(&families[i], element, &graphs[i], &err) == 0, "%s", err.text);
    }
}

void families_train(struct graph *const graphs[FAMILIES], struct engine_result results[FAMILIES])
{
    const struct engine_options options = {
        .steps = FAMILIES_STEPS, .ignored = FAMILIES_IGNORED, .poison = true};
    for (int i = 0; i < FAMILIES; i++) {
        struct plan *plan = engine_plan_one(graphs[i], 1, FAMILIES_SAMPLES);
        struct error err = {""};
        int rc = engine_run(graphs[i], plan, &options, &results[i], &err);
        ck_assert_msg(rc == 0, "%s: %s", families[i].family, err.text);
        plan_destroy(plan);
    }
}

void families_finish(struct graph *graphs[FAMILIES])
{
    for (int i = 0; i < FAMILIES; i++)
        graph_destroy(graphs[i]);
}

void families_forget(struct engine_result results[FAMILIES])
{
    for (int i = 0; i < FAMILIES; i++)
        engine_result_finish(&results[i]);
}

const struct device *families_cuda(void)
{
    const struct device *cuda;
    struct error err = {""};
    if (device_load("cuda", &cuda, &err) == 0 && cuda->probe(&err) == 0)
        return cuda;
    printf("skip cuda: %s\n", err.text);
    return NULL;
}
