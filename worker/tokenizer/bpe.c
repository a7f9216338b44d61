/* bpe.c - the row, and the order in which a file is read. What it says of truncation and padding
 * concerns batches for inference, and is left aside as transformers does. */
#include "worker/tokenizer/bpe.h"

#include "common/base/memory.h"

/* Files before release 0.10 of the package name no type. */
static bool is(const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *type = json_object_get(model, "type");
    return json_is_string(type) ? strcmp(json_string_value(type), "BPE") == 0
                                : !type && json_is_object(json_object_get(model, "vocab")) &&
                                      json_is_array(json_object_get(model, "merges"));
}

static int read_file(struct tokenizer *tokenizer, const json_t *root, struct error *err)
{
    struct bpe *bpe = tokenizer->own = xcalloc(1, sizeof *bpe);
    int rc = bpe_read_rules(bpe, root, err);
    if (rc == 0)
        rc = bpe_read_model(tokenizer, json_object_get(root, "model"), err);
    if (rc == 0)
        rc = bpe_read_added(tokenizer, root, err);
    if (rc == 0)
        rc = bpe_read_template(tokenizer, json_object_get(root, "post_processor"), err);
    return rc;
}

static void close(struct tokenizer *tokenizer)
{
    struct bpe *bpe = tokenizer->own;
    if (!bpe)
        return;
    added_finish(&bpe->plain);
    added_finish(&bpe->normalized);
    pattern_destroy(bpe->pattern);
    merges_finish(&bpe->merges);
    free(bpe);
}

const struct tokenizer_kind tokenizer_bpe = {
    .is = is,
    .read = read_file,
    .close = close,
    .begin = bpe_begin,
    .finish = bpe_finish,
    .add = bpe_add,
    .end = bpe_end,
};
