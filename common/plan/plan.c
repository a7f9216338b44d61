/* plan.c - creating, copying, comparing, naming and describing plans; and whether one fits a model
 * and lowering accepts it. */
#include "common/plan/plan.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const recompute_names[RECOMPUTES] = {"none", "selective", "full"};

struct plan *plan_create(int stages, int blocks)
{
    struct plan *plan = xcalloc(1, sizeof *plan);
    plan->stages = xcalloc((size_t)stages, sizeof *plan->stages);
    plan->blocks = xcalloc((size_t)blocks, sizeof *plan->blocks);
    plan->stage_count = stages;
    plan->block_count = blocks;
    plan->micro_batches = 1;
    plan->micro_batch_samples = 1;
    plan->schedule = schedules[0];
    plan->overlap = true;
    return plan;
}

void plan_destroy(struct plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        for (int rank = 0; stage->devices && rank < mesh_count(&stage->mesh); rank++)
            free(stage->devices[rank]);
        free(stage->devices);
        free(stage->weights);
    }
    free(plan->stages);
    free(plan->blocks);
    free(plan);
}

struct plan *plan_copy(const struct plan *plan)
{
    struct plan *copy = plan_create(plan->stage_count, plan->block_count);
    struct plan_stage *stages = copy->stages;
    struct plan_block *blocks = copy->blocks;
    memcpy(stages, plan->stages, (size_t)plan->stage_count * sizeof *stages);
    memcpy(blocks, plan->blocks, (size_t)plan->block_count * sizeof *blocks);
    *copy = *plan;
    copy->stages = stages;
    copy->blocks = blocks;
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *from = &plan->stages[i];
        size_t count = (size_t)mesh_count(&from->mesh);
        if (from->weights) {
            stages[i].weights = xcalloc(count, sizeof *from->weights);
            memcpy(stages[i].weights, from->weights, count * sizeof *from->weights);
            stages[i].mesh.weights = stages[i].weights;
        }
        if (from->devices) {
            stages[i].devices = xcalloc(count, sizeof *from->devices);
            for (size_t rank = 0; rank < count; rank++)
                stages[i].devices[rank] = xstrdup(from->devices[rank]);
        }
    }
    return copy;
}

int plan_ranks(const struct plan *plan)
{
    return plan_stage_rank(plan, plan->stage_count);
}

int64_t plan_global_batch(const struct plan *plan)
{
    return plan->micro_batches * plan->micro_batch_samples;
}

int plan_stage_rank(const struct plan *plan, int stage)
{
    int rank = 0;
    for (int i = 0; i < stage; i++)
        rank += mesh_count(&plan->stages[i].mesh);
    return rank;
}

int plan_rank_stage(const struct plan *plan, int rank, int *inside)
{
    int stage = 0;
    while (rank >= mesh_count(&plan->stages[stage].mesh))
        rank -= mesh_count(&plan->stages[stage++].mesh);
    *inside = rank;
    return stage;
}

const char *plan_device(const struct plan *plan, int rank)
{
    int inside, stage = plan_rank_stage(plan, rank, &inside);
    return plan->stages[stage].devices ? plan->stages[stage].devices[inside] : NULL;
}

void plan_forget_devices(struct plan *plan)
{
    for (int i = 0; i < plan->stage_count; i++) {
        struct plan_stage *stage = &plan->stages[i];
        for (int rank = 0; stage->devices && rank < mesh_count(&stage->mesh); rank++)
            free(stage->devices[rank]);
        free(stage->devices);
        stage->devices = NULL;
    }
}

int plan_degree(const struct plan *plan, int block, const char *const *names)
{
    const struct mesh *mesh = &plan->stages[plan->blocks[block].stage].mesh;
    int degree = 1;
    for (int axis = 0; axis < mesh->axes; axis++)
        for (int i = 0; names[i]; i++)
            if (strcmp(plan->blocks[block].roles[axis]->name, names[i]) == 0)
                degree *= mesh->size[axis];
    return degree;
}

void plan_name(struct plan *plan)
{
    uint64_t hash = hash_number(HASH_START, (uint64_t)plan->micro_batches);
    hash = hash_number(hash, (uint64_t)plan->micro_batch_samples);
    hash = hash_text(hash, plan->schedule->name);
    if (!plan->overlap)
        hash = hash_text(hash, "one queue");
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        hash = hash_number(hash, (uint64_t)stage->block_count);
        for (int axis = 0; axis < stage->mesh.axes; axis++)
            hash = hash_number(hash, (uint64_t)stage->mesh.size[axis]);
        for (int rank = 0; rank < mesh_count(&stage->mesh); rank++) {
            hash = hash_number(hash, stage->weights ? (uint64_t)stage->weights[rank] : 1);
            hash = hash_text(hash, stage->devices ? stage->devices[rank] : "");
        }
    }
    for (int i = 0; i < plan->block_count; i++) {
        const struct plan_block *block = &plan->blocks[i];
        hash = hash_number(hash, (uint64_t)block->zero);
        hash = hash_number(hash, (uint64_t)block->recompute);
        for (int axis = 0; axis < plan->stages[block->stage].mesh.axes; axis++)
            hash = hash_text(hash, block->roles[axis]->name);
    }
    snprintf(plan->id, sizeof plan->id, "p-%06llx",
             (unsigned long long)(hash ^ hash >> 32) & 0xffffff);
}

static bool same_stage(const struct plan_stage *a, const struct plan_stage *b)
{
    if (a->block_count != b->block_count || a->mesh.axes != b->mesh.axes)
        return false;
    for (int axis = 0; axis < a->mesh.axes; axis++)
        if (a->mesh.size[axis] != b->mesh.size[axis])
            return false;
    for (int rank = 0; rank < mesh_count(&a->mesh); rank++) {
        if ((a->weights ? a->weights[rank] : 1) != (b->weights ? b->weights[rank] : 1))
            return false;
        if (strcmp(a->devices ? a->devices[rank] : "", b->devices ? b->devices[rank] : "") != 0)
            return false;
    }
    return true;
}

static bool same_block(const struct plan_block *a, const struct plan_block *b, int axes)
{
    bool same = a->zero == b->zero && a->recompute == b->recompute;
    for (int axis = 0; axis < axes && same; axis++)
        same = a->roles[axis] == b->roles[axis];
    return same;
}

bool plan_same(const struct plan *a, const struct plan *b)
{
    bool same = a->micro_batches == b->micro_batches &&
                a->micro_batch_samples == b->micro_batch_samples && a->schedule == b->schedule &&
                a->overlap == b->overlap && a->stage_count == b->stage_count &&
                a->block_count == b->block_count;
    for (int i = 0; same && i < a->stage_count; i++)
        same = same_stage(&a->stages[i], &b->stages[i]);
    for (int i = 0; same && i < a->block_count; i++)
        same = same_block(&a->blocks[i], &b->blocks[i], a->stages[a->blocks[i].stage].mesh.axes);
    return same;
}

char *plan_print(char *out, size_t size, const struct plan *plan)
{
    /* The middle block stands for all layers. */
    int block = plan->block_count / 2, used = 0;
    const struct mesh *mesh = &plan->stages[plan->blocks[block].stage].mesh;
    used += snprintf(out, size, "pp%d", plan->stage_count);
    for (int i = 0; roles[i] && used >= 0 && (size_t)used < size; i++) {
        int degree = 1;
        for (int axis = 0; axis < mesh->axes; axis++)
            if (plan->blocks[block].roles[axis] == roles[i])
                degree *= mesh->size[axis];
        if (degree > 1)
            used +=
                snprintf(out + used, size - (size_t)used, "·%s%d", roles[i]->short_name, degree);
    }
    static const char *const zeros[] = {"", " zero1", " zero2", " zero3"};
    static const char *const recomputes[] = {"", " selective", " recompute"};
    if ((size_t)used < size)
        snprintf(out + used, size - (size_t)used, "%s%s m%d %s%s", zeros[plan->blocks[block].zero],
                 recomputes[plan->blocks[block].recompute], plan->micro_batches,
                 plan->schedule->name, plan->overlap ? "" : " one queue");
    return out;
}

static int check_counts(const struct plan *plan, const struct graph *graph, struct error *err)
{
    if (plan->block_count != (int)graph->block_count)
        return error_set(err, -EINVAL, "the plan has %d blocks, the model %zu", plan->block_count,
                         graph->block_count);
    if (plan->stage_count < 1 || plan->micro_batches < 1 || plan->micro_batch_samples < 1)
        return error_set(err, -EINVAL,
                         "a plan needs at least one stage, micro-batch and sample; it has %d, %d "
                         "and %lld",
                         plan->stage_count, plan->micro_batches,
                         (long long)plan->micro_batch_samples);
    if (plan->micro_batches > PLAN_MICRO_BATCHES_MAX)
        return error_set(err, -EINVAL, "%d micro-batches are too many; a step has at most %d",
                         plan->micro_batches, PLAN_MICRO_BATCHES_MAX);
    if (plan->micro_batch_samples > PLAN_SAMPLES_MAX / plan->micro_batches)
        return error_set(err, -EINVAL,
                         "%d micro-batches of %lld samples are too many; a step has at most %d "
                         "samples",
                         plan->micro_batches, (long long)plan->micro_batch_samples,
                         PLAN_SAMPLES_MAX);
    return 0;
}

/* *ranks is the number of ranks of the stages before; this stage's are added. */
static int check_mesh(const struct plan_stage *stage, int index, int64_t *ranks, struct error *err)
{
    int64_t count = 1, sum = 0;
    if (stage->mesh.axes < 0 || stage->mesh.axes > AXES_MAX)
        return error_set(err, -EINVAL, "stage %d has %d axes, at most %d are possible", index,
                         stage->mesh.axes, AXES_MAX);
    for (int axis = 0; axis < stage->mesh.axes && count <= PLAN_RANKS_MAX; axis++) {
        if (stage->mesh.size[axis] < 1)
            return error_set(err, -EINVAL, "stage %d, axis %d: size %d is below 1", index, axis,
                             stage->mesh.size[axis]);
        count *= stage->mesh.size[axis];
    }
    *ranks += count;
    if (*ranks > PLAN_RANKS_MAX)
        return error_set(err, -EINVAL, "with stage %d the plan is for more than %d devices", index,
                         PLAN_RANKS_MAX);
    for (int64_t rank = 0; stage->weights && rank < count; rank++) {
        if (stage->weights[rank] < 1)
            return error_set(err, -EINVAL, "stage %d gives rank %lld the weight %d, below 1", index,
                             (long long)rank, stage->weights[rank]);
        sum += stage->weights[rank];
    }
    if (sum > INT_MAX)
        return error_set(err, -EINVAL, "the weights of stage %d add up to %lld; at most %d can be",
                         index, (long long)sum, INT_MAX);
    return 0;
}

static int check_chain(const struct plan *plan, struct error *err)
{
    int next = 0;
    int64_t ranks = 0;
    for (int i = 0; i < plan->stage_count; i++) {
        const struct plan_stage *stage = &plan->stages[i];
        if (stage->block_count < 1)
            return error_set(err, -EINVAL, "stage %d has no blocks", i);
        if (stage->block_first != next)
            return error_set(err, -EINVAL, "stage %d begins with block %d, expected %d", i,
                             stage->block_first, next);
        if (stage->block_count > plan->block_count - next)
            return error_set(err, -EINVAL, "stage %d ends after the model's %d blocks", i,
                             plan->block_count);
        int rc = check_mesh(stage, i, &ranks, err);
        if (rc < 0)
            return rc;
        next += stage->block_count;
        for (int b = stage->block_first; b < next; b++)
            if (plan->blocks[b].stage != i)
                return error_set(err, -EINVAL, "block %d is in stage %d's range but names stage %d",
                                 b, i, plan->blocks[b].stage);
    }
    if (next != plan->block_count)
        return error_set(err, -EINVAL, "the stages hold %d blocks, the model has %d", next,
                         plan->block_count);
    return 0;
}

/* "1, 2, 3, 6": the smallest divisors of a number, at most eight. */
static void print_divisors(char *out, size_t size, int64_t number)
{
    int used = 0, found = 0;
    for (int64_t d = 1; d <= number && d <= PLAN_RANKS_MAX && found < 8 && (size_t)used < size;
         d++) {
        if (number % d == 0)
            used += snprintf(out + used, size - (size_t)used, found++ ? ", %lld" : "%lld",
                             (long long)d);
    }
}

static int check_size(const struct shape *shape, struct error *err)
{
    int64_t count = 1;
    for (int i = 0; i < shape->dims; i++) {
        if (shape->size[i] > PLAN_ELEMENTS_MAX / count)
            return error_set(err, -EINVAL,
                             "a tensor (%s) of more than %lld elements; take more micro-batches or "
                             "a smaller model",
                             shape->dim, (long long)PLAN_ELEMENTS_MAX);
        count *= shape->size[i];
    }
    return 0;
}

/* Lowering carries one tensor from block to block. */
static int check_inputs(const struct graph *graph, const struct node *node, struct error *err)
{
    for (int i = 0; i < node->operation->input_count; i++) {
        const struct tensor *tensor = &graph->tensors[node->operands[i]];
        if (tensor->kind == TENSOR_DATA || tensor->block == node->block ||
            (node->block > 0 && node->operands[i] == graph->blocks[node->block - 1].output))
            continue;
        return error_set(err, -EINVAL,
                         "it reads %s; a block reads what it made itself, data, and the output of "
                         "the block before it",
                         tensor->name);
    }
    return 0;
}

/* Does the block use the output of the one before it, so that a gradient goes back? */
static bool reads_before(const struct graph *graph, int index)
{
    const struct block *block = &graph->blocks[index];
    int before = graph->blocks[index - 1].output;
    for (int n = block->node_first; n < block->node_first + block->node_count; n++)
        for (int i = 0; i < graph->nodes[n].operation->input_count; i++)
            if (graph->nodes[n].operands[i] == before && node_differentiates(&graph->nodes[n], i))
                return true;
    return false;
}

/* What lowering takes for granted of a model: a chain of blocks with the loss at its end. */
static int check_model(const struct graph *graph, struct error *err)
{
    for (int b = 0; b < (int)graph->block_count; b++) {
        const char *name = graph->blocks[b].name;
        if (graph->blocks[b].node_count == 0)
            return error_set(err, -EINVAL, "block %s computes nothing", name);
        if (b > 0 && !reads_before(graph, b))
            return error_set(err, -EINVAL,
                             "block %s computes nothing from %s, the output of the block before it",
                             name, graph->tensors[graph->blocks[b - 1].output].name);
    }
    for (size_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].operation->is_loss != (n + 1 == graph->node_count))
            return error_set(
                err, -EINVAL, "a model computes one loss, last of all; this one computes %s %s",
                graph->nodes[n].name, n + 1 == graph->node_count ? "last" : "before its end");
    return 0;
}

static int check_node(const struct plan *plan, const struct graph *graph, const struct node *node,
                      struct error *err)
{
    const struct plan_block *block = &plan->blocks[node->block];
    const struct mesh *mesh = &plan->stages[block->stage].mesh;
    const char *name = graph->blocks[node->block].name;
    struct signature signature = signature_make(node, block->roles, mesh->axes);
    int rc = check_inputs(graph, node, err);
    if (rc < 0)
        return error_prefix(err, rc, "block %s", name);

    for (int i = 0; i < operation_operands(node->operation); i++) {
        const struct tensor *tensor = &graph->tensors[node->operands[i]];
        struct shape shape = shape_of(tensor, plan->micro_batch_samples);
        char dim, divisors[64] = "";
        int parts;
        rc = check_size(&shape, err);
        if (rc < 0)
            return error_prefix(err, rc, "block %s", name);
        if (placement_divides(mesh, &shape, &signature.operand[i], &dim, &parts))
            continue;
        int64_t size = shape.size[strchr(shape.dim, dim) - shape.dim];
        if (!dim_cuts_equal(dim))
            return error_set(err, -EINVAL, "block %s: %s %lld cannot be divided into %d parts",
                             name, sizes_word(dim), (long long)size, parts);
        print_divisors(divisors, sizeof divisors, size);
        return error_set(err, -EINVAL,
                         "block %s: %s %lld cannot be divided into %d equal parts; %s can", name,
                         sizes_word(dim), (long long)size, parts, divisors);
    }
    return 0;
}

int plan_check_block(const struct plan *plan, const struct graph *graph, int index,
                     struct error *err)
{
    const struct plan_block *block = &plan->blocks[index];
    const struct block *of = &graph->blocks[index];
    for (int axis = 0; axis < plan->stages[block->stage].mesh.axes; axis++)
        if (!block->roles[axis])
            return error_set(err, -EINVAL, "block %s has no role for axis %d", of->name, axis);
    if (block->zero < 0 || block->zero > 3)
        return error_set(err, -EINVAL, "block %s: zero %d is not offered; 0, 1, 2 and 3 are",
                         of->name, block->zero);
    int rc = 0;
    for (int n = of->node_first; n < of->node_first + of->node_count && rc == 0; n++)
        rc = check_node(plan, graph, &graph->nodes[n], err);
    return rc;
}

int plan_check(const struct plan *plan, const struct graph *graph, struct error *err)
{
    int rc = check_counts(plan, graph, err);
    if (rc == 0)
        rc = check_model(graph, err);
    if (rc == 0)
        rc = check_chain(plan, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < plan->block_count && rc == 0; i++)
        rc = plan_check_block(plan, graph, i, err);
    return rc;
}
