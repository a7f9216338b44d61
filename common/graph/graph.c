/* graph.c - building a model's graph, counting its elements, hashing it. */
#include "common/graph/graph.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <stdlib.h>

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

static int add_tensor(struct graph *graph, char *name, const char *dims, enum tensor_kind kind)
{
    graph->tensors =
        grow(graph->tensors, graph->tensor_count, &graph->tensor_capacity, sizeof *graph->tensors);
    graph->tensors[graph->tensor_count] = (struct tensor){
        .name = name,
        .dims = dims,
        .kind = kind,
        .producer = -1,
        .block = (int)graph->block_count - 1,
    };
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

int graph_data(struct graph *graph, const char *name, const char *dims, bool targets)
{
    int tensor = add_tensor(graph, xstrdup(name), dims, TENSOR_DATA);
    graph->tensors[tensor].targets = targets;
    return tensor;
}

int graph_weight(struct graph *graph, const char *name, const char *dims, struct initializer with,
                 bool decays)
{
    char *whole = xasprintf("%s.%s", open_block(graph)->name, name);
    int tensor = add_tensor(graph, whole, dims, TENSOR_WEIGHT);
    graph->tensors[tensor].initializer = with;
    graph->tensors[tensor].decays = decays;
    return tensor;
}

int graph_node(struct graph *graph, const struct operation *operation, const char *output,
               const int *operands)
{
    struct block *block = open_block(graph);
    struct node node = {.operation = operation,
                        .block = (int)graph->block_count - 1,
                        .epsilon = graph->epsilon,
                        .rotation = graph->rotation};
    int last = operation_output(operation);
    for (int i = 0; i < last; i++) {
        assert(operands[i] >= 0);
        node.operands[i] = operands[i];
    }
    char *name = xasprintf("%s.%s", block->name, output);
    int tensor = add_tensor(graph, name, operation->dims[last],
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

struct sizes graph_sizes(const struct graph *graph, int64_t batch)
{
    struct sizes sizes = graph->sizes;
    sizes_set(&sizes, 'b', batch);
    return sizes;
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
    for (int i = 0; i < 26; i++)
        hash = hash_number(hash, (uint64_t)graph->sizes.of[i]);
    hash = hash_number(hash, (uint64_t)graph->element_bytes);
    for (size_t i = 0; i < graph->tensor_count; i++) {
        const struct tensor *tensor = &graph->tensors[i];
        hash = hash_text(hash, tensor->name);
        hash = hash_text(hash, tensor->dims);
        hash = hash_number(hash, (uint64_t)tensor->kind);
        hash = hash_number(hash, (uint64_t)tensor->decays << 1 | tensor->targets);
        hash = hash_float(hash, tensor->initializer.mean);
        hash = hash_float(hash, tensor->initializer.deviation);
    }
    for (size_t n = 0; n < graph->node_count; n++) {
        hash = hash_text(hash, graph->nodes[n].operation->name);
        hash = hash_float(hash, graph->nodes[n].epsilon);
        hash = hash_rotation(hash, &graph->nodes[n].rotation);
        for (int i = 0; i < operation_operands(graph->nodes[n].operation); i++)
            hash = hash_number(hash, (uint64_t)graph->nodes[n].operands[i]);
    }
    return hash;
}
