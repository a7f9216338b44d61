/* test_product.c - matrix products of all forms against sums in double, by each way that there is
 * on this machine. */
#include "common/base/memory.h"
#include "common/base/random.h"
#include "tests/support/suite.h"
#include "worker/kernels/cpu/numbers.h"
#include "worker/kernels/cpu/product.h"

#include <math.h>
#include <stdlib.h>

#define APART 3      /* numbers between rows, which are nobody's */
#define NOBODYS 1.5f /* in bf16, too */

/* None a multiple of another's blocks; more than a block of each; those of attention; few rows. */
static const struct {
    int64_t rows, columns, inner;
} sizes[] = {{67, 53, 101},  {33, 800, 40}, {100, 70, 1100}, {64, 64, 64},
             {64, 33, 160},  {1, 40, 30},   {15, 16, 4200},  {17, 35, 4097},
             {30, 66, 2305}, {16, 1, 1},    {29, 97, 384}};
#define SIZES ((int)(sizeof sizes / sizeof *sizes))

/* Both transposes, whether c is added to, whether there is a bias, and what the numbers are. */
enum { A_TRANSPOSED = 1, B_TRANSPOSED = 2, ADD = 4, BIAS = 8, NARROW = 16, NARROW_RESULT = 32 };
#define FORMS 64

struct trial {
    struct product product;
    float *a, *b, *bias, *c; /* each number as it is in f32 */
};

/* Numbers that are stored as such elements, and what they then are. */
static void *draw(float *wide, int64_t count, enum element element, uint64_t stream)
{
    void *data = xcalloc((size_t)count + 1, sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        store(data, element, i, (float)random_uniform(1, stream, (uint64_t)i) - 0.5f);
        wide[i] = load(data, element, i);
    }
    return data;
}

static float *wide(int64_t count)
{
    return xcalloc((size_t)count + 1, sizeof(float));
}

static struct matrix make_matrix(float **numbers, int64_t rows, int64_t columns, bool transposed,
                                 enum element element, uint64_t stream)
{
    int64_t stride = (transposed ? rows : columns) + APART;
    int64_t count = (transposed ? columns : rows) * stride;
    *numbers = wide(count);
    return (struct matrix){draw(*numbers, count, element, stream), stride, transposed};
}

/* False: there is no such product. */
static bool make_trial(struct trial *trial, int size, int form)
{
    enum element element = form & NARROW ? ELEMENT_BF16 : ELEMENT_F32;
    if ((form & NARROW_RESULT) && !(form & NARROW))
        return false;
    struct product *p = &trial->product;
    *p = (struct product){.rows = sizes[size].rows,
                          .columns = sizes[size].columns,
                          .inner = sizes[size].inner,
                          .element = element,
                          .add = form & ADD,
                          .stride = sizes[size].columns + APART,
                          .result = form & NARROW_RESULT ? ELEMENT_BF16 : ELEMENT_F32};
    p->a = make_matrix(&trial->a, p->rows, p->inner, form & A_TRANSPOSED, element, 1);
    p->b = make_matrix(&trial->b, p->inner, p->columns, form & B_TRANSPOSED, element, 2);
    trial->bias = wide(p->columns);
    p->bias = draw(trial->bias, p->columns, element, 3);
    trial->c = wide(p->rows * p->stride);
    p->c = draw(trial->c, p->rows * p->stride, p->result, 4);
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t i = 0; i < p->stride; i++)
            if (i >= p->columns)
                store(p->c, p->result, row * p->stride + i, NOBODYS);
            else if (!p->add) /* is not read */
                store(p->c, p->result, row * p->stride + i, NAN);
    return true;
}

static void end_trial(struct trial *trial, const void *bias)
{
    free((void *)trial->product.a.data);
    free((void *)trial->product.b.data);
    free((void *)bias);
    free(trial->product.c);
    free(trial->a);
    free(trial->b);
    free(trial->bias);
    free(trial->c);
}

static double number(const float *numbers, const struct matrix *matrix, int64_t row, int64_t column)
{
    return (double)(matrix->transposed ? numbers[column * matrix->stride + row]
                                       : numbers[row * matrix->stride + column]);
}

static double right(const struct trial *trial, int64_t row, int64_t column)
{
    const struct product *p = &trial->product;
    double sum = p->add ? (double)trial->c[row * p->stride + column] : 0;
    for (int64_t k = 0; k < p->inner; k++)
        sum += number(trial->a, &p->a, row, k) * number(trial->b, &p->b, k, column);
    return sum + (p->bias ? (double)trial->bias[column] : 0);
}

/* Of the whole, since a single sum may be nearly nothing. */
static void check_numbers(const struct trial *trial, int form)
{
    const struct product *p = &trial->product;
    double square = 0, whole = 0;
    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t i = 0; i < p->columns; i++) {
            double expected = right(trial, row, i);
            double error = (double)load(p->c, p->result, row * p->stride + i) - expected;
            square += error * error;
            whole += expected * expected;
        }
        for (int64_t i = p->columns; i < p->stride; i++)
            ck_assert_float_eq(load(p->c, p->result, row * p->stride + i), NOBODYS);
    }
    double limit = p->result == ELEMENT_F32 ? 1e-6 : 0x1p-8;
    ck_assert_msg(sqrt(square) <= limit * sqrt(whole), "%d x %d x %d, form %d: error %g of %g",
                  (int)p->rows, (int)p->inner, (int)p->columns, form, sqrt(square), sqrt(whole));
}

static bool by_rule(const struct product *product)
{
    product_run(product);
    return true;
}

/* By the way that the rule takes, and by those that it may not take on this machine. */
static void try_form(int size, int form)
{
    static bool (*const ways[])(const struct product *) = {by_rule, product_by_avx512};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct trial trial;
        if (!make_trial(&trial, size, form))
            continue;
        const void *bias = trial.product.bias;
        if (!(form & BIAS))
            trial.product.bias = NULL;
        if (ways[way](&trial.product))
            check_numbers(&trial, form);
        end_trial(&trial, bias);
    }
}

START_TEST(every_form_is_the_sum_in_double)
{
    for (int form = 0; form < FORMS; form++) {
        parallel_set_threads(form % 3 + 1);
        try_form(_i, form);
    }
}
END_TEST

/* Our own products promise it: a rank with more threads, and one with fewer, train alike. */
START_TEST(the_number_of_threads_changes_no_bit_of_our_own)
{
    for (int form = 0; form < FORMS; form++) {
        struct trial one, three;
        if (!make_trial(&one, _i, form))
            continue;
        make_trial(&three, _i, form);
        parallel_set_threads(1);
        bool amx = product_by_amx(&one.product), own = amx || product_by_avx512(&one.product);
        parallel_set_threads(3);
        if (own) {
            if (!(amx ? product_by_amx : product_by_avx512)(&three.product))
                ck_abort_msg("done with one thread, not with three");
            ck_assert_mem_eq(one.product.c, three.product.c,
                             (size_t)(one.product.rows * one.product.stride) *
                                 element_size(one.product.result));
        }
        end_trial(&one, one.product.bias);
        end_trial(&three, three.product.bias);
    }
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("product");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, every_form_is_the_sum_in_double, 0, SIZES);
    tcase_add_loop_test(tcase, the_number_of_threads_changes_no_bit_of_our_own, 0, SIZES);
    return suite_run("product", tcase, NULL);
}
