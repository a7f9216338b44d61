/* test_roles.c - signatures against the whole table of roles, both halves, as text.
 *
 * A cell is about one mesh axis: inputs weights > output | gradients of inputs and weights. A
 * letter: split there along that dim; '.' broadcast; '+' an unfinished sum; '_' no gradient.
 * 'a': the last weight is added once. 'i': the kernel exchanges statistics over the axis. */
#include "common/placement/role.h"
#include "tests/support/kinds.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>

static const char *const columns[] = {"batch",   "tensor",  "tensor_seq",
                                      "ulysses", "context", "hidden"};
#define COLUMNS 6

/* Every operation along the dims that a model family has, as a hand wrote them once. */
static const struct {
    const char *name;
    const struct operation *operation;
    const char *dims[OPERANDS_MAX];
    const char *cells[COLUMNS];
} table[] = {
    /* clang-format off */
    {"embed", &operation_embed, {"bs", "vh", "bsh"}, {"b.>b|_+", ".v>+|_v", ".v>+|_v", "s.>s|_+", "s.>s|_+", ".h>h|_h"}},
    {"position", &operation_position, {"bsh", "sh", "bsh"}, {"b.>b|b+", "..>.|..", "ss>s|ss", "ss>s|ss", "ss>s|ss", "hh>h|hh"}},
    {"norm", &operation_norm, {"bsh", "h", "h", "bsh"}, {"b..>b|b++", "...>.|...", "s..>s|s++", "s..>s|s++", "s..>s|s++", "hhh>h|hhh i"}},
    {"qkv", &operation_linear, {"bsh", "hnd", "nd", "bsnd"}, {"b..>b|b++", ".nn>n|+nn", ".nn>n|+nn", "s..>s|s++", "s..>s|s++", "hh.>+|hh. a"}},
    {"causal attention", &operation_causal_attention, {"bsnd", "btnd", "btnd", "bsnd"}, {"bbb>b|bbb", "nnn>n|nnn", "nnn>n|nnn", "nnn>n|nnn", "s..>s|s++", "nnn>n|nnn"}},
    {"out", &operation_linear, {"bsnd", "ndh", "h", "bsh"}, {"b..>b|b++", "nn.>+|nn. a", "nn.>+|nn. a", "s..>s|s++", "s..>s|s++", "nn.>+|nn. a"}},
    {"add", &operation_add, {"bsh", "bsh", "bsh"}, {"bb>b|bb", "..>.|..", "ss>s|ss", "ss>s|ss", "ss>s|ss", "hh>h|hh"}},
    {"fc1", &operation_linear, {"bsh", "hf", "f", "bsf"}, {"b..>b|b++", ".ff>f|+ff", ".ff>f|+ff", "s..>s|s++", "s..>s|s++", "hh.>+|hh. a"}},
    {"gelu", &operation_gelu, {"bsf", "bsf"}, {"b>b|b", "f>f|f", "f>f|f", "s>s|s", "s>s|s", "f>f|f"}},
    {"fc2", &operation_linear, {"bsf", "fh", "h", "bsh"}, {"b..>b|b++", "ff.>+|ff. a", "ff.>+|ff. a", "s..>s|s++", "s..>s|s++", "ff.>+|ff. a"}},
    {"logits", &operation_matmul, {"bsh", "vh", "bsv"}, {"b.>b|b+", ".v>v|+v", ".v>v|+v", "s.>s|s+", "s.>s|s+", "hh>+|hh"}},
    {"loss", &operation_loss, {"bsv", "bs", ""}, {"bb>+|b_", "v.>.|v_ i", "v.>.|v_ i", "ss>+|s_", "ss>+|s_", "v.>.|v_ i"}},
    {"rmsnorm", &operation_rmsnorm, {"bsh", "h", "bsh"}, {"b.>b|b+", "..>.|..", "s.>s|s+", "s.>s|s+", "s.>s|s+", "hh>h|hh i"}},
    {"rotary", &operation_rotary, {"bskgd", "bskgd"}, {"b>b|b", "k>k|k", "k>k|k", "s>s|s", "s>s|s", "k>k|k"}},
    {"rotary of keys", &operation_rotary, {"bskd", "bskd"}, {"b>b|b", "k>k|k", "k>k|k", "s>s|s", "s>s|s", "k>k|k"}},
    {"grouped attention", &operation_causal_attention, {"bskgd", "btkd", "btkd", "bskgd"}, {"bbb>b|bbb", "kkk>k|kkk", "kkk>k|kkk", "kkk>k|kkk", "s..>s|s++", "kkk>k|kkk"}},
    {"attention", &operation_attention, {"bsnd", "btnd", "btnd", "bsnd"}, {"bbb>b|bbb", "nnn>n|nnn", "nnn>n|nnn", "nnn>n|nnn", "s..>s|s++", "nnn>n|nnn"}},
    {"swiglu", &operation_swiglu, {"bsf", "bsf", "bsf"}, {"bb>b|bb", "ff>f|ff", "ff>f|ff", "ss>s|ss", "ss>s|ss", "ff>f|ff"}},
    {"query", &operation_matmul, {"bsh", "hkgd", "bskgd"}, {"b.>b|b+", ".k>k|+k", ".k>k|+k", "s.>s|s+", "s.>s|s+", "hh>+|hh"}},
    {"keyvalue", &operation_matmul, {"bsh", "hkd", "bskd"}, {"b.>b|b+", ".k>k|+k", ".k>k|+k", "s.>s|s+", "s.>s|s+", "hh>+|hh"}},
    {"query with bias", &operation_linear, {"bsh", "hkgd", "kgd", "bskgd"}, {"b..>b|b++", ".kk>k|+kk", ".kk>k|+kk", "s..>s|s++", "s..>s|s++", "hh.>+|hh. a"}},
    {"keyvalue with bias", &operation_linear, {"bsh", "hkd", "kd", "bskd"}, {"b..>b|b++", ".kk>k|+kk", ".kk>k|+kk", "s..>s|s++", "s..>s|s++", "hh.>+|hh. a"}},
    {"query norm", &operation_rmsnorm, {"bskgd", "d", "bskgd"}, {"b.>b|b+", "k.>k|k+", "k.>k|k+", "s.>s|s+", "s.>s|s+", "k.>k|k+"}},
    {"key norm", &operation_rmsnorm, {"bskd", "d", "bskd"}, {"b.>b|b+", "k.>k|k+", "k.>k|k+", "s.>s|s+", "s.>s|s+", "k.>k|k+"}},
    {"gate and up", &operation_matmul, {"bsh", "hf", "bsf"}, {"b.>b|b+", ".f>f|+f", ".f>f|+f", "s.>s|s+", "s.>s|s+", "hh>+|hh"}},
    {"out of groups", &operation_matmul, {"bskgd", "kgdh", "bsh"}, {"b.>b|b+", "kk>+|kk", "kk>+|kk", "s.>s|s+", "s.>s|s+", "kk>+|kk"}},
    {"down", &operation_matmul, {"bsf", "fh", "bsh"}, {"b.>b|b+", "ff>+|ff", "ff>+|ff", "s.>s|s+", "s.>s|s+", "ff>+|ff"}},
    {"patches", &operation_linear, {"bsp", "ph", "h", "bsh"}, {"b..>b|_++", "...>.|_..", "s..>s|_++", "s..>s|_++", "s..>s|_++", ".hh>h|_hh"}},
    {"pool", &operation_pool, {"bsh", "bh"}, {"b>b|b", ".>.|.", "s>+|s", "s>+|s", "s>+|s", "h>h|h"}},
    {"classes", &operation_linear, {"bh", "hv", "v", "bv"}, {"b..>b|b++", ".vv>v|+vv", ".vv>v|+vv", "...>.|...", "...>.|...", "hh.>+|hh. a"}},
    {"loss of classes", &operation_loss, {"bv", "b", ""}, {"bb>+|b_", "v.>.|v_ i", "v.>.|v_ i", "..>.|._", "..>.|._", "v.>.|v_ i"}},
    /* clang-format on */
};
#define ROWS ((int)(sizeof table / sizeof *table))

static struct node node_of(int row)
{
    struct node node = {.name = table[row].name,
                        .operation = table[row].operation,
                        .constant = table[row].operation->constant};
    memcpy(node.dims, table[row].dims, sizeof node.dims);
    if (strchr(node.dims[0], 'p')) /* pixels */
        node.constant = 1;
    return node;
}

/* The sign of axis 0 in a placement of these dims. */
static char sign_of(const struct placement *placement, const char *dims)
{
    char sign = placement->partial & 1 ? '+' : '.';
    for (int dim = 0; dims[dim]; dim++)
        if (placement_axes(placement, dim) & 1)
            sign = sign == '.' ? dims[dim] : '?'; /* two things at once */
    return sign;
}

static bool adds_once(const struct node *node, const struct signature *signature)
{
    int output = operation_output(node->operation);
    return node->operation->once >> (output - 1) & 1 && signature->operand[output].partial;
}

/* The cell as the signature has it, in the table's own form. */
static void print_cell(const struct node *node, const struct signature *signature, char *out)
{
    int output = operation_output(node->operation);
    for (int i = 0; i <= output; i++) {
        if (i == output)
            *out++ = '>';
        *out++ = sign_of(&signature->operand[i], node->dims[i]);
    }
    *out++ = '|';
    for (int i = 0; i < output; i++)
        *out++ =
            node_differentiates(node, i) ? sign_of(&signature->gradient[i], node->dims[i]) : '_';
    strcpy(out, adds_once(node, signature)                 ? " a"
                : signature_exchange_axes(node, signature) ? " i"
                                                           : "");
}

START_TEST(a_cell_follows_from_the_dims)
{
    struct node node = node_of(_i / COLUMNS);
    const struct role *role = role_find(columns[_i % COLUMNS]);
    const char *expected = table[_i / COLUMNS].cells[_i % COLUMNS];
    ck_assert(role != NULL);
    struct signature signature = signature_make(&node, &role, 1);
    char cell[32];
    print_cell(&node, &signature, cell);
    ck_assert_msg(strcmp(cell, expected) == 0, "%s under %s is %s, the table has %s", node.name,
                  role->name, cell, expected);

    /* A gradient arrives as the output left; an unfinished sum arrives finished. */
    int output = operation_output(node.operation);
    struct placement arriving = placement_settled(&signature.operand[output]);
    ck_assert_msg(placement_equal(&signature.gradient[output], &arriving), "%s under %s", node.name,
                  role->name);
}
END_TEST

static bool is_row(int row, const struct node *kind)
{
    bool equal = table[row].operation == kind->operation;
    for (int i = 0; equal && i < operation_operands(kind->operation); i++)
        equal = strcmp(table[row].dims[i], kind->dims[i]) == 0;
    return equal;
}

START_TEST(the_table_has_all_that_families_compute)
{
    int role_count = 0;
    for (int i = 0; i < kind_count(); i++) {
        int row = 0;
        while (row < ROWS && !is_row(row, kind_at(i)))
            row++;
        ck_assert_msg(row < ROWS, "%s", kind_at(i)->name);
    }
    while (roles[role_count])
        role_count++;
    ck_assert_int_eq(role_count, COLUMNS);
}
END_TEST

/* Which of the letters a role splits first is part of its meaning. */
START_TEST(every_letter_of_a_role_splits_something)
{
    const struct role *role = roles[_i];
    for (const char *letter = role->letters; *letter; letter++) {
        bool used = false;
        for (int row = 0; row < ROWS; row++) {
            struct node node = node_of(row);
            struct signature signature = signature_make(&node, &role, 1);
            for (int i = 0; i < operation_operands(node.operation); i++)
                used = used || sign_of(&signature.operand[i], node.dims[i]) == *letter;
        }
        ck_assert_msg(used, "%s: %c", role->name, *letter);
    }
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

static void check_composed(const struct node *node, const struct role *const *vector, int axes,
                           int operand, const struct placement *placement,
                           const struct signature *single, bool gradient)
{
    const char *dims = node->dims[operand];
    for (int axis = 0; axis < axes; axis++) {
        const struct placement *alone =
            gradient ? &single[axis].gradient[operand] : &single[axis].operand[operand];
        ck_assert_msg((placement->partial >> axis & 1) == (alone->partial & 1),
                      "%s operand %d, axis %d (%s)", node->name, operand, axis, vector[axis]->name);
        for (int dim = 0; dims[dim]; dim++)
            ck_assert_msg((placement_axes(placement, dim) >> axis & 1) ==
                              (placement_axes(alone, dim) & 1),
                          "%s operand %d, axis %d (%s) on %c", node->name, operand, axis,
                          vector[axis]->name, dims[dim]);
    }
    for (int dim = 0; dims[dim]; dim++)
        for (int i = 0; i + 1 < placement->count[dim]; i++)
            ck_assert_msg(must_be_major(vector, placement->axis[dim][i],
                                        placement->axis[dim][i + 1], dims[dim]),
                          "%s operand %d (%s): axis %d (%s) before axis %d (%s) on %c", node->name,
                          operand, gradient ? "gradient" : "value", placement->axis[dim][i],
                          vector[placement->axis[dim][i]]->name, placement->axis[dim][i + 1],
                          vector[placement->axis[dim][i + 1]]->name, dims[dim]);
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
        struct node node = node_of(row);
        composed = signature_make(&node, vector, axes);
        for (int axis = 0; axis < axes; axis++)
            single[axis] = signature_make(&node, &vector[axis], 1);
        for (int i = 0; i < operation_operands(node.operation); i++) {
            check_composed(&node, vector, axes, i, &composed.operand[i], single, false);
            check_composed(&node, vector, axes, i, &composed.gradient[i], single, true);
        }
    }
}
END_TEST

START_TEST(axes_of_one_role_are_slow_before_fast_and_ulysses_mirrored_on_heads)
{
    const struct role *ulysses = role_find("ulysses"), *tensor = role_find("tensor");
    const struct role *context = role_find("context"), *seq = role_find("tensor_seq");
    const struct node *core = kind_find("causal_attention"), *norm = kind_find("norm");
    char text[64];
    struct signature signature;
    const struct role *three[] = {ulysses, ulysses, tensor};
    signature = signature_make(core, three, 3);
    placement_print(text, sizeof text, "bsnd", &signature.operand[0]);
    ck_assert_str_eq(text, "b[] s[] n[2,0,1] d[] +[]");
    const struct role *mixed[] = {seq, ulysses, context};
    signature = signature_make(norm, mixed, 3);
    placement_print(text, sizeof text, "bsh", &signature.operand[0]);
    ck_assert_str_eq(text, "b[] s[2,1,0] h[] +[]");
    const struct role *same[] = {ulysses, ulysses};
    signature = signature_make(norm, same, 2);
    placement_print(text, sizeof text, "bsh", &signature.operand[0]);
    ck_assert_str_eq(text, "b[] s[1,0] h[] +[]");
}
END_TEST

/* Of what is contracted beside a split letter every rank has a part of the gradient, though the
 * output may be whole: a temperature inside of a loss. No family has the like yet. */
START_TEST(a_whole_weight_beside_a_split_letter_gets_a_part_of_its_gradient)
{
    static const struct operation tempered = {.name = "tempered",
                                              .input_count = 2,
                                              .weight_count = 1,
                                              .dims = {"bsv", "bs", "o", ""},
                                              .constant = 1 << 1,
                                              .exchange = "v"};
    static const char *const expected[COLUMNS] = {"bb.>+|b_+", "v..>.|v_+ i", "v..>.|v_+ i",
                                                  "ss.>+|s_+", "ss.>+|s_+",   "v..>.|v_+ i"};
    struct node node = {.name = "tempered", .operation = &tempered, .constant = 1 << 1};
    memcpy(node.dims, tempered.dims, sizeof node.dims);
    const struct role *role = role_find(columns[_i]);
    struct signature signature = signature_make(&node, &role, 1);
    char cell[32];
    print_cell(&node, &signature, cell);
    ck_assert_str_eq(cell, expected[_i]);
}
END_TEST

START_TEST(an_operation_may_say_otherwise)
{
    struct operation strange = operation_gelu;
    struct node node = {.name = "strange", .operation = &strange, .dims = {"bsf", "bsf"}};
    const struct role *tensor = role_find("tensor"), *context = role_find("context");
    struct signature signature = signature_make(&node, &tensor, 1);
    ck_assert_int_eq(sign_of(&signature.operand[0], "bsf"), 'f');
    strange.cells = (const struct cell[]){{"tensor", ".>."}, {NULL, NULL}};
    signature = signature_make(&node, &tensor, 1);
    ck_assert_int_eq(sign_of(&signature.operand[0], "bsf"), '.');
    ck_assert_int_eq(sign_of(&signature.operand[1], "bsf"), '.');
    ck_assert_int_eq(sign_of(&signature.gradient[0], "bsf"), '.');
    signature = signature_make(&node, &context, 1);
    ck_assert_int_eq(sign_of(&signature.operand[0], "bsf"), 's');
}
END_TEST

SUITE(roles)
{
    TCase *cells = tcase_create("cells");
    tcase_add_loop_test(cells, a_cell_follows_from_the_dims, 0, ROWS * COLUMNS);
    tcase_add_test(cells, the_table_has_all_that_families_compute);
    tcase_add_loop_test(cells, every_letter_of_a_role_splits_something, 0, COLUMNS);
    tcase_add_test(cells, an_operation_may_say_otherwise);
    tcase_add_loop_test(cells, a_whole_weight_beside_a_split_letter_gets_a_part_of_its_gradient, 0,
                        COLUMNS);
    TCase *vectors = tcase_create("vectors");
    tcase_add_loop_test(vectors, axes_compose_in_the_order_of_their_roles, 0, 6 + 36 + 216);
    tcase_add_test(vectors, axes_of_one_role_are_slow_before_fast_and_ulysses_mirrored_on_heads);
    return suite_run("roles", cells, vectors, NULL);
}
