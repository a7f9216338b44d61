/* graph.c - building a model's graph, counting its elements, hashing it. */
#include "common/graph/graph.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct graph *graph_create(void)
{
    struct graph *graph = xcalloc(1, sizeof *graph);
    graph->element_bytes = sizeof(float);
    graph->epsilon = 1e-5f;
    graph->rotation = (struct rotation){.base = 10000, .factor = 1};
    return graph;
}

void graph_destroy(struct graph *graph)
{
    if (!graph)
        return;
    for (size_t i = 0; i < graph->tensor_count; i++)
        free(graph->tensors[i].name);
    for (size_t i = 0; i < graph->block_count; i++)
        free(graph->blocks[i].name);
    free(graph->tensors);
    free(graph->nodes);
    free(graph->blocks);
    free(graph);
}

static int add_tensor(struct graph *graph, char *name, const char *dims, const struct sizes *sizes,
                      enum tensor_kind kind)
{
    graph->tensors =
        grow(graph->tensors, graph->tensor_count, &graph->tensor_capacity, sizeof *graph->tensors);
    struct tensor *tensor = &graph->tensors[graph->tensor_count];
    *tensor = (struct tensor){
        .name = name,
        .dims = dims,
        .kind = kind,
        .producer = -1,
        .block = (int)graph->block_count - 1,
    };
    for (int i = 0; dims[i]; i++) {
        assert(i < DIMS_MAX);
        tensor->sizes[i] = sizes_get(sizes, dims[i]);
        assert(dims[i] == 'b' ? tensor->sizes[i] == 0 : tensor->sizes[i] > 0);
    }
    return (int)graph->tensor_count++;
}

static struct block *open_block(struct graph *graph)
{
    assert(graph->block_count > 0);
    return &graph->blocks[graph->block_count - 1];
}

void graph_block(struct graph *graph, const char *name, int type)
{
    graph->blocks =
        grow(graph->blocks, graph->block_count, &graph->block_capacity, sizeof *graph->blocks);
    graph->blocks[graph->block_count++] = (struct block){
        .name = xstrdup(name),
        .type = type,
        .node_first = (int)graph->node_count,
        .output = -1,
    };
    if (type >= graph->type_count)
        graph->type_count = type + 1;
}

void graph_sizes_like(struct graph *graph, const struct tensor *tensor)
{
    for (int i = 0; tensor->dims[i]; i++)
        sizes_set(&graph->sizes, tensor->dims[i], tensor->sizes[i]);
}

int graph_data(struct graph *graph, const char *name, const char *dims, bool targets)
{
    int tensor = add_tensor(graph, xstrdup(name), dims, &graph->sizes, TENSOR_DATA);
    graph->tensors[tensor].targets = targets;
    return tensor;
}

int graph_weight(struct graph *graph, const char *name, const char *dims, struct initializer with,
                 bool decays)
{
    char *whole = xasprintf("%s.%s", open_block(graph)->name, name);
    int tensor = add_tensor(graph, whole, dims, &graph->sizes, TENSOR_WEIGHT);
    graph->tensors[tensor].initializer = with;
    graph->tensors[tensor].decays = decays;
    return tensor;
}

/* Bind the letters of an operand's dims to the sizes that the tensor has there. */
static void bind_letters(struct node *node, int operand, const struct tensor *tensor)
{
    const char *dims = node->dims[operand];
    assert(strlen(dims) == strlen(tensor->dims) && "an operand has as many dims as its tensor");
    for (int i = 0; dims[i]; i++) {
        int64_t bound = sizes_get(&node->sizes, dims[i]);
        assert((bound == 0 || bound == tensor->sizes[i]) && "a letter stands for one size");
        assert((dims[i] == 'b') == (tensor->dims[i] == 'b'));
        sizes_set(&node->sizes, dims[i], tensor->sizes[i]);
    }
}

/* What a family cannot choose otherwise: keys have a letter of their own, and statistics are
 * exchanged along a dim of operand 0. */
static void check_letters(const struct node *node)
{
    const struct operation *operation = node->operation;
    assert(strlen(node->name) < NODE_NAME_SIZE);
    assert(!operation->keys ||
           (strchr(node->dims[1], operation->keys) && !strchr(node->dims[0], operation->keys)));
    assert(!operation->exchange || strpbrk(node->dims[0], operation->exchange));
}

int graph_node_along(struct graph *graph, const char *name, const struct operation *operation,
                     const char *const *dims, const char *output, const int *operands)
{
    struct block *block = open_block(graph);
    struct node node = {.name = name,
                        .operation = operation,
                        .constant = operation->constant,
                        .block = (int)graph->block_count - 1,
                        .epsilon = graph->epsilon,
                        .rotation = graph->rotation};
    int last = operation_output(operation);
    memcpy(node.dims, dims, (size_t)(last + 1) * sizeof *dims);
    for (int i = 0; i < last; i++) {
        assert(operands[i] >= 0 && (size_t)operands[i] < graph->tensor_count);
        node.operands[i] = operands[i];
        bind_letters(&node, i, &graph->tensors[operands[i]]);
        if (graph->tensors[operands[i]].kind == TENSOR_DATA)
            node.constant |= 1u << i;
    }
    check_letters(&node);
    int tensor = add_tensor(graph, xasprintf("%s.%s", block->name, output), dims[last], &node.sizes,
                            operation->is_loss ? TENSOR_LOSS : TENSOR_ACTIVATION);
    node.operands[last] = tensor;
    graph->tensors[tensor].producer = (int)graph->node_count;

    graph->nodes =
        grow(graph->nodes, graph->node_count, &graph->node_capacity, sizeof *graph->nodes);
    graph->nodes[graph->node_count++] = node;
    block->node_count++;
    block->output = tensor;
    return tensor;
}

int graph_node(struct graph *graph, const struct operation *operation, const char *output,
               const int *operands)
{
    assert(operation->dims[0] && "the operation leaves its dims open");
    return graph_node_along(graph, operation->name, operation, operation->dims, output, operands);
}

int64_t tensor_size(const struct tensor *tensor, char dim)
{
    const char *at = strchr(tensor->dims, dim);
    return at ? tensor->sizes[at - tensor->dims] : 0;
}

struct box tensor_box(const struct tensor *tensor, int64_t samples)
{
    struct box box = {.dims = (int)strlen(tensor->dims)};
    for (int i = 0; i < box.dims; i++)
        box.high[i] = tensor->dims[i] == 'b' ? samples : tensor->sizes[i];
    return box;
}

int64_t graph_positions(const struct graph *graph)
{
    for (size_t t = 0; t < graph->tensor_count; t++) {
        int64_t positions = tensor_size(&graph->tensors[t], 's');
        if (graph->tensors[t].kind == TENSOR_DATA && positions > 0)
            return positions;
    }
    return 1;
}

void node_statistic_dims(const struct node *node, const struct statistic *statistic,
                         char out[DIMS_MAX + 1])
{
    int count = 0;
    bool has_last = false;
    for (const char *dim = node->dims[0]; *dim; dim++) {
        has_last = has_last || *dim == statistic->last;
        if (*dim != statistic->last && !strchr(statistic->without, *dim))
            out[count++] = *dim;
    }
    if (has_last)
        out[count++] = statistic->last;
    out[count] = 0;
}

double node_flops(const struct node *node, const struct box *operands, enum direction direction)
{
    const struct operation *operation = node->operation;
    double flops = operation->flops(node, operands);
    if (direction == FORWARD)
        return flops;
    return flops * (operation->backward_flops -
                    (node_differentiates(node, 0) ? 0 : operation->input_flops));
}

static uint64_t hash_float(uint64_t hash, float number)
{
    return hash_bytes(hash, &number, sizeof number);
}

static uint64_t hash_rotation(uint64_t hash, const struct rotation *rotation)
{
    const float numbers[] = {rotation->base, rotation->factor, rotation->low, rotation->high,
                             rotation->places};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        hash = hash_float(hash, numbers[i]);
    return hash;
}

uint64_t graph_hash(const struct graph *graph, uint64_t hash)
{
    hash = hash_number(hash, (uint64_t)graph->element_bytes);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct tensor *tensor = &graph->tensors[i];
        hash = hash_text(hash, tensor->name);
        hash = hash_text(hash, tensor->dims);
        for (int d = 0; tensor->dims[d]; d++)
            hash = hash_number(hash, (uint64_t)tensor->sizes[d]);
        hash = hash_number(hash, (uint64_t)tensor->kind);
        hash = hash_number(hash, (uint64_t)tensor->decays << 1 | tensor->targets);
        hash = hash_float(hash, tensor->initializer.mean);
        hash = hash_float(hash, tensor->initializer.deviation);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        const struct node *node = &graph->nodes[n];
        hash = hash_text(hash, node->operation->name);
        hash = hash_float(hash, node->epsilon);
        hash = hash_rotation(hash, &node->rotation);
        for (int i = 0; i < operation_operands(node->operation); i++) {
            hash = hash_text(hash, node->dims[i]);
            hash = hash_number(hash, (uint64_t)node->operands[i]);
        }
    }
    return hash;
}
