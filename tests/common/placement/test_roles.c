/* test_roles.c - signatures against the whole table of roles, both halves, as text.
 *
 * A cell is about one mesh axis: inputs weights > output | gradients of inputs and weights. A
 * letter: split there along that dim; '.' broadcast; '+' an unfinished sum; '_' no gradient.
 * 'a': the last weight is added once. 'i': the kernel exchanges statistics over the axis. */
#include "common/placement/role.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const columns[] = {"batch",   "tensor",  "tensor_seq",
                                      "ulysses", "context", "hidden"};
#define COLUMNS 6

static const struct {
    const char *operation;
    const char *cells[COLUMNS];
} table[] = {
    {"embed", {"b.>b|_+", ".v>+|_v", ".v>+|_v", "s.>s|_+", "s.>s|_+", ".h>h|_h"}},
    {"position", {"b.>b|b+", "..>.|..", "ss>s|ss", "ss>s|ss", "ss>s|ss", "hh>h|hh"}},
    {"norm", {"b..>b|b++", "...>.|...", "s..>s|s++", "s..>s|s++", "s..>s|s++", "hhh>h|hhh i"}},
    {"qkv", {"b..>b|b++", ".nn>n|+nn", ".nn>n|+nn", "s..>s|s++", "s..>s|s++", "hh.>+|hh. a"}},
    {"core", {"bbb>b|bbb", "nnn>n|nnn", "nnn>n|nnn", "nnn>n|nnn", "s..>s|s++", "nnn>n|nnn"}},
    {"out", {"b..>b|b++", "nn.>+|nn. a", "nn.>+|nn. a", "s..>s|s++", "s..>s|s++", "nn.>+|nn. a"}},
    {"add", {"bb>b|bb", "..>.|..", "ss>s|ss", "ss>s|ss", "ss>s|ss", "hh>h|hh"}},
    {"fc1", {"b..>b|b++", ".ff>f|+ff", ".ff>f|+ff", "s..>s|s++", "s..>s|s++", "hh.>+|hh. a"}},
    {"gelu", {"b>b|b", "f>f|f", "f>f|f", "s>s|s", "s>s|s", "f>f|f"}},
    {"fc2", {"b..>b|b++", "ff.>+|ff. a", "ff.>+|ff. a", "s..>s|s++", "s..>s|s++", "ff.>+|ff. a"}},
    {"logits", {"b.>b|b+", ".v>v|+v", ".v>v|+v", "s.>s|s+", "s.>s|s+", "hh>+|hh"}},
    {"loss", {"bb>+|b_", "v.>.|v_ i", "v.>.|v_ i", "ss>+|s_", "ss>+|s_", "v.>.|v_ i"}},
};
#define ROWS ((int)(sizeof table / sizeof *table))

/* The sign of axis 0 in a placement of these dims. */
static char sign_of(const struct placement *placement, const char *dims)
{
    char sign = placement->partial & 1 ? '+' : '.';
    for (int dim = 0; dims[dim]; dim++)
        if (placement_axes(placement, dim) & 1)
            sign = sign == '.' ? dims[dim] : '?'; /* two things at once */
    return sign;
}

static bool adds_once(const struct operation *operation, const struct signature *signature)
{
    int output = operation_output(operation);
    return operation->once >> (output - 1) & 1 && signature->operand[output].partial;
}

/* The cell as the signature has it, in the table's own form. */
static void print_cell(const struct operation *operation, const struct signature *signature,
                       char *out)
{
    int output = operation_output(operation);
    for (int i = 0; i <= output; i++) {
        if (i == output)
            *out++ = '>';
        *out++ = sign_of(&signature->operand[i], operation->dims[i]);
    }
    *out++ = '|';
    for (int i = 0; i < output; i++)
        *out++ = operation_differentiates(operation, i)
                     ? sign_of(&signature->gradient[i], operation->dims[i])
                     : '_';
    strcpy(out, adds_once(operation, signature)                 ? " a"
                : signature_exchange_axes(operation, signature) ? " i"
                                                                : "");
}

START_TEST(a_cell_is_as_the_table_has_it)
{
    const struct operation *operation = operation_find(table[_i / COLUMNS].operation);
    const struct role *role = role_find(columns[_i % COLUMNS]);
    const char *expected = table[_i / COLUMNS].cells[_i % COLUMNS];
    ck_assert(operation && role);
    struct signature signature;
    char cell[32];
    ck_assert_int_eq(signature_make(operation, &role, 1, &signature, NULL), 0);
    print_cell(operation, &signature, cell);
    ck_assert_msg(strcmp(cell, expected) == 0, "%s under %s is %s, the table has %s",
                  operation->name, role->name, cell, expected);

    /* A gradient arrives as the output left; an unfinished sum arrives finished. */
    int output = operation_output(operation);
    struct placement arriving = placement_settled(&signature.operand[output]);
    ck_assert_msg(placement_equal(&signature.gradient[output], &arriving), "%s under %s",
                  operation->name, role->name);
}
END_TEST

/* Those that bring cells of their own have them beside their code. */
START_TEST(the_table_has_every_operation_and_role)
{
    int operation_count = 0, role_count = 0;
    for (int i = 0; operations[i]; i++)
        operation_count += operations[i]->cells[0].role == NULL;
    while (roles[role_count])
        role_count++;
    ck_assert_int_eq(operation_count, ROWS);
    ck_assert_int_eq(role_count, COLUMNS);
}
END_TEST

/* ---- several axes ---- */

/* Major to minor. */
static const char *const order_on_seq[] = {"context", "ulysses", "tensor_seq"};
static const char *const order_elsewhere[] = {"batch",      "context", "tensor",
                                              "tensor_seq", "hidden",  "ulysses"};

static int place_in(const char *const *order, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(order[i], name) == 0)
            return i;
    return count;
}

/* Must axis a be major to axis b on this dim? Inside one role the slow axis is major; those of
 * ulysses are mirrored, but on seq. */
static bool must_be_major(const struct role *const *vector, int a, int b, char dim)
{
    bool seq = dim == 's';
    const char *const *order = seq ? order_on_seq : order_elsewhere;
    int count = seq ? 3 : COLUMNS;
    int first = place_in(order, count, vector[a]->name);
    int second = place_in(order, count, vector[b]->name);
    ck_assert_msg(first < count && second < count, "%s and %s on %c", vector[a]->name,
                  vector[b]->name, dim);
    if (first != second)
        return first < second;
    bool mirrored = !seq && strcmp(vector[a]->name, "ulysses") == 0;
    return mirrored ? a < b : a > b;
}

static void check_composed(const struct operation *operation, const struct role *const *vector,
                           int axes, int operand, const struct placement *placement,
                           const struct signature *single, bool gradient)
{
    const char *dims = operation->dims[operand];
    for (int axis = 0; axis < axes; axis++) {
        const struct placement *alone =
            gradient ? &single[axis].gradient[operand] : &single[axis].operand[operand];
        ck_assert_msg((placement->partial >> axis & 1) == (alone->partial & 1),
                      "%s operand %d, axis %d (%s)", operation->name, operand, axis,
                      vector[axis]->name);
        for (int dim = 0; dims[dim]; dim++)
            ck_assert_msg((placement_axes(placement, dim) >> axis & 1) ==
                              (placement_axes(alone, dim) & 1),
                          "%s operand %d, axis %d (%s) on %c", operation->name, operand, axis,
                          vector[axis]->name, dims[dim]);
    }
    for (int dim = 0; dims[dim]; dim++)
        for (int i = 0; i + 1 < placement->count[dim]; i++)
            ck_assert_msg(must_be_major(vector, placement->axis[dim][i],
                                        placement->axis[dim][i + 1], dims[dim]),
                          "%s operand %d (%s): axis %d (%s) before axis %d (%s) on %c",
                          operation->name, operand, gradient ? "gradient" : "value",
                          placement->axis[dim][i], vector[placement->axis[dim][i]]->name,
                          placement->axis[dim][i + 1], vector[placement->axis[dim][i + 1]]->name,
                          dims[dim]);
}

/* Vector number i of the 6 + 36 + 216 on one to three axes. */
static int vector_at(int index, const struct role **vector)
{
    int axes = 1, count = COLUMNS;
    for (; index >= count; axes++, count *= COLUMNS)
        index -= count;
    for (int axis = 0; axis < axes; axis++, index /= COLUMNS)
        vector[axis] = roles[index % COLUMNS];
    return axes;
}

START_TEST(axes_compose_in_the_order_of_their_roles)
{
    const struct role *vector[3];
    struct signature composed, single[3];
    int axes = vector_at(_i, vector);
    for (int row = 0; row < ROWS; row++) {
        const struct operation *operation = operation_find(table[row].operation);
        ck_assert_int_eq(signature_make(operation, vector, axes, &composed, NULL), 0);
        for (int axis = 0; axis < axes; axis++)
            ck_assert_int_eq(signature_make(operation, &vector[axis], 1, &single[axis], NULL), 0);
        for (int i = 0; i < operation_operands(operation); i++) {
            check_composed(operation, vector, axes, i, &composed.operand[i], single, false);
            check_composed(operation, vector, axes, i, &composed.gradient[i], single, true);
        }
    }
}
END_TEST

START_TEST(axes_of_one_role_are_slow_before_fast_and_ulysses_mirrored_on_heads)
{
    const struct role *ulysses = role_find("ulysses"), *tensor = role_find("tensor");
    const struct role *context = role_find("context"), *seq = role_find("tensor_seq");
    const struct operation *core = operation_find("core"), *norm = operation_find("norm");
    char text[64];
    struct signature signature;
    const struct role *three[] = {ulysses, ulysses, tensor};
    signature_make(core, three, 3, &signature, NULL);
    placement_print(text, sizeof text, "bsnd", &signature.operand[0]);
    ck_assert_str_eq(text, "b[] s[] n[2,0,1] d[] +[]");
    const struct role *mixed[] = {seq, ulysses, context};
    signature_make(norm, mixed, 3, &signature, NULL);
    placement_print(text, sizeof text, "bsh", &signature.operand[0]);
    ck_assert_str_eq(text, "b[] s[2,1,0] h[] +[]");
    const struct role *same[] = {ulysses, ulysses};
    signature_make(norm, same, 2, &signature, NULL);
    placement_print(text, sizeof text, "bsh", &signature.operand[0]);
    ck_assert_str_eq(text, "b[] s[1,0] h[] +[]");
}
END_TEST

START_TEST(a_role_without_a_cell_is_refused_in_words)
{
    struct operation strange = *operation_find("gelu");
    strange.name = "strange";
    const struct role *tensor = role_find("tensor");
    struct signature signature;
    struct error err;
    ck_assert_int_eq(signature_make(&strange, &tensor, 1, &signature, &err), -EINVAL);
    ck_assert_str_eq(err.text, "role 'tensor' has no cell for operation 'strange'");
    strange.cells[0] = (struct cell){"tensor", "f>f"};
    ck_assert_int_eq(signature_make(&strange, &tensor, 1, &signature, &err), 0);
    ck_assert_int_eq(sign_of(&signature.operand[0], "bsf"), 'f');
}
END_TEST

SUITE(roles)
{
    TCase *cells = tcase_create("cells");
    tcase_add_loop_test(cells, a_cell_is_as_the_table_has_it, 0, ROWS * COLUMNS);
    tcase_add_test(cells, the_table_has_every_operation_and_role);
    tcase_add_test(cells, a_role_without_a_cell_is_refused_in_words);
    TCase *vectors = tcase_create("vectors");
    tcase_add_loop_test(vectors, axes_compose_in_the_order_of_their_roles, 0, 6 + 36 + 216);
    tcase_add_test(vectors, axes_of_one_role_are_slow_before_fast_and_ulysses_mirrored_on_heads);
    return suite_run("roles", cells, vectors, NULL);
}
