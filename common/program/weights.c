/* weights.c - weights to their users once per step, gradients to the optimizer once per step.
 *
 * The first user of a weight owns it: its stage keeps master, moments and the finished gradient
 * in the storage placement, where `zero` appends the axes over which this weight's gradient is
 * partial, minor-most, to the first dim. Every other way in which a stage uses the weight is a
 * copy that travels there, and a gradient that travels back. */
#include "common/program/lowering.h"

#include "common/base/memory.h"

#include <stdlib.h>

static int add_use(struct lowering *l, int node, int operand)
{
    const struct node *n = &l->graph->nodes[node];
    int tensor = n->operands[operand], stage = l->plan->blocks[n->block].stage;
    const struct placement *compute = &l->signatures[node].operand[operand];
    const struct placement *leaving = &l->signatures[node].gradient[operand];
    for (size_t i = 0; i < l->use_count; i++)
        if (l->uses[i].tensor == tensor && l->uses[i].stage == stage &&
            placement_equal(&l->uses[i].compute, compute) &&
            placement_equal(&l->uses[i].leaving, leaving))
            return (int)i;
    l->uses = grow(l->uses, l->use_count, &l->use_capacity, sizeof *l->uses);
    l->uses[l->use_count] = (struct weight_use){.tensor = tensor,
                                                .stage = stage,
                                                .node = node,
                                                .compute = *compute,
                                                .leaving = *leaving,
                                                .bucket = -1};
    return (int)l->use_count++;
}

static int zero_of(const struct lowering *l, const struct weight_use *owner)
{
    return l->plan->blocks[l->graph->nodes[owner->node].block].zero;
}

static struct placement storage_placement(const struct lowering *l, const struct weight_use *use)
{
    struct placement storage = placement_settled(&use->leaving);
    int axes = stage_mesh(l, use->stage)->axes;
    for (int axis = axes - 1; axis >= 0 && zero_of(l, use) > 0; axis--)
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
            int use = add_use(l, (int)n, i), tensor = node->operands[i];
            if (l->owner[tensor] < 0) {
                l->owner[tensor] = use;
                l->storage[tensor] = storage_placement(l, &l->uses[use]);
            }
        }
    }
    return 0;
}

struct weight_use *weights_use(struct lowering *l, int node, int operand)
{
    return &l->uses[add_use(l, node, operand)];
}

static bool is_mine(const struct lowering *l, const struct weight_use *use)
{
    return use->stage == l->stage;
}

static const struct weight_use *owner_of(const struct lowering *l, int tensor)
{
    return &l->uses[l->owner[tensor]];
}

/* Is the gradient finished where it is by one all-reduce, or by nothing? */
static bool stays(const struct lowering *l, const struct weight_use *use)
{
    struct placement settled = placement_settled(&use->leaving);
    return owner_of(l, use->tensor)->stage == use->stage &&
           placement_equal(&settled, &l->storage[use->tensor]);
}

/* Is the gradient reduced to its shard in every micro-batch, block by block? */
static bool scatters(const struct lowering *l, const struct weight_use *use)
{
    const struct weight_use *owner = owner_of(l, use->tensor);
    return zero_of(l, owner) >= 2 && owner->stage == use->stage && !stays(l, use);
}

bool weights_gathered(const struct lowering *l, const struct weight_use *use)
{
    const struct weight_use *owner = owner_of(l, use->tensor);
    return zero_of(l, owner) == 3 && owner->stage == use->stage &&
           !placement_equal(&use->compute, &l->storage[use->tensor]);
}

static struct piece state_piece(struct lowering *l, int tensor, const struct placement *placement)
{
    struct shape shape = tensor_shape(l, tensor);
    struct box box = placement_slice(l->mesh, &shape, placement, l->inside);
    return emit_new(l, REGION_STATE, tensor, &box);
}

static void add_parameter(struct lowering *l, int tensor)
{
    struct program *p = l->program;
    p->parameters =
        grow(p->parameters, p->parameter_count, &p->parameter_capacity, sizeof *p->parameters);
    struct piece master = state_piece(l, tensor, &l->storage[tensor]);
    p->parameters[p->parameter_count++] = (struct parameter){
        .tensor = tensor,
        .storage = l->storage[tensor],
        .box = master.box,
        .master = master.buffer,
        .counted = placement_first(l->mesh, &l->storage[tensor], l->inside),
    };
}

static const struct parameter *find_parameter(const struct lowering *l, int tensor)
{
    for (size_t i = 0; i < l->program->parameter_count; i++)
        if (l->program->parameters[i].tensor == tensor)
            return &l->program->parameters[i];
    return NULL;
}

static struct piece master_piece(const struct lowering *l, int tensor)
{
    const struct parameter *parameter = find_parameter(l, tensor);
    return (struct piece){.buffer = parameter->master, .box = parameter->box};
}

/* Gradients that one all-reduce finishes lie side by side: a bucket for each set of axes. */
static void place_gradient(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    struct box box = placement_slice(l->mesh, &shape, &use->leaving, l->inside);
    if (scatters(l, use)) {
        use->shard = state_piece(l, use->tensor, &l->storage[use->tensor]);
        return;
    }
    if (!stays(l, use)) {
        use->gradient = emit_new(l, REGION_STATE, use->tensor, &box);
        return;
    }
    size_t b = 0;
    while (b < l->bucket_count && l->buckets[b].axes != use->leaving.partial)
        b++;
    if (b == l->bucket_count) {
        l->buckets[b] = (struct bucket){.axes = use->leaving.partial,
                                        .buffer = emit_buffer(l, REGION_STATE, 0, -1)};
        l->bucket_count++;
    }
    struct bucket *bucket = &l->buckets[b];
    use->bucket = (int)b;
    use->gradient = (struct piece){.buffer = bucket->buffer, .offset = bucket->count, .box = box};
    bucket->count += (box_count(&box) + 15) / 16 * 16; /* every gradient on its own cache lines */
    l->program->buffers[bucket->buffer].bytes = (uint64_t)bucket->count * ELEMENT_BYTES;
}

/* A program's metrics are no block's: they are lowered with the whole, or by themselves. */
static bool has_metrics(const struct lowering *l)
{
    return !l->part || l->part->kind == PART_BASE;
}

void weights_buffers(struct lowering *l)
{
    struct program *p = l->program;
    l->block = -1;
    p->metrics = emit_buffer(l, REGION_STATE, has_metrics(l) ? METRICS : 0, -1);
    for (size_t t = 0; t < l->graph->tensor_count; t++)
        if (l->owner[t] >= 0 && is_mine(l, owner_of(l, (int)t)))
            add_parameter(l, (int)t);
    for (size_t u = 0; u < l->use_count; u++)
        if (is_mine(l, &l->uses[u]))
            place_gradient(l, &l->uses[u]);
    for (size_t i = 0; i < p->parameter_count; i++) {
        int64_t count = box_count(&p->parameters[i].box);
        p->parameters[i].first = emit_buffer(l, REGION_STATE, count, p->parameters[i].tensor);
        p->parameters[i].second = emit_buffer(l, REGION_STATE, count, p->parameters[i].tensor);
    }
}

/* What a move made stays for the whole step. */
static void keep(struct lowering *l, const struct piece *piece)
{
    l->program->buffers[piece->buffer].region = REGION_STATE;
}

static void clear(struct lowering *l, int buffer, int64_t count)
{
    struct piece piece = {.buffer = buffer, .box = {.dims = 1, .high = {count}}};
    emit(l, INSTRUCTION_CLEAR);
    emit_piece(l, 0, &piece);
}

int weights_travel(struct lowering *l)
{
    emit_section(l, SECTION_WEIGHTS);
    for (size_t u = 0; u < l->use_count; u++) {
        struct weight_use *use = &l->uses[u];
        const struct weight_use *owner = owner_of(l, use->tensor);
        const struct placement *storage = &l->storage[use->tensor];
        struct shape shape = tensor_shape(l, use->tensor);
        struct piece piece = {0};
        int rc = 0;
        if (is_mine(l, owner)) {
            piece = master_piece(l, use->tensor);
            l->homes[use->tensor] = (struct held){use->tensor, *storage, piece};
        }
        if (weights_gathered(l, use))
            continue;
        if (owner->stage != use->stage)
            move_across(l, &shape, use->tensor, PURPOSE_WEIGHT, (int)u, owner->stage, storage,
                        use->stage, &use->compute, &piece);
        else if (is_mine(l, use))
            rc = move_within(l, &shape, use->tensor, storage, &use->compute, &piece);
        if (rc < 0)
            return error_prefix(l->err, rc, "weight %s", l->graph->tensors[use->tensor].name);
        if (is_mine(l, use)) {
            use->weight = piece;
            keep(l, &piece);
        }
    }
    if (has_metrics(l))
        clear(l, l->program->metrics, METRICS);
    return 0;
}

void weights_clear(struct lowering *l)
{
    emit_section(l, SECTION_CLEAR);
    for (size_t b = 0; b < l->bucket_count; b++)
        clear(l, l->buckets[b].buffer, l->buckets[b].count);
    for (size_t u = 0; u < l->use_count; u++) {
        const struct weight_use *use = &l->uses[u];
        const struct piece *sum = scatters(l, use) ? &use->shard : &use->gradient;
        if (is_mine(l, use) && use->bucket < 0)
            clear(l, sum->buffer, box_count(&sum->box));
    }
}

/* The use is one of this block's; calls with each, once. */
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
    struct box box = placement_slice(l->mesh, &shape, &use->leaving, l->inside);
    use->gradient = emit_new(l, REGION_TRANSIENT, use->tensor, &box);
    clear(l, use->gradient.buffer, box_count(&box));
    return 0;
}

static int close_gradient(struct lowering *l, struct weight_use *use)
{
    struct shape shape = tensor_shape(l, use->tensor);
    struct piece piece = use->gradient;
    int rc = move_within(l, &shape, use->tensor, &use->leaving, &l->storage[use->tensor], &piece);
    if (rc < 0)
        return error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[use->tensor].name);
    emit_add(l, &piece, &use->shard);
    return 0;
}

void weights_open_block(struct lowering *l, int block)
{
    each_scattered(l, block, open_gradient);
}

int weights_close_block(struct lowering *l, int block)
{
    return each_scattered(l, block, close_gradient);
}

/* One user's gradient, finished, in the owner's storage placement. On the owner's stage `piece`
 * is the result; a stage that only uses the weight sends. */
static int settle(struct lowering *l, size_t index, struct piece *piece)
{
    struct weight_use *use = &l->uses[index];
    const struct weight_use *owner = owner_of(l, use->tensor);
    const struct placement *storage = &l->storage[use->tensor];
    struct shape shape = tensor_shape(l, use->tensor);
    *piece = scatters(l, use) ? use->shard : use->gradient;
    if (owner->stage == use->stage) {
        if (!is_mine(l, use) || use->bucket >= 0 || scatters(l, use))
            return 0;
        int rc = move_within(l, &shape, use->tensor, &use->leaving, storage, piece);
        if (rc == 0)
            keep(l, piece);
        return rc;
    }
    struct placement settled = placement_settled(&use->leaving);
    if (is_mine(l, use)) {
        int rc = move_within(l, &shape, use->tensor, &use->leaving, &settled, piece);
        if (rc < 0)
            return rc;
    }
    move_across(l, &shape, use->tensor, PURPOSE_GRADIENT, (int)index, use->stage, &settled,
                owner->stage, storage, piece);
    return 0;
}

static void reduce_buckets(struct lowering *l)
{
    for (size_t b = 0; b < l->bucket_count; b++) {
        struct piece whole = {.buffer = l->buckets[b].buffer,
                              .box = {.dims = 1, .high = {l->buckets[b].count}}};
        if (l->buckets[b].axes)
            emit_all_reduce(l, emit_group(l, l->buckets[b].axes), REDUCTION_SUM, &whole);
    }
}

int weights_reduce(struct lowering *l)
{
    struct program *p = l->program;
    struct piece *gradients = xcalloc(l->graph->tensor_count, sizeof *gradients);
    emit_section(l, SECTION_REDUCE);
    reduce_buckets(l);
    int rc = 0;
    for (size_t u = 0; u < l->use_count && rc == 0; u++) {
        struct weight_use *use = &l->uses[u];
        struct piece piece;
        rc = settle(l, u, &piece);
        if (rc < 0)
            error_prefix(l->err, rc, "gradient of %s", l->graph->tensors[use->tensor].name);
        else if (!is_mine(l, owner_of(l, use->tensor)))
            continue;
        else if (owner_of(l, use->tensor) == use)
            gradients[use->tensor] = piece;
        else
            emit_add(l, &piece, &gradients[use->tensor]);
    }
    for (size_t i = 0; i < p->parameter_count && rc == 0; i++) {
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
    if (has_metrics(l))
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
