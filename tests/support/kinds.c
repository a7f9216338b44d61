/* kinds.c - collects the nodes of a small model of every family. */
#include "tests/support/kinds.h"

#include "common/models/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KINDS_MAX 64

static struct node kinds[KINDS_MAX];
static int count;

static bool same(const struct node *a, const struct node *b)
{
    bool equal = a->operation == b->operation && a->constant == b->constant;
    for (int i = 0; equal && i < operation_operands(a->operation); i++)
        equal = strcmp(a->dims[i], b->dims[i]) == 0;
    return equal;
}

static void add(const struct node *node)
{
    for (int i = 0; i < count; i++)
        if (same(&kinds[i], node))
            return;
    assert(count < KINDS_MAX);
    kinds[count++] = *node;
}

static void collect(void)
{
    for (int m = 0; models[m] && count < KINDS_MAX; m++) {
        struct job_model config = {.family = models[m]->family,
                                   .layers = 1,
                                   .hidden = 8,
                                   .heads = 2,
                                   .seq = 4,
                                   .vocab = 8,
                                   .ffn = 8,
                                   .patch = strcmp(models[m]->family, "vit") == 0 ? 2 : 0};
        struct error err = {""};
        struct graph *graph;
        if (model_build(&config, ELEMENT_F32, &graph, &err) < 0) {
            fprintf(stderr, "%s: %s\n", config.family, err.text);
            abort();
        }
        for (size_t n = 0; n < graph->node_count; n++)
            add(&graph->nodes[n]);
        graph_destroy(graph);
    }
}

int kind_count(void)
{
    if (count == 0)
        collect();
    return count;
}

const struct node *kind_at(int index)
{
    assert(index < kind_count());
    return &kinds[index];
}

const struct node *kind_find(const char *name)
{
    for (int i = 0; i < kind_count(); i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    fprintf(stderr, "no family has a node '%s'\n", name);
    abort();
}

struct node kind_sized(const struct node *kind, const struct sizes *sizes)
{
    struct node node = *kind;
    node.sizes = *sizes;
    if (sizes_get(sizes, 't') == 0)
        sizes_set(&node.sizes, 't', sizes_get(sizes, 's'));
    return node;
}

struct box box_along(const char *dims, const struct sizes *sizes)
{
    struct box box = {.dims = (int)strlen(dims)};
    for (int i = 0; i < box.dims; i++)
        box.high[i] = sizes_get(sizes, dims[i]);
    return box;
}

int slot_count(const struct operation *operation, bool gradient)
{
    return operation_operands(operation) +
           operation->statistic_count[gradient ? BACKWARD : FORWARD];
}

const char *slot_dims(const struct node *node, bool gradient, int slot, char out[DIMS_MAX + 1])
{
    const struct operation *operation = node->operation;
    int operands = operation_operands(operation);
    if (slot < operands)
        return node->dims[slot];
    node_statistic_dims(
        node, &operation->statistics[gradient ? BACKWARD : FORWARD][slot - operands], out);
    return out;
}

bool slot_is_given(const struct operation *operation, bool gradient, int slot)
{
    int output = operation_output(operation);
    return gradient ? slot == output : slot < output;
}
