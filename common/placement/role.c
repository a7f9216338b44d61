/* role.c - the table of all roles, and the rule by which they split operations. */
#include "common/placement/role.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Data parallelism: every rank has its own samples and all weights. Gradients of weights are
 * partial sums; they are reduced once per step. */
static const struct role role_batch = {
    .name = "batch", .short_name = "dp", .letters = "b", .order = 0, .order_seq = 0};

/* Megatron's tensor parallelism (arXiv 1909.08053): heads and ffn are split, the residual stream is
 * replicated. Every layer needs two all-reduces forward and two backward. The embedding, the head
 * and the loss are split along the vocabulary. */
static const struct role role_tensor = {
    .name = "tensor", .short_name = "tp", .letters = "nkfv", .order = 2, .order_seq = 3};

/* The same with the residual stream split along the sequence (Korthikanti et al., arXiv
 * 2205.05198): all-gathers and reduce-scatters take the place of the all-reduces. */
static const struct role role_tensor_seq = {.name = "tensor_seq",
                                            .short_name = "tensor_seq",
                                            .letters = "nkfvs",
                                            .order = 3,
                                            .order_seq = 2};

/* The sequence is split, except in attention, where heads are (DeepSpeed-Ulysses, arXiv
 * 2309.14509): four all-to-alls forward per layer. */
static const struct role role_ulysses = {.name = "ulysses",
                                         .short_name = "ulysses",
                                         .letters = "s",
                                         .mixing = "nk",
                                         .order = 5,
                                         .order_seq = 1,
                                         .mirrored = true};

/* Context parallelism: the sequence is split throughout; attention gathers the keys and values of
 * all positions. */
static const struct role role_context = {
    .name = "context", .short_name = "context", .letters = "s", .order = 1, .order_seq = 0};

/* The residual stream is split along the hidden dim. Together with batch or sequence axes this
 * makes a 2-D matrix product whose partial outputs are completed by reduce-scatter. */
static const struct role role_hidden = {.name = "hidden",
                                        .short_name = "hidden",
                                        .letters = "hnkfv",
                                        .input_first = true,
                                        .order = 4,
                                        .order_seq = 4};

const struct role *const roles[] = {
    &role_batch, &role_tensor, &role_tensor_seq, &role_ulysses, &role_context, &role_hidden, NULL,
};

const struct role *role_find(const char *name)
{
    for (int i = 0; roles[i]; i++)
        if (strcmp(roles[i]->name, name) == 0)
            return roles[i];
    return NULL;
}

char *role_list(char *out, size_t size)
{
    size_t used = 0;
    for (int i = 0; roles[i] && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, i ? ", %s" : "%s", roles[i]->name);
    return out;
}

/* ---- one axis ---- */

/* The first of the letters that one of the first `operands` operands has; 0: none has any. */
static char first_letter(const struct node *node, const char *letters, int operands)
{
    for (; *letters; letters++)
        for (int i = 0; i < operands; i++)
            if (strchr(node->dims[i], *letters))
                return *letters;
    return 0;
}

/* What an axis with this role splits in this node; 0: nothing. */
static char letter_of(const struct role *role, const struct node *node)
{
    const char *letters = node->operation->keys && role->mixing ? role->mixing : role->letters;
    char letter = role->input_first ? first_letter(node, letters, 1) : 0;
    return letter ? letter : first_letter(node, letters, operation_operands(node->operation));
}

/* The cell that the operation lists for the role; NULL: the rule holds. */
static const char *listed_cell(const struct role *role, const struct operation *operation)
{
    for (const struct cell *cell = operation->cells; cell && cell->role; cell++)
        if (strcmp(cell->role, role->name) == 0)
            return cell->signs;
    return NULL;
}

/* One sign for each operand, the output last. */
static void make_cell(const struct role *role, const struct node *node, char *signs)
{
    const struct operation *operation = node->operation;
    const char *listed = listed_cell(role, operation);
    char letter = letter_of(role, node);
    int output = operation_output(operation), count = 0;
    for (; listed && *listed; listed++) {
        if (*listed == '>')
            continue;
        assert(count <= output && "a cell has a sign for each operand");
        assert(*listed == '.' || (*listed == '+' && count == output) ||
               strchr(node->dims[count], *listed));
        signs[count++] = *listed;
    }
    assert(count == 0 || count == output + 1);
    for (; count <= output; count++)
        signs[count] = letter && strchr(node->dims[count], letter) ? letter : '.';
    if (!listed && letter && signs[output] == '.' &&
        !(operation->exchange && strchr(operation->exchange, letter)))
        signs[output] = '+';
}

/* Is the operand, or the output, split along a dim? */
static bool is_split(char sign)
{
    return sign != '.' && sign != '+';
}

/* How the gradient of an input or weight leaves. */
static char leaving_sign(const struct node *node, const char *signs, int operand)
{
    int output = operation_output(node->operation);
    bool works = signs[output] != '.'; /* has the axis a letter here? */
    for (int i = 0; i < output; i++)
        works = works || signs[i] != '.';
    if (is_split(signs[operand]))
        return signs[operand];
    if (!works || (node->operation->once >> operand & 1 && !is_split(signs[output])))
        return '.';
    return '+';
}

/* ---- several axes ---- */

/* Is axis a major to axis b on this dim? Higher axis numbers have slower links. */
static bool is_major(const struct role *const *vector, int a, int b, char dim)
{
    int first = dim == 's' ? vector[a]->order_seq : vector[a]->order;
    int second = dim == 's' ? vector[b]->order_seq : vector[b]->order;
    if (first != second)
        return first < second;
    return vector[a]->mirrored && dim != 's' ? a < b : a > b;
}

static void insert_axis(struct placement *placement, int dim, int axis,
                        const struct role *const *vector, char letter)
{
    placement_append(placement, dim, axis);
    uint8_t *list = placement->axis[dim];
    for (int i = placement->count[dim] - 1; i > 0 && is_major(vector, list[i], list[i - 1], letter);
         i--) {
        uint8_t swap = list[i];
        list[i] = list[i - 1];
        list[i - 1] = swap;
    }
}

static void place(struct placement *placement, const char *dims, char sign, int axis,
                  const struct role *const *vector)
{
    const char *dim = strchr(dims, sign);
    if (sign == '+')
        placement->partial |= (uint8_t)(1u << axis);
    else if (is_split(sign) && dim)
        insert_axis(placement, (int)(dim - dims), axis, vector, sign);
}

struct signature signature_make(const struct node *node, const struct role *const *vector, int axes)
{
    struct signature made = {0};
    int output = operation_output(node->operation);
    assert(output >= 0 && output < OPERANDS_MAX);
    for (int axis = 0; axis < axes; axis++) {
        char signs[OPERANDS_MAX];
        make_cell(vector[axis], node, signs);
        for (int i = 0; i <= output; i++) {
            char arriving = is_split(signs[i]) ? signs[i] : '.';
            place(&made.operand[i], node->dims[i], signs[i], axis, vector);
            place(&made.gradient[i], node->dims[i],
                  i < output ? leaving_sign(node, signs, i) : arriving, axis, vector);
        }
    }
    return made;
}

struct box signature_statistic_box(const struct node *node, const struct statistic *statistic,
                                   const struct box *operands)
{
    char dims[DIMS_MAX + 1];
    node_statistic_dims(node, statistic, dims);
    struct box box = {.dims = (int)strlen(dims)};
    for (int i = 0; dims[i]; i++) {
        size_t at = (size_t)(strchr(node->dims[0], dims[i]) - node->dims[0]);
        box.low[i] = operands[0].low[at];
        box.high[i] = operands[0].high[at];
    }
    return box;
}

unsigned signature_exchange_axes(const struct node *node, const struct signature *signature)
{
    unsigned axes = 0;
    for (int i = 0; node->operation->exchange && node->dims[0][i]; i++)
        if (strchr(node->operation->exchange, node->dims[0][i]))
            axes |= placement_axes(&signature->operand[0], i);
    return axes;
}
