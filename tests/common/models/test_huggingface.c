/* test_huggingface.c - every family's table: each element of each of their tensors is one of ours,
 * and each of ours is one of theirs. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/huggingface.h"
#include "tests/support/suite.h"

#include "tests/support/counts.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CASES 40

/* Small numbers that differ, so that an axis in the wrong place is one of another length. */
static struct job_model random_config(const char *family, uint64_t index)
{
    uint64_t seed = test_seed();
    int64_t groups = 1 + (int64_t)random_below(seed, index, 0, 3);
    int64_t kv_heads = 1 + (int64_t)random_below(seed, index, 1, 3);
    int64_t heads = groups * kv_heads, width = 2 * (1 + (int64_t)random_below(seed, index, 2, 4));
    return (struct job_model){
        .family = family,
        .layers = 1 + (int64_t)random_below(seed, index, 3, 3),
        .hidden = heads * width,
        .heads = heads,
        .kv_heads = model_find(family)->ties ? kv_heads : 0,
        .head_dim = strcmp(family, "qwen3") == 0 ? 2 + width : 0,
        .seq = 3 + (int64_t)random_below(seed, index, 4, 9),
        .vocab = 5 + (int64_t)random_below(seed, index, 5, 30),
        .ffn = 7 + (int64_t)random_below(seed, index, 6, 20),
        .patch = strcmp(family, "vit") == 0,
        .tied =
            model_find(family)->ties ? (enum answer)random_below(seed, index, 7, 3) : ANSWER_NONE,
    };
}

/* The numbers of ours, all different, go to places of theirs, all different. */
static void check_tensor(const struct huggingface_tensor *tensor)
{
    int64_t count = huggingface_count(tensor), done = 0;
    float *theirs = xcalloc((size_t)count, sizeof *theirs);
    for (int i = 0; i < tensor->part_count; i++) {
        const struct huggingface_part *part = &tensor->parts[i];
        int64_t size = box_count(&part->whole);
        float *ours = xcalloc((size_t)size, sizeof *ours);
        for (int64_t e = 0; e < size; e++)
            ours[e] = (float)++done;
        huggingface_put(part, ours, theirs);
        free(ours);
    }
    ck_assert_msg(done == count, "%s has %lld elements, ours %lld", tensor->name, (long long)count,
                  (long long)done);
    bool *seen = xcalloc((size_t)count + 1, sizeof *seen);
    for (int64_t e = 0; e < count; e++) {
        int64_t value = (int64_t)theirs[e];
        ck_assert_msg(value > 0 && !seen[value], "%s: element %lld is %lld, none or twice",
                      tensor->name, (long long)e, (long long)value);
        seen[value] = true;
    }
    free(seen);
    free(theirs);
}

static void check_family(const struct job_model *config)
{
    struct huggingface_tensor *tensors;
    struct graph *graph;
    struct error err;
    size_t count;
    int64_t elements = 0;
    ck_assert_msg(model_build(config, ELEMENT_F32, &graph, &err) == 0, "%s", err.text);
    ck_assert_msg(huggingface_tensors(config, graph, &tensors, &count, &err) == 0, "%s", err.text);
    for (size_t i = 0; i < count; i++) {
        check_tensor(&tensors[i]);
        elements += huggingface_count(&tensors[i]);
    }
    ck_assert_int_eq(elements, count_parameters(graph));
    json_t *root = huggingface_config(config, graph);
    ck_assert_int_eq(json_integer_value(json_object_get(root, "vocab_size")), config->vocab);
    json_decref(root);
    huggingface_free(tensors, count);
    graph_destroy(graph);
}

START_TEST(every_element_has_one_place)
{
    for (int i = 0; models[i]; i++)
        for (uint64_t index = 0; models[i]->huggingface && index < (uint64_t)test_share(CASES);
             index++) {
            struct job_model config = random_config(models[i]->family, index);
            check_family(&config);
        }
}
END_TEST

/* "h nd" beside each other: queries, then keys, then values in each row. */
START_TEST(projections_of_gpt_lie_beside_each_other)
{
    struct job_model config = {
        .family = "gpt", .layers = 2, .hidden = 6, .heads = 3, .seq = 4, .vocab = 7};
    struct huggingface_tensor *tensors, *attn = NULL;
    struct graph *graph;
    struct error err;
    size_t count;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, &err), 0);
    ck_assert_int_eq(huggingface_tensors(&config, graph, &tensors, &count, &err), 0);
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, "transformer.h.1.attn.c_attn.weight") == 0)
            attn = &tensors[i];
    ck_assert_ptr_nonnull(attn);
    ck_assert(attn->axes == 2 && attn->shape[0] == 6 && attn->shape[1] == 18);
    const struct huggingface_part *keys = &attn->parts[1]; /* hnd */
    ck_assert_str_eq(graph->tensors[keys->tensor].name, "layers.1.k.weight");
    ck_assert_int_eq(keys->first, 6);
    ck_assert(keys->step[0] == 18 && keys->step[1] == 2 && keys->step[2] == 1);
    huggingface_free(tensors, count);
    graph_destroy(graph);
}
END_TEST

START_TEST(a_family_without_a_table_is_refused)
{
    struct job_model config = random_config("bert", 0);
    struct huggingface_tensor *tensors;
    struct graph *graph;
    struct error err;
    size_t count;
    ck_assert_int_eq(model_build(&config, ELEMENT_F32, &graph, &err), 0);
    ck_assert_int_eq(huggingface_tensors(&config, graph, &tensors, &count, &err), -ENOSYS);
    ck_assert_str_eq(err.text, "model.family bert is none that transformers reads");
    graph_destroy(graph);
}
END_TEST

SUITE(huggingface)
{
    TCase *tcase = tcase_create("huggingface");
    tcase_add_test(tcase, every_element_has_one_place);
    tcase_add_test(tcase, projections_of_gpt_lie_beside_each_other);
    tcase_add_test(tcase, a_family_without_a_table_is_refused);
    return suite_run("huggingface", tcase, NULL);
}
