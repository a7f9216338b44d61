/* matmul_bound.c - the bound's formula, applied to the matrix products of a block. */
#include "coordinator/planner/report/matmul_bound.h"

#include <math.h>
#include <string.h>

double matmul_bound(double first, double second, double third, int devices)
{
    double m = fmax(first, fmax(second, third)), k = fmin(first, fmin(second, third));
    double n = first + second + third - m - k, p = devices, touched;
    if (p <= m / n)
        touched = (m * n + m * k) / p + n * k;
    else if (p <= m * n / (k * k))
        touched = m * n / p + 2 * sqrt(m * n * k * k / p);
    else
        touched = 3 * pow(m * n * k / p, 2.0 / 3);
    return fmax(0, touched - (m * n + m * k + n * k) / p);
}

struct product {
    int input; /* tensor */
    double rows, inner, columns;
};

/* false: the node is not a product with one of the block's own weights. */
static bool find_product(const struct graph *graph, const struct node *node, int64_t samples,
                         struct product *out)
{
    const struct operation *operation = node->operation;
    int owned = node->operands[operation->input_count];
    if (operation->flops != operation_matmul_flops || operation->weight_count == 0 ||
        graph->tensors[owned].block != node->block)
        return false;
    struct sizes sizes = graph_sizes(graph, samples);
    const char *input = operation->dims[0], *weight = operation->dims[operation->input_count];
    *out = (struct product){node->operands[0], 1, 1, 1};
    for (const char *dim = input; *dim; dim++)
        *(strchr(weight, *dim) ? &out->inner : &out->rows) *= (double)sizes_get(&sizes, *dim);
    for (const char *dim = weight; *dim; dim++)
        if (!strchr(input, *dim))
            out->columns *= (double)sizes_get(&sizes, *dim);
    return true;
}

double matmul_bound_block(const struct graph *graph, int block, int64_t samples, int devices)
{
    const struct block *of = &graph->blocks[block];
    struct product joined = {.input = -1}, one;
    double words = 0;
    for (int n = of->node_first; n < of->node_first + of->node_count; n++) {
        if (!find_product(graph, &graph->nodes[n], samples, &one))
            continue;
        if (one.input == joined.input) {
            joined.columns += one.columns;
            continue;
        }
        if (joined.input >= 0)
            words += matmul_bound(joined.rows, joined.inner, joined.columns, devices);
        joined = one;
    }
    if (joined.input >= 0)
        words += matmul_bound(joined.rows, joined.inner, joined.columns, devices);
    return 2 * words;
}
