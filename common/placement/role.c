/* role.c - turns the cells of all axes' roles into placements of operands and gradients. */
#include "common/placement/role.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static const char *signs_of(const struct role *role, const struct operation *operation)
{
    for (const struct role_cell *cell = role->cells; cell->operation; cell++)
        if (strcmp(cell->operation, operation->name) == 0)
            return cell->signs;
    for (size_t i = 0; i < sizeof operation->cells / sizeof *operation->cells; i++)
        if (operation->cells[i].role && strcmp(operation->cells[i].role, role->name) == 0)
            return operation->cells[i].signs;
    return NULL;
}

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
    else if (sign != '.' && dim)
        insert_axis(placement, (int)(dim - dims), axis, vector, sign);
}

/* Splits a cell into one sign per operand. */
static void read_signs(const char *signs, int operands, char *out)
{
    int i = 0;
    for (; *signs; signs++)
        if (*signs != '>' && i < operands)
            out[i++] = *signs;
    assert(i == operands && !*signs);
}

int signature_make(const struct operation *operation, const struct role *const *vector, int axes,
                   struct signature *out, struct error *err)
{
    memset(out, 0, sizeof *out);
    int output = operation_output(operation);
    assert(output >= 0 && output < OPERANDS_MAX);
    for (int axis = 0; axis < axes; axis++) {
        const char *signs = signs_of(vector[axis], operation);
        if (!signs)
            return error_set(err, -EINVAL, "role '%s' has no cell for operation '%s'",
                             vector[axis]->name, operation->name);
        char sign[OPERANDS_MAX];
        read_signs(signs, output + 1, sign);
        bool arriving_split = sign[output] != '.' && sign[output] != '+';
        for (int i = 0; i <= output; i++) {
            bool split = sign[i] != '.' && sign[i] != '+';
            char gradient = split ? sign[i] : i < output && arriving_split ? '+' : '.';
            place(&out->operand[i], operation->dims[i], sign[i], axis, vector);
            place(&out->gradient[i], operation->dims[i], gradient, axis, vector);
        }
    }
    return 0;
}

struct box signature_statistic_box(const struct operation *operation, const char *dims,
                                   const struct box *operands)
{
    struct box box = {.dims = (int)strlen(dims)};
    for (int i = 0; dims[i]; i++) {
        const char *at = strchr(operation->dims[0], dims[i]);
        assert(at && "a statistic has dims of the first operand");
        box.low[i] = operands[0].low[at - operation->dims[0]];
        box.high[i] = operands[0].high[at - operation->dims[0]];
    }
    return box;
}

unsigned signature_exchange_axes(const struct operation *operation,
                                 const struct signature *signature)
{
    const char *at = operation->exchange ? strchr(operation->dims[0], operation->exchange) : NULL;
    return at ? placement_axes(&signature->operand[0], (int)(at - operation->dims[0])) : 0;
}
