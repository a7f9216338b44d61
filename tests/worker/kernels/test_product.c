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

/* What all products of a size are made of, row by row; drawn and summed up once, since instrumented
 * code takes long for that. */
struct numbers {
    float *a, *b, *bias, *c;
    double *sums[ELEMENTS]; /* of a b, as an element rounds them */
};

struct trial {
    const struct numbers *numbers;
    struct product product;
    void *a, *b, *bias;
};

static float *draw(int64_t count, uint64_t stream)
{
    float *numbers = xcalloc((size_t)count, sizeof *numbers);
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)random_uniform(1, stream, (uint64_t)i) - 0.5f;
    return numbers;
}

static float rounded(float number, enum element element)
{
    return element == ELEMENT_F32 ? number : bf16_widen(bf16_narrow(number));
}

static double *make_sums(const struct numbers *numbers, int size, enum element element)
{
    int64_t rows = sizes[size].rows, columns = sizes[size].columns, inner = sizes[size].inner;
    double *sums = xcalloc((size_t)(rows * columns), sizeof *sums);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < inner; k++) {
            double a = (double)rounded(numbers->a[row * inner + k], element);
            for (int64_t i = 0; i < columns; i++)
                sums[row * columns + i] +=
                    a * (double)rounded(numbers->b[k * columns + i], element);
        }
    return sums;
}

static struct numbers make_numbers(int size)
{
    int64_t rows = sizes[size].rows, columns = sizes[size].columns, inner = sizes[size].inner;
    struct numbers numbers = {.a = draw(rows * inner, 1),
                              .b = draw(inner * columns, 2),
                              .bias = draw(columns, 3),
                              .c = draw(rows * columns, 4)};
    for (int element = 0; element < ELEMENTS; element++)
        numbers.sums[element] = make_sums(&numbers, size, (enum element)element);
    return numbers;
}

static void free_numbers(struct numbers *numbers)
{
    free(numbers->a);
    free(numbers->b);
    free(numbers->bias);
    free(numbers->c);
    for (int element = 0; element < ELEMENTS; element++)
        free(numbers->sums[element]);
}

static void *room(int64_t count)
{
    return xcalloc((size_t)count + 1, sizeof(float));
}

static struct matrix make_matrix(const float *numbers, int64_t rows, int64_t columns,
                                 bool transposed, enum element element)
{
    int64_t lines = transposed ? columns : rows, length = transposed ? rows : columns;
    int64_t stride = length + APART;
    void *data = room(lines * stride);
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = 0; i < stride; i++) {
            int64_t from = transposed ? i * columns + line : line * columns + i;
            store(data, element, line * stride + i, i < length ? numbers[from] : NOBODYS);
        }
    return (struct matrix){data, stride, transposed};
}

/* False: there is no such product. */
static bool make_trial(struct trial *trial, const struct numbers *numbers, int size, int form)
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
    trial->numbers = numbers;
    p->a = make_matrix(numbers->a, p->rows, p->inner, form & A_TRANSPOSED, element);
    p->b = make_matrix(numbers->b, p->inner, p->columns, form & B_TRANSPOSED, element);
    trial->a = (void *)p->a.data;
    trial->b = (void *)p->b.data;
    trial->bias = room(p->columns);
    for (int64_t i = 0; i < p->columns; i++)
        store(trial->bias, element, i, numbers->bias[i]);
    p->bias = form & BIAS ? trial->bias : NULL;
    p->c = room(p->rows * p->stride);
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t i = 0; i < p->stride; i++) {
            float before = i >= p->columns ? NOBODYS
                           : p->add        ? numbers->c[row * p->columns + i]
                                           : NAN; /* is not read */
            store(p->c, p->result, row * p->stride + i, before);
        }
    return true;
}

static void end_trial(struct trial *trial)
{
    free(trial->a);
    free(trial->b);
    free(trial->bias);
    free(trial->product.c);
}

static double right(const struct trial *trial, int64_t row, int64_t column)
{
    const struct product *p = &trial->product;
    int64_t i = row * p->columns + column;
    double sum = trial->numbers->sums[p->element][i];
    if (p->add)
        sum += (double)rounded(trial->numbers->c[i], p->result);
    if (p->bias)
        sum += (double)rounded(trial->numbers->bias[column], p->element);
    return sum;
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
static void try_form(const struct numbers *numbers, int size, int form)
{
    static bool (*const ways[])(const struct product *) = {by_rule, product_by_avx512};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        struct trial trial;
        if (!make_trial(&trial, numbers, size, form))
            continue;
        if (ways[way](&trial.product))
            check_numbers(&trial, form);
        end_trial(&trial);
    }
}

START_TEST(every_form_is_the_sum_in_double)
{
    struct numbers numbers = make_numbers(_i);
    for (int form = 0; form < FORMS; form++) {
        parallel_set_threads(form % 3 + 1);
        try_form(&numbers, _i, form);
    }
    free_numbers(&numbers);
}
END_TEST

/* Our own products promise it: a rank with more threads, and one with fewer, train alike. */
START_TEST(the_number_of_threads_changes_no_bit_of_our_own)
{
    struct numbers numbers = make_numbers(_i);
    for (int form = 0; form < FORMS; form++) {
        struct trial one, three;
        if (!make_trial(&one, &numbers, _i, form))
            continue;
        make_trial(&three, &numbers, _i, form);
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
        end_trial(&one);
        end_trial(&three);
    }
    free_numbers(&numbers);
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
