/* gradients.c - the gradients of weights: where they are summed, and how they get to the optimizer.
 *
 * Gradients of a block that a single all-reduce completes in place lie side by side in a bucket.
 * Others travel to the storage placement: once per step, or, under ZeRO 2 and 3, in every
 * micro-batch, block by block. All of this overlaps with the backward of the blocks before. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>

/* Is the gradient complete after at most one all-reduce in place? */
static bool stays(const struct lowering *l, const struct weight_use *use)
{
    struct placement settled = placement_settled(&use->leaving);
    return weights_owner(l, use->tensor)->stage == use->stage &&
           placement_equal(&settled, &l->storage[use->tensor]);
}

/* Is the gradient reduced to its shard in every micro-batch, block by block? */
static bool scatters(const struct lowering *l, const struct weight_use *use)
{
    const struct weight_use *owner = weights_owner(l, use->tensor);
    return weights_zero(l, owner) >= 2 && owner->stage == use->stage && !stays(l, use);
}

/* The bucket of a use: one for each block and set of axes to reduce over. Added if there is none
 * yet. Uses come block by block, and so do buckets. */
static int find_bucket(struct lowering *l, const struct weight_use *use)
{
    int block = l->graph->nodes[use->node].block;
    for (size_t b = l->bucket_count; b > 0 && l->buckets[b - 1].block == block; b--)
        if (l->buckets[b - 1].axes == use->leaving.partial)
            return (int)b - 1;
    assert(l->bucket_count == 0 || l->buckets[l->bucket_count - 1].block <= block);
    l->buckets = grow(l->buckets, l->bucket_count, &l->bucket_capacity, sizeof *l->buckets);
    l->buckets[l->bucket_count++] = (struct bucket){
        .block = block,
        .axes = use->leaving.partial,
        .buffer = emit_buffer(l, REGION_STATE, 0, -1),
    };
    return (int)l->bucket_count - 1;
}

void gradients_place(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    struct box box = own_slice(l, &shape, &use->leaving);
    if (scatters(l, use)) {
        use->shard = weights_state(l, use->tensor, &l->storage[use->tensor]);
        return;
    }
    if (!stays(l, use)) {
        use->gradient = emit_new(l, REGION_STATE, use->tensor, &box);
        return;
    }
    use->bucket = find_bucket(l, use);
    struct bucket *bucket = &l->buckets[use->bucket];
    use->gradient = (struct piece){.buffer = bucket->buffer, .offset = bucket->count, .box = box};
    bucket->count += (box_count(&box) + 15) / 16 * 16; /* no two gradients share a cache line */
    l->program->buffers[bucket->buffer].bytes = (uint64_t)bucket->count * ELEMENT_BYTES;
}

void gradients_clear(struct lowering *l)
{
    emit_section(l, SECTION_CLEAR);
    for (size_t b = 0; b < l->bucket_count; b++)
        emit_clear(l, l->buckets[b].buffer, l->buckets[b].count);
    for (size_t u = 0; u < l->use_count; u++) {
        const struct weight_use *use = &l->uses[u];
        const struct piece *sum = scatters(l, use) ? &use->shard : &use->gradient;
        if (weights_here(l, use) && use->bucket < 0)
            emit_clear(l, sum->buffer, box_count(&sum->box));
    }
}

/* Calls call() once with each use of this block whose gradient is scattered. */
static int each_scattered(struct lowering *l, int block,
                          int (*call)(struct lowering *l, struct weight_use *use))
{
    const struct block *b = &l->graph->blocks[block];
    bool *seen = xcalloc(l->use_count, sizeof *seen);
    int rc = 0;
    for (int n = b->node_first; n < b->node_first + b->node_count; n++) {
        const struct operation *operation = l->graph->nodes[n].operation;
        for (int i = operation->input_count; i < operation_output(operation) && rc == 0; i++) {
            struct weight_use *use = weights_use(l, n, i);
            if (scatters(l, use) && !seen[use - l->uses])
                rc = call(l, use);
            seen[use - l->uses] = true;
        }
    }
    free(seen);
    return rc;
}

static int open_gradient(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    struct box box = own_slice(l, &shape, &use->leaving);
    emit_beside(l);
    use->gradient = emit_new(l, REGION_TRANSIENT, use->tensor, &box);
    emit_at_once(l);
    emit_clear(l, use->gradient.buffer, box_count(&box));
    return 0;
}

static int scatter_gradient(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    int rc = move_within(l, &shape, use->tensor, &use->leaving, &l->storage[use->tensor],
                         &use->gradient);
    return rc < 0 ? error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[use->tensor].name)
                  : 0;
}

static int add_gradient(struct lowering *l, struct weight_use *use)
{
    emit_add(l, &use->gradient, &use->shard);
    return 0;
}

void gradients_open_block(struct lowering *l, int block)
{
    each_scattered(l, block, open_gradient);
}

int gradients_close_block(struct lowering *l, int block)
{
    emit_beside(l);
    int rc = each_scattered(l, block, scatter_gradient);
    if (rc == 0)
        rc = each_scattered(l, block, add_gradient);
    emit_at_once(l);
    return rc;
}

/* Brings the gradient of one use, fully reduced, to the owner's storage placement. On the owner's
 * stage *piece is the result; another stage sends. */
static int settle(struct lowering *l, size_t index, struct piece *piece)
{
    struct weight_use *use = &l->uses[index];
    const struct weight_use *owner = weights_owner(l, use->tensor);
    const struct placement *storage = &l->storage[use->tensor];
    struct shape shape = tensor_shape(l, use->tensor);
    *piece = scatters(l, use) ? use->shard : use->gradient;
    if (owner->stage == use->stage) {
        if (!weights_here(l, use) || use->bucket >= 0 || scatters(l, use))
            return 0;
        int rc = move_within(l, &shape, use->tensor, &use->leaving, storage, piece);
        if (rc == 0)
            weights_keep(l, piece);
        return rc;
    }
    struct placement settled = placement_settled(&use->leaving);
    if (weights_here(l, use)) {
        int rc = move_within(l, &shape, use->tensor, &use->leaving, &settled, piece);
        if (rc < 0)
            return rc;
    }
    move_across(l, &shape, use->tensor, PURPOSE_GRADIENT, (int)index, use->stage, &settled,
                owner->stage, storage, piece);
    return 0;
}

/* Reduces the buckets of the block, which are the last before *end, and moves *end before them. */
static void reduce_buckets(struct lowering *l, int block, size_t *end)
{
    size_t last = *end;
    while (*end > 0 && l->buckets[*end - 1].block == block)
        (*end)--;
    for (size_t b = *end; b < last; b++) {
        const struct bucket *bucket = &l->buckets[b];
        struct piece whole = {.buffer = bucket->buffer,
                              .box = {.dims = 1, .high = {bucket->count}}};
        if (bucket->axes)
            emit_all_reduce(l, emit_group(l, bucket->axes), REDUCTION_SUM, &whole);
    }
}

/* Sums the gradients of all uses of a weight on the owner's stage. */
static int unite(struct lowering *l, int tensor, struct piece *sum)
{
    for (int u = l->owner[tensor]; u >= 0; u = l->uses[u].next) {
        struct piece piece;
        int rc = settle(l, (size_t)u, &piece);
        if (rc < 0)
            return error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[tensor].name);
        if (!weights_here(l, weights_owner(l, tensor)))
            continue;
        if (u == l->owner[tensor])
            *sum = piece;
        else
            emit_add(l, &piece, sum);
    }
    return 0;
}

/* Reduces the gradients of one block. Called from the last block to the first, in the order in
 * which backward completes them, so that reduction overlaps with the rest of backward. */
static int reduce_block(struct lowering *l, int block, size_t *buckets, struct piece *gradients)
{
    const struct block *b = &l->graph->blocks[block];
    int rc = 0;
    emit_beside(l);
    emit_room(l, -1);
    reduce_buckets(l, block, buckets);
    for (int n = b->node_first; n < b->node_first + b->node_count; n++) {
        const struct node *node = &l->graph->nodes[n];
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            int tensor = node->operands[i];
            if (rc == 0 && l->owner[tensor] >= 0 && weights_owner(l, tensor)->node == n)
                rc = unite(l, tensor, &gradients[tensor]);
        }
    }
    emit_at_once(l);
    return rc;
}

int gradients_reduce(struct lowering *l)
{
    struct program *p = l->program;
    struct piece *gradients = xcalloc(l->graph->tensor_count, sizeof *gradients);
    size_t buckets = l->bucket_count;
    int rc = 0;
    emit_section(l, SECTION_REDUCE);
    for (int block = (int)l->graph->block_count - 1; block >= 0 && rc == 0; block--)
        rc = reduce_block(l, block, &buckets, gradients);
    for (size_t i = p->parameter_count; i-- > 0 && rc == 0;) {
        p->parameters[i].gradient = gradients[p->parameters[i].tensor];
        if (!p->parameters[i].counted)
            continue;
        emit(l, INSTRUCTION_SQUARE_SUM)->parameter = (int)i;
        emit_piece(l, 0, &p->parameters[i].gradient);
    }
    free(gradients);
    return rc;
}
