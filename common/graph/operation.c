/* operation.c - the table of all operations, and the cost formulas that several of them share. */
#include "common/graph/operation.h"

#include <string.h>

extern const struct operation operation_embed, operation_position, operation_norm, operation_qkv,
    operation_core, operation_out, operation_add, operation_fc1, operation_gelu, operation_fc2,
    operation_logits, operation_loss, operation_rmsnorm, operation_rotary, operation_rotary_key,
    operation_grouped, operation_attend, operation_swiglu, operation_query, operation_keyvalue,
    operation_query_and_bias, operation_keyvalue_and_bias, operation_query_norm, operation_key_norm,
    operation_widen, operation_merge, operation_narrow, operation_patch, operation_pool,
    operation_classify, operation_class_loss;

const struct operation *const operations[] = {
    &operation_embed,
    &operation_position,
    &operation_norm,
    &operation_qkv,
    &operation_core,
    &operation_out,
    &operation_add,
    &operation_fc1,
    &operation_gelu,
    &operation_fc2,
    &operation_logits,
    &operation_loss,
    &operation_rmsnorm,
    &operation_rotary,
    &operation_rotary_key,
    &operation_grouped,
    &operation_attend,
    &operation_swiglu,
    &operation_query,
    &operation_keyvalue,
    &operation_query_and_bias,
    &operation_keyvalue_and_bias,
    &operation_query_norm,
    &operation_key_norm,
    &operation_widen,
    &operation_merge,
    &operation_narrow,
    &operation_patch,
    &operation_pool,
    &operation_classify,
    &operation_class_loss,
    NULL,
};

const struct operation *operation_find(const char *name)
{
    for (int i = 0; operations[i]; i++)
        if (strcmp(operations[i]->name, name) == 0)
            return operations[i];
    return NULL;
}

int operation_operands(const struct operation *operation)
{
    return operation->input_count + operation->weight_count + 1;
}

double operation_matmul_flops(const struct operation *operation, const struct box *operands)
{
    int weight = operation->input_count;
    const char *have = operation->dims[0];
    double product = 2.0 * (double)box_count(&operands[0]);
    for (int i = 0; i < operands[weight].dims; i++)
        if (!strchr(have, operation->dims[weight][i]))
            product *= (double)box_length(&operands[weight], i);
    return product;
}

double operation_pass_flops(const struct operation *operation, const struct box *operands)
{
    int64_t most = 0;
    for (int i = 0; i < operation_operands(operation); i++)
        if (box_count(&operands[i]) > most)
            most = box_count(&operands[i]);
    return (double)most;
}
