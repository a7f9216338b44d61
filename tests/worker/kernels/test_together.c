/* test_together.c - sums and copies of many arrays at once, where a device offers that: the same
 * bits as one by one. */
#include "common/base/random.h"
#include "tests/worker/kernels/apart.h"

#include <check.h>
#include <string.h>

#define ARRAYS 150 /* more than one launch takes */
#define LONG 5000  /* more than one block takes */
#define WIDTH 7    /* of pieces of which only a part is copied */

Suite *together_suite(void);

/* None, one, many numbers. */
static size_t length(int array)
{
    static const size_t lengths[] = {1, 0, 33, LONG, 2048, 257};
    return lengths[(size_t)array % (sizeof lengths / sizeof *lengths)];
}

static float data[ARRAYS][LONG];

static void draw(void)
{
    for (int array = 0; array < ARRAYS; array++)
        for (size_t i = 0; i < LONG; i++)
            data[array][i] = (float)random_normal(5, (uint64_t)array, i);
}

static float sum_squares(const struct device *device, bool together)
{
    struct apart *apart = apart_begin(device);
    struct square_call calls[ARRAYS];
    float sum = 0.5f, *there = apart_bring(apart, &sum, sizeof sum);
    float(*arrays)[LONG] = apart_bring(apart, data, sizeof data);
    for (int i = 0; i < ARRAYS; i++)
        calls[i] = (struct square_call){arrays[i], length(i)};
    if (together)
        device->square_sum_all(calls, ARRAYS, there);
    for (int i = 0; i < ARRAYS && !together; i++)
        device->square_sum(calls[i].data, calls[i].count, there);
    apart_end(apart);
    return sum;
}

START_TEST(squares_together_are_summed_as_one_by_one)
{
    draw();
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device || !device->square_sum_all)
            continue;
        double right = 0.5;
        for (int array = 0; array < ARRAYS; array++)
            for (size_t i = 0; i < length(array); i++)
                right += (double)data[array][i] * (double)data[array][i];
        float together = sum_squares(device, true), alone = sum_squares(device, false);
        ck_assert_mem_eq(&together, &alone, sizeof alone);
        ck_assert_float_eq_tol(together, (float)right, (float)(1e-5 * right));
    }
}
END_TEST

/* Every fourth is a part of a table, others are whole; every fifth is copied to f32. */
static struct copy_call copy_of(int array, void *from, void *to)
{
    int64_t rows = (int64_t)length(array) / WIDTH;
    struct box whole = {2, {0, 0}, {rows, WIDTH}}, part = whole;
    if (array % 4 == 1 && rows > 2)
        part = (struct box){2, {1, 2}, {rows - 1, WIDTH - 1}};
    return (struct copy_call){
        .source = {from, whole, ELEMENT_F32},
        .destination = {to, whole, array % 5 == 1 ? ELEMENT_F32 : ELEMENT_BF16},
        .part = part};
}

static float copies[2][ARRAYS][LONG];

static void copy(const struct device *device, bool together)
{
    struct apart *apart = apart_begin(device);
    struct copy_call calls[ARRAYS];
    float(*from)[LONG] = apart_bring(apart, data, sizeof data);
    float(*to)[LONG] = apart_bring(apart, copies[together], sizeof copies[together]);
    for (int i = 0; i < ARRAYS; i++)
        calls[i] = copy_of(i, from[i], to[i]);
    if (together)
        device->copy_all(calls, ARRAYS);
    for (int i = 0; i < ARRAYS && !together; i++)
        device->copy(&calls[i].destination, &calls[i].source, &calls[i].part);
    apart_end(apart);
}

START_TEST(copies_together_are_made_as_one_by_one)
{
    draw();
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device || !device->copy_all)
            continue;
        memset(copies, 0, sizeof copies);
        copy(device, true);
        copy(device, false);
        ck_assert_mem_eq(copies[0], copies[1], sizeof copies[0]);
        ck_assert_float_ne(copies[1][3][0], 0);
    }
}
END_TEST

Suite *together_suite(void)
{
    Suite *suite = suite_create("together");
    TCase *tcase = tcase_create("together");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, squares_together_are_summed_as_one_by_one);
    tcase_add_test(tcase, copies_together_are_made_as_one_by_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
