/* embed.c - y[b,s] = w[token[b,s]]: token embedding, one row of the table per token.
 *
 * A rank that holds only part of the vocabulary writes zeros for tokens outside its part, so the
 * sum over ranks is the embedding. */
#include "common/graph/operation.h"

const struct operation operation_embed = {
    .name = "embed",
    .input_count = 1,
    .weight_count = 1,
    .dims = {"bs", "vh", "bsh"},
    .saved = 1 << 0,
    .constant = 1 << 0,
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 1,
};
