/* product.h - initializers for the operations that are matrix products. All use the kernel
 * "linear", which contracts the dims that x and w share and y lacks. Append `.cells` where the
 * operation is not listed in the roles' own files. */
#ifndef COMMON_GRAPH_OPERATIONS_PRODUCT_H
#define COMMON_GRAPH_OPERATIONS_PRODUCT_H

#include "common/graph/operation.h"

/* Backward is two products, one for the gradient of x and one for that of w. */
#define MATRIX_PRODUCT(operation_name)                                                             \
    .name = operation_name, .kernel = "linear", .input_count = 1, .saved = 1 << 0,                 \
    .phases = {1, 1}, .flops = operation_matmul_flops, .backward_flops = 2

/* y = x w. */
#define PRODUCT(operation_name, x, w, y)                                                           \
    MATRIX_PRODUCT(operation_name), .weight_count = 1, .dims = {x, w, y}

/* y = x w + b; where y is a partial sum, only one rank adds b. */
#define PRODUCT_AND_BIAS(operation_name, x, w, b, y)                                               \
    MATRIX_PRODUCT(operation_name), .weight_count = 2, .dims = {x, w, b, y}, .once = 1 << 2

#endif
