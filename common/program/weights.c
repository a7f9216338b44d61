/* weights.c - a weight's way to its users, its gradient's way back, and the update.
 *
 * The first user of a weight owns it: its stage keeps the master, the moments and the reduced
 * gradient in the storage placement. With ZeRO the storage placement also splits the weight's first
 * dim by the axes over which its gradient is partial, minor-most. For every other way in which a
 * stage uses the weight, a copy travels there once per step and a gradient travels back.
 *
 * Gradients of a block that a single all-reduce completes in place lie side by side in a bucket.
 * Others travel to the storage placement: once per step, or, under ZeRO 2 and 3, in every
 * micro-batch, block by block. All of this overlaps with the backward of the blocks before. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>

static int weights_add_use(struct lowering *l, int node, int operand)
{
    const struct node *n = &l->graph->nodes[node];
    int tensor = n->operands[operand], stage = l->plan->blocks[n->block].stage;
    const struct placement *compute = &l->signatures[node].operand[operand];
    const struct placement *leaving = &l->signatures[node].gradient[operand];
    int last = -1;
    /* The chain of a tensor's uses begins with its owner; without an owner it is empty. */
    for (int i = l->owner[tensor]; i >= 0; i = l->uses[i].next) {
        if (l->uses[i].stage == stage && placement_equal(&l->uses[i].compute, compute) &&
            placement_equal(&l->uses[i].leaving, leaving))
            return i;
        last = i;
    }
    if (last >= 0)
        l->uses[last].next = (int)l->use_count;
    l->uses = grow(l->uses, l->use_count, &l->use_capacity, sizeof *l->uses);
    l->uses[l->use_count] = (struct weight_use){.tensor = tensor,
                                                .stage = stage,
                                                .node = node,
                                                .compute = *compute,
                                                .leaving = *leaving,
                                                .bucket = -1,
                                                .next = -1};
    return (int)l->use_count++;
}

/* The ZeRO stage of the block of a weight's owner. */
static int weights_zero(const struct lowering *l, const struct weight_use *owner)
{
    return l->plan->blocks[l->graph->nodes[owner->node].block].zero;
}

/* Does the use belong to this rank's stage? */
static bool weights_here(const struct lowering *l, const struct weight_use *use)
{
    return use->stage == l->stage;
}

const struct weight_use *weights_owner(const struct lowering *l, int tensor)
{
    return &l->uses[l->owner[tensor]];
}

/* Adds a buffer of this rank's slice that lives between steps. */
static struct piece weights_state(struct lowering *l, int tensor, const struct placement *placement)
{
    struct shape shape = tensor_shape(l, tensor);
    struct box box = own_slice(l, &shape, placement);
    return emit_new(l, REGION_STATE, tensor, &box);
}

/* Lets a buffer that a move made live between steps as well. */
static void weights_keep(struct lowering *l, const struct piece *piece)
{
    struct buffer *buffer = &l->program->buffers[piece->buffer];
    buffer->region = REGION_STATE;
    buffer->beside = false;
}

static struct placement weights_storage(const struct lowering *l, const struct weight_use *use)
{
    struct placement storage = placement_settled(&use->leaving);
    int axes = stage_mesh(l, use->stage)->axes;
    for (int axis = axes - 1; axis >= 0 && weights_zero(l, use) > 0; axis--)
        if (use->leaving.partial >> axis & 1)
            placement_append(&storage, 0, axis);
    return storage;
}

int weights_find(struct lowering *l)
{
    l->storage = xcalloc(l->graph->tensor_count, sizeof *l->storage);
    l->owner = xcalloc(l->graph->tensor_count, sizeof *l->owner);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        l->owner[t] = -1;
    for (size_t n = 0; n < l->graph->node_count; n++) {
        const struct node *node = &l->graph->nodes[n];
        if (!part_has_weights(l, node->block))
            continue;
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            int use = weights_add_use(l, (int)n, i), tensor = node->operands[i];
            if (l->owner[tensor] < 0) {
                l->owner[tensor] = use;
                l->storage[tensor] = weights_storage(l, &l->uses[use]);
            }
        }
    }
    return 0;
}

struct weight_use *weights_use(struct lowering *l, int node, int operand)
{
    return &l->uses[weights_add_use(l, node, operand)];
}

bool weights_gathered(const struct lowering *l, const struct weight_use *use)
{
    const struct weight_use *owner = weights_owner(l, use->tensor);
    return weights_zero(l, owner) == 3 && owner->stage == use->stage &&
           !placement_equal(&use->compute, &l->storage[use->tensor]);
}

/* Is the gradient complete after at most one all-reduce in place? */
static bool gradient_stays(const struct lowering *l, const struct weight_use *use)
{
    struct placement settled = placement_settled(&use->leaving);
    return weights_owner(l, use->tensor)->stage == use->stage &&
           placement_equal(&settled, &l->storage[use->tensor]);
}

/* Is the gradient reduced to its shard in every micro-batch, block by block? */
static bool gradient_scatters(const struct lowering *l, const struct weight_use *use)
{
    const struct weight_use *owner = weights_owner(l, use->tensor);
    return weights_zero(l, owner) >= 2 && owner->stage == use->stage && !gradient_stays(l, use);
}

/* The bucket of a use: one for each block and set of axes to reduce over. Added if there is none
 * yet. Uses come block by block, and so do buckets. */
static int gradients_find_bucket(struct lowering *l, const struct weight_use *use)
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

/* Decides where a use's gradient is summed, and adds the buffer for it. */
static void gradients_place(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    struct box box = own_slice(l, &shape, &use->leaving);
    if (gradient_scatters(l, use)) {
        use->shard = weights_state(l, use->tensor, &l->storage[use->tensor]);
        return;
    }
    if (!gradient_stays(l, use)) {
        use->gradient = emit_new(l, REGION_STATE, use->tensor, &box);
        return;
    }
    use->bucket = gradients_find_bucket(l, use);
    struct bucket *bucket = &l->buckets[use->bucket];
    use->gradient = (struct piece){.buffer = bucket->buffer, .offset = bucket->count, .box = box};
    bucket->count += (box_count(&box) + 15) / 16 * 16; /* no two gradients share a cache line */
    l->program->buffers[bucket->buffer].bytes = (uint64_t)bucket->count * ELEMENT_BYTES;
}

static void weights_add_parameter(struct lowering *l, int tensor)
{
    struct program *p = l->program;
    p->parameters =
        grow(p->parameters, p->parameter_count, &p->parameter_capacity, sizeof *p->parameters);
    struct piece master = weights_state(l, tensor, &l->storage[tensor]);
    p->parameters[p->parameter_count++] = (struct parameter){
        .tensor = tensor,
        .box = master.box,
        .master = master.buffer,
        .counted = does_for_all(l, ~placement_split_axes(&l->storage[tensor])),
    };
}

static int compare_tensors(const void *a, const void *b)
{
    return *(const int *)a - ((const struct parameter *)b)->tensor;
}

/* Parameters were added in the order of their tensors. */
static struct piece weights_master(const struct lowering *l, int tensor)
{
    const struct program *p = l->program;
    const struct parameter *parameter =
        bsearch(&tensor, p->parameters, p->parameter_count, sizeof *p->parameters, compare_tensors);
    return (struct piece){.buffer = parameter->master, .box = parameter->box};
}

/* The metrics belong to no block: they are part of a whole program, and of PART_BASE. */
static bool weights_have_metrics(const struct lowering *l)
{
    return !l->part || l->part->kind == PART_BASE;
}

void weights_buffers(struct lowering *l)
{
    struct program *p = l->program;
    l->block = -1;
    p->metrics = emit_buffer(l, REGION_STATE, weights_have_metrics(l) ? METRICS : 0, -1);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        if (l->owner[t] >= 0 && weights_here(l, weights_owner(l, (int)t)))
            weights_add_parameter(l, (int)t);
    for (size_t u = 0; u < l->use_count; u++)
        if (weights_here(l, &l->uses[u]))
            gradients_place(l, &l->uses[u]);
    for (size_t i = 0; i < p->parameter_count; i++) {
        int64_t count = box_count(&p->parameters[i].box);
        p->parameters[i].first = emit_buffer(l, REGION_STATE, count, p->parameters[i].tensor);
        p->parameters[i].second = emit_buffer(l, REGION_STATE, count, p->parameters[i].tensor);
    }
}

/* What kernels read: the master itself, or, if the graph computes with narrower elements, a copy
 * that is made every step. */
static struct piece weights_narrow(struct lowering *l, int tensor)
{
    struct piece master = weights_master(l, tensor);
    if (l->graph->element_bytes == ELEMENT_BYTES)
        return master;
    struct piece copy = emit_new(l, REGION_TRANSIENT, tensor, &master.box);
    emit_copy(l, &master, &copy, &master.box);
    weights_keep(l, &copy);
    return copy;
}

/* Brings the weight from its owner to this use. */
static int weights_travel_to(struct lowering *l, struct weight_use *use)
{
    const struct weight_use *owner = weights_owner(l, use->tensor);
    const struct placement *storage = &l->storage[use->tensor];
    struct shape shape = tensor_shape(l, use->tensor);
    struct piece piece = {0};
    int rc = 0;
    if (weights_here(l, owner))
        piece = l->homes[use->tensor].piece;
    emit_beside(l);
    if (owner->stage != use->stage)
        move_across(l, &shape, use->tensor, PURPOSE_WEIGHT, (int)(use - l->uses), owner->stage,
                    storage, use->stage, &use->compute, &piece);
    else if (weights_here(l, use))
        rc = move_within(l, &shape, use->tensor, storage, &use->compute, &piece);
    emit_at_once(l);
    if (rc < 0)
        return error_prefix(l->err, rc, "weight %s", l->graph->tensors[use->tensor].name);
    if (weights_here(l, use)) {
        use->weight = piece;
        weights_keep(l, &piece);
    }
    return 0;
}

int weights_travel(struct lowering *l)
{
    int block = -1;
    emit_section(l, SECTION_WEIGHTS);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        if (l->owner[t] >= 0 && weights_here(l, weights_owner(l, (int)t)))
            l->homes[t] = (struct held){(int)t, l->storage[t], weights_narrow(l, (int)t)};
    for (size_t u = 0; u < l->use_count; u++) {
        if (weights_gathered(l, &l->uses[u]))
            continue;
        if (l->graph->nodes[l->uses[u].node].block != block)
            emit_room(l, -1); /* so that a block waits for its own weights only */
        block = l->graph->nodes[l->uses[u].node].block;
        int rc = weights_travel_to(l, &l->uses[u]);
        if (rc < 0)
            return rc;
    }
    if (weights_have_metrics(l))
        emit_clear(l, l->program->metrics, METRICS);
    return 0;
}

void gradients_clear(struct lowering *l)
{
    emit_section(l, SECTION_CLEAR);
    for (size_t b = 0; b < l->bucket_count; b++)
        emit_clear(l, l->buckets[b].buffer, l->buckets[b].count);
    for (size_t u = 0; u < l->use_count; u++) {
        const struct weight_use *use = &l->uses[u];
        const struct piece *sum = gradient_scatters(l, use) ? &use->shard : &use->gradient;
        if (weights_here(l, use) && use->bucket < 0)
            emit_clear(l, sum->buffer, box_count(&sum->box));
    }
}

/* Calls call() once with each use of this block whose gradient is scattered. */
static int gradients_each_scattered(struct lowering *l, int block,
                                    int (*call)(struct lowering *l, struct weight_use *use))
{
    const struct block *b = &l->graph->blocks[block];
    bool *seen = xcalloc(l->use_count, sizeof *seen);
    int rc = 0;
    for (int n = b->node_first; n < b->node_first + b->node_count; n++) {
        const struct operation *operation = l->graph->nodes[n].operation;
        for (int i = operation->input_count; i < operation_output(operation) && rc == 0; i++) {
            struct weight_use *use = weights_use(l, n, i);
            if (gradient_scatters(l, use) && !seen[use - l->uses])
                rc = call(l, use);
            seen[use - l->uses] = true;
        }
    }
    free(seen);
    return rc;
}

static int gradient_open(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    struct box box = own_slice(l, &shape, &use->leaving);
    emit_beside(l);
    use->gradient = emit_new(l, REGION_TRANSIENT, use->tensor, &box);
    emit_at_once(l);
    emit_clear(l, use->gradient.buffer, box_count(&box));
    return 0;
}

static int gradient_scatter(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    int rc = move_within(l, &shape, use->tensor, &use->leaving, &l->storage[use->tensor],
                         &use->gradient);
    return rc < 0 ? error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[use->tensor].name)
                  : 0;
}

static int gradient_add(struct lowering *l, struct weight_use *use)
{
    emit_add(l, &use->gradient, &use->shard);
    return 0;
}

void gradients_open_block(struct lowering *l, int block)
{
    gradients_each_scattered(l, block, gradient_open);
}

int gradients_close_block(struct lowering *l, int block)
{
    emit_beside(l);
    int rc = gradients_each_scattered(l, block, gradient_scatter);
    if (rc == 0)
        rc = gradients_each_scattered(l, block, gradient_add);
    emit_at_once(l);
    return rc;
}

/* Brings the gradient of one use, fully reduced, to the owner's storage placement. On the owner's
 * stage *piece is the result; another stage sends. */
static int gradient_settle(struct lowering *l, size_t index, struct piece *piece)
{
    struct weight_use *use = &l->uses[index];
    const struct weight_use *owner = weights_owner(l, use->tensor);
    const struct placement *storage = &l->storage[use->tensor];
    struct shape shape = tensor_shape(l, use->tensor);
    *piece = gradient_scatters(l, use) ? use->shard : use->gradient;
    if (owner->stage == use->stage) {
        if (!weights_here(l, use) || use->bucket >= 0 || gradient_scatters(l, use))
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
static void gradients_reduce_buckets(struct lowering *l, int block, size_t *end)
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
static int gradients_unite(struct lowering *l, int tensor, struct piece *sum)
{
    for (int u = l->owner[tensor]; u >= 0; u = l->uses[u].next) {
        struct piece piece;
        int rc = gradient_settle(l, (size_t)u, &piece);
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
static int gradients_reduce_block(struct lowering *l, int block, size_t *buckets,
                                  struct piece *gradients)
{
    const struct block *b = &l->graph->blocks[block];
    int rc = 0;
    emit_beside(l);
    emit_room(l, -1);
    gradients_reduce_buckets(l, block, buckets);
    for (int n = b->node_first; n < b->node_first + b->node_count; n++) {
        const struct node *node = &l->graph->nodes[n];
        for (int i = node->operation->input_count; i < operation_output(node->operation); i++) {
            int tensor = node->operands[i];
            if (rc == 0 && l->owner[tensor] >= 0 && weights_owner(l, tensor)->node == n)
                rc = gradients_unite(l, tensor, &gradients[tensor]);
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
        rc = gradients_reduce_block(l, block, &buckets, gradients);
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

void weights_update(struct lowering *l)
{
    struct program *p = l->program;
    emit_section(l, SECTION_METRICS);
    struct piece metrics = {.buffer = p->metrics, .box = {.dims = 1, .high = {METRICS}}};
    if (weights_have_metrics(l))
        emit_all_reduce(l, emit_group_all(l), REDUCTION_SUM, &metrics);
    emit_section(l, SECTION_UPDATE);
    for (size_t i = 0; i < p->parameter_count; i++) {
        emit(l, INSTRUCTION_UPDATE)->parameter = (int)i;
        emit_piece(l, 0, &p->parameters[i].gradient);
        emit_use(l, p->parameters[i].master);
        emit_use(l, p->parameters[i].first);
        emit_use(l, p->parameters[i].second);
    }
}
