/* product.h - what all matrix products have in common, the kernel first: it contracts the dims that
 * x and w share and y lacks. To be followed by the cells, where a role's own file does not have
 * them. */
#ifndef COMMON_GRAPH_OPERATIONS_PRODUCT_H
#define COMMON_GRAPH_OPERATIONS_PRODUCT_H

#include "common/graph/operation.h"

/* Two products backward: for x and for w. */
#define MATRIX_PRODUCT(operation_name)                                                             \
    .name = operation_name, .kernel = "linear", .input_count = 1, .saved = 1 << 0,                 \
    .phases = {1, 1}, .flops = operation_matmul_flops, .backward_flops = 2

/* y = x w. */
#define PRODUCT(operation_name, x, w, y)                                                           \
    MATRIX_PRODUCT(operation_name), .weight_count = 1, .dims = {x, w, y}

/* y = x w + b; where y is an unfinished sum, one rank adds b. */
#define PRODUCT_AND_BIAS(operation_name, x, w, b, y)                                               \
    MATRIX_PRODUCT(operation_name), .weight_count = 2, .dims = {x, w, b, y}, .once = 1 << 2

#endif
