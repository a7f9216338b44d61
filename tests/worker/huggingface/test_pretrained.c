/* test_pretrained.c - a state that random plans have saved is exported, and the masters of ranks of
 * other random plans are filled from there, bit by bit; files that lie are refused. */
#include "common/base/file.h"
#include "common/base/memory.h"
#include "common/base/random.h"
#include "common/models/huggingface.h"
#include "tests/support/suite.h"
#include "tests/worker/checkpoint/checkpoints.h"
#include "worker/huggingface/export.h"

#include <stdlib.h>
#include <string.h>

#define PLANS 12
#define LIES 400

static struct graph *graph;
static struct error err;
static char *folder, *weights;

static void write_weights(struct checkpoint *checkpoint)
{
    struct huggingface_tensor *tensors;
    size_t count;
    uint64_t bytes;
    ck_assert_int_eq(huggingface_tensors(&checkpoints_model, graph, &tensors, &count, &err), 0);
    int rc = weights_write(checkpoint, graph, tensors, count, ELEMENT_F32, weights, &bytes, &err);
    ck_assert_msg(rc == 0, "%s", err.text);
    huggingface_free(tensors, count);
}

/* What a random plan has saved, as transformers has it. */
static void export(uint64_t seed)
{
    char *saved = xasprintf("%s/saved-%llu", folder, (unsigned long long)seed);
    char *path = xasprintf("%s/config.json", folder);
    json_t *root = huggingface_config(&checkpoints_model, graph);
    char *config = huggingface_print(root);
    struct plan *plan = engine_plan_random(graph, seed, 8, 8);
    struct checkpoint *checkpoint;
    ck_assert_msg(checkpoints_write(graph, plan, saved, &err) == 0, "%s", err.text);
    ck_assert_msg(checkpoint_open(saved, &checkpoint, &err) == 0, "%s", err.text);
    remove(weights);
    write_weights(checkpoint);
    ck_assert_int_eq(file_write(path, config, 0666, &err), 0);
    checkpoint_close(checkpoint);
    plan_destroy(plan);
    json_decref(root);
    free(config);
    free(path);
    free(saved);
}

static void setup(void)
{
    folder = checkpoints_make_folder();
    weights = xasprintf("%s/model.safetensors", folder);
    ck_assert_int_eq(model_build(&checkpoints_model, ELEMENT_F32, &graph, &err), 0);
}

static void teardown(void)
{
    graph_destroy(graph);
    free(weights);
    checkpoints_delete_folder(folder);
}

START_TEST(what_any_plan_has_saved_begins_any_other)
{
    for (uint64_t i = 0; i < (uint64_t)test_share(PLANS); i++) {
        uint64_t seed = test_seed() + 2 * i;
        struct plan *plan = engine_plan_random(graph, seed + 1, 8, 8);
        struct pretrained *pretrained;
        export(seed);
        int rc = pretrained_open(folder, &checkpoints_model, graph, &pretrained, &err);
        if (rc == 0)
            rc = checkpoints_begin(graph, plan, pretrained, &err);
        ck_assert_msg(rc == 0, "seed %llu: %s", (unsigned long long)seed, err.text);
        pretrained_close(pretrained);
        plan_destroy(plan);
    }
}
END_TEST

/* One byte of the beginning is another: refused in words, or what is read lies in the file. */
static bool tell_a_lie(const char *whole, size_t size, size_t header, uint64_t index)
{
    struct pretrained *pretrained;
    char *bytes = xcalloc(1, size);
    memcpy(bytes, whole, size);
    size_t place = (size_t)random_below(test_seed(), 1, index, header);
    bytes[place] = (char)(bytes[place] ^ (1 << random_below(test_seed(), 2, index, 8)));
    FILE *file = fopen(weights, "we");
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    free(bytes);
    err.text[0] = '\0';
    if (pretrained_open(folder, &checkpoints_model, graph, &pretrained, &err) < 0) {
        ck_assert_msg(strstr(err.text, "model.weights '"), "%s", err.text);
        return true;
    }
    struct plan *plan = engine_plan_random(graph, 1, 1, 8);
    checkpoints_begin(graph, plan, pretrained, &err);
    plan_destroy(plan);
    pretrained_close(pretrained);
    return false;
}

START_TEST(a_header_that_lies_is_refused_or_harmless)
{
    static char whole[1 << 20];
    int refused = 0;
    export(1);
    FILE *file = fopen(weights, "re");
    size_t size = fread(whole, 1, sizeof whole, file);
    ck_assert(size > 1000 && size < sizeof whole);
    ck_assert_int_eq(fclose(file), 0);
    size_t header = 8 + (size_t)(unsigned char)whole[0] + ((size_t)(unsigned char)whole[1] << 8);
    for (uint64_t i = 0; i < LIES; i++)
        refused += tell_a_lie(whole, size, header, i);
    printf("%d of %d lies refused\n", refused, LIES);
    ck_assert_int_gt(refused, LIES / 2);
}
END_TEST

SUITE(foreign_weights)
{
    TCase *tcase = tcase_create("pretrained");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 100);
    tcase_add_test(tcase, what_any_plan_has_saved_begins_any_other);
    tcase_add_test(tcase, a_header_that_lies_is_refused_or_harmless);
    return suite_run("pretrained", tcase, NULL);
}
