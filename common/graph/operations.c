/* operations.c - all operations, each a row with what has to be known of it: the formula, its
 * source, and what backward needs. y is the output. Below, b is samples, s positions, h the hidden
 * dim, f the MLP's width, v the vocabulary, n or k heads, g the query heads of a key/value head,
 * d a head's width. */
#include "common/graph/graph.h"

#include <string.h>

int operation_operands(const struct operation *operation)
{
    return operation->input_count + operation->weight_count + 1;
}

double operation_matmul_flops(const struct node *node, const struct box *operands)
{
    int weight = node->operation->input_count;
    double product = 2.0 * (double)box_count(&operands[0]);
    for (int i = 0; i < operands[weight].dims; i++)
        if (!strchr(node->dims[0], node->dims[weight][i]))
            product *= (double)box_length(&operands[weight], i);
    return product;
}

double operation_pass_flops(const struct node *node, const struct box *operands)
{
    int64_t most = 0;
    for (int i = 0; i < operation_operands(node->operation); i++)
        if (box_count(&operands[i]) > most)
            most = box_count(&operands[i]);
    return (double)most;
}

static double rotary_flops(const struct node *node, const struct box *operands)
{
    return 3 * operation_pass_flops(node, operands);
}

static double swiglu_flops(const struct node *node, const struct box *operands)
{
    return 15 * operation_pass_flops(node, operands);
}

/* Of GELU, and of a loss: an exponential, and some sums. */
static double exponential_flops(const struct node *node, const struct box *operands)
{
    return 20 * operation_pass_flops(node, operands);
}

/* ---- matrix products ---- */

/* The kernel "linear" contracts the dims that x and w share and y lacks; each node says which. A
 * weight (v, h) is multiplied as its transpose. Backward is two products, one for the gradient of x
 * and one for that of w. */
#define PRODUCT                                                                                    \
    .kernel = "linear", .input_count = 1, .saved = 1 << 0, .phases = {1, 1},                       \
    .flops = operation_matmul_flops, .backward_flops = 2, .input_flops = 1

/* y = x w. */
const struct operation operation_matmul = {.name = "matmul", .weight_count = 1, PRODUCT};

/* y = x w + b; where y is a partial sum, only one rank adds b. */
const struct operation operation_linear = {
    .name = "linear", .weight_count = 2, .once = 1 << 2, PRODUCT};

/* ---- attention ---- */

/* Two matrix products of 2 b n s t d each: q k' and the probabilities times v. */
static double attention_flops(const struct node *node, const struct box *operands)
{
    (void)node;
    return 4.0 * (double)box_count(&operands[0]) * (double)box_length(&operands[1], 1);
}

/* Of the last piece of the queries, which sees most keys: where a sequence is split the others wait
 * for it. The whole sees half of all. */
static double causal_flops(const struct node *node, const struct box *operands)
{
    double queries = (double)box_length(&operands[0], 1),
           keys = (double)box_length(&operands[1], 1);
    return keys > 0 ? attention_flops(node, operands) * (1 - queries / keys / 2) : 0;
}

/* The score matrix of one head, s by t in f32; backward also needs its gradient. */
static uint64_t attention_workspace(const struct box *operands, enum direction direction)
{
    uint64_t scores = (uint64_t)(box_length(&operands[0], 1) * box_length(&operands[1], 1));
    return scores * sizeof(float) * (direction == FORWARD ? 1 : 2);
}

/* y = softmax(q k' / sqrt(d)) v, of q (b, s, n, d) and of k and v (b, t, n, d); or, with g query
 * heads for each head of keys and values (Ainslie et al., arXiv 2305.13245), of q (b, s, k, g, d)
 * and of k and v (b, t, k, d): splitting by heads always means splitting the same dim of all.
 *
 * Positions are those of the whole sequence; the boxes of q and of k, v tell where a piece begins.
 * Forward saves the logarithm of each row's sum of exponentials, from which backward recomputes the
 * probabilities (FlashAttention, arXiv 2205.14135, algorithm 4). Saved: q, k, v, y and that. */
#define ATTENTION                                                                                  \
    .kernel = "attention", .input_count = 3, .keys = 't',                                          \
    .saved = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4, .phases = {1, 1},                         \
    .statistics = {{{"logsum", "d", 's', 0, REDUCTION_SUM}}}, .statistic_count = {1, 0},           \
    .backward_flops = 2.5, .workspace = attention_workspace

/* An encoder's: a query sees all keys (Devlin et al., arXiv 1810.04805). */
const struct operation operation_attention = {
    .name = "attention", .flops = attention_flops, ATTENTION};

const struct operation operation_causal_attention = {
    .name = "causal_attention", .causal = true, .flops = causal_flops, ATTENTION};

/* ---- norms ---- */

/* Over h: y = (x - mean) / sqrt(variance + epsilon) * w + b.
 *
 * With h split, each rank sums over its piece: first the elements, then the squared deviations from
 * the reduced mean. Backward needs the sums of dy w and of dy w u, where u is the normalised x.
 * Statistics hold plain sums over h, not yet divided by its size. Saved: x and the two sums. */
const struct operation operation_norm = {
    .name = "norm",
    .input_count = 1,
    .weight_count = 2,
    .dims = {"bsh", "h", "h", "bsh"},
    .saved = 1 << 0 | 1 << 4 | 1 << 5,
    .cheap = true,
    .exchange = "h",
    .phases = {3, 2},
    .statistics = {{{"sum", "h", 0, 0, REDUCTION_SUM}, {"squares", "h", 0, 1, REDUCTION_SUM}},
                   {{"dot_w", "h", 0, 0, REDUCTION_SUM}, {"dot_u", "h", 0, 0, REDUCTION_SUM}}},
    .statistic_count = {2, 2},
    .flops = operation_pass_flops,
    .backward_flops = 2,
};

/* Root mean square over the last dim (Zhang and Sennrich, arXiv 1910.07467): y = x / sqrt(mean of
 * x^2 + epsilon) * w. That dim is h; or d, where every head is normalised by itself with one weight
 * for all (Henry et al., arXiv 2010.04245; Qwen3).
 *
 * Where it is split, each rank sums the squares of its piece; backward needs the sum of dy w u,
 * where u is the normalised x. Saved: x and its squares. */
const struct operation operation_rmsnorm = {
    .name = "rmsnorm",
    .input_count = 1,
    .weight_count = 1,
    .saved = 1 << 0 | 1 << 3,
    .cheap = true,
    .exchange = "hd",
    .phases = {2, 2},
    .statistics = {{{"squares", "hd", 0, 0, REDUCTION_SUM}}, {{"dot", "hd", 0, 0, REDUCTION_SUM}}},
    .statistic_count = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 2,
};

/* ---- positions and tokens ---- */

/* y[b,s] = w[token[b,s]]: one row of the table per token. A rank that holds only part of the
 * vocabulary writes zeros for tokens outside its part, so the sum over ranks is the embedding. */
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

/* y = x + w[s]: learned positions, one row of the table for each. */
const struct operation operation_position = {
    .name = "position",
    .input_count = 1,
    .weight_count = 1,
    .dims = {"bsh", "sh", "bsh"},
    .passes = 1 << 0,
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 1,
};

/* Rotary positions (RoPE: Su et al., arXiv 2104.09864). In every head, element i of the first half
 * and element i of the second half form a pair that is rotated by position x speed; the speeds
 * follow from the node's rotation (graph/rotation.h). */
const struct operation operation_rotary = {
    .name = "rotary",
    .input_count = 1,
    .cheap = true,
    .phases = {1, 1},
    .flops = rotary_flops,
    .backward_flops = 1,
};

/* y = the mean of x over all positions. */
const struct operation operation_pool = {
    .name = "pool",
    .input_count = 1,
    .dims = {"bsh", "bh"},
    .planned = true,
    .phases = {1, 1},
    .flops = operation_pass_flops,
    .backward_flops = 1,
};

/* ---- elementwise ---- */

/* y = x + z: the residual connection. Both inputs' gradients are the gradient of y. */
const struct operation operation_add = {
    .name = "add",
    .input_count = 2,
    .dims = {"bsh", "bsh", "bsh"},
    .passes = 1 << 0 | 1 << 1,
    .phases = {1, 1},
    .flops = operation_pass_flops,
};

/* GELU in the tanh approximation that GPT-2 uses:
 * y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
const struct operation operation_gelu = {
    .name = "gelu",
    .input_count = 1,
    .dims = {"bsf", "bsf"},
    .saved = 1 << 0,
    .cheap = true,
    .phases = {1, 1},
    .flops = exponential_flops,
    .backward_flops = 1.5,
};

/* y = x / (1 + exp(-x)) z, where x is the gate (Shazeer, arXiv 2002.05202). */
const struct operation operation_swiglu = {
    .name = "swiglu",
    .input_count = 2,
    .dims = {"bsf", "bsf", "bsf"},
    .saved = 1 << 0 | 1 << 1,
    .cheap = true,
    .phases = {1, 1},
    .flops = swiglu_flops,
    .backward_flops = 1.5,
};

/* ---- losses ---- */

/* Cross entropy of logits over v and targets, one for each position or for each sample, summed and
 * divided by the step's number of targets. Targets below 0 are ignored.
 *
 * With a split vocabulary, ranks first reduce the maximum of their logits, then the sum of
 * exponentials and the target's logit. The maximum is subtracted from all logits, so that no
 * exponential overflows. Saved: logits, targets, "largest" and "exponentials". */
const struct operation operation_loss = {
    .name = "loss",
    .input_count = 2,
    .saved = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4,
    .constant = 1 << 1,
    .is_loss = true,
    .exchange = "v",
    .phases = {3, 1},
    .statistics = {{{"largest", "v", 0, 0, REDUCTION_MAX},
                    {"exponentials", "v", 0, 1, REDUCTION_SUM},
                    {"target", "v", 0, 1, REDUCTION_SUM}}},
    .statistic_count = {3, 0},
    .flops = exponential_flops,
    .backward_flops = 1,
};

const struct operation *const operations[] = {
    &operation_add,    &operation_attention, &operation_causal_attention,
    &operation_embed,  &operation_gelu,      &operation_linear,
    &operation_loss,   &operation_matmul,    &operation_norm,
    &operation_pool,   &operation_position,  &operation_rmsnorm,
    &operation_rotary, &operation_swiglu,    NULL,
};
