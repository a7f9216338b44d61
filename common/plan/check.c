/* check.c - checks that a plan fits a model and that lowering accepts it. */
#include "common/plan/plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

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
        rc = check_chain(plan, err);
    if (rc < 0)
        return rc;
    for (int i = 0; i < plan->block_count && rc == 0; i++)
        rc = plan_check_block(plan, graph, i, err);
    return rc;
}
