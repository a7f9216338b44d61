/* test_device.c - what a device does beside operations; and the meaning of the operations, on
 * numbers that a person can check. */
#include "tests/worker/kernels/apart.h"
#include "tests/worker/kernels/trial.h"

#include "common/base/random.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

Suite *device_suite(void);

START_TEST(devices_are_found_by_name)
{
    ck_assert_ptr_eq(device_find("plain"), &device_plain);
    ck_assert_ptr_null(device_find("abacus"));
}
END_TEST

static void copy(const struct device *device, const struct view *to, const struct view *from,
                 const struct box *part)
{
    struct apart *apart = apart_begin(device);
    struct view there = *to, source = *from;
    there.data = apart_bring(apart, to->data, (size_t)box_count(&to->box) * sizeof(float));
    source.data = apart_bring(apart, from->data, (size_t)box_count(&from->box) * sizeof(float));
    device->copy(&there, &source, part);
    apart_end(apart);
}

/* Row-major pieces of a 4 x 6 x 5 tensor. */
START_TEST(a_box_is_copied_between_pieces_that_lie_differently)
{
    struct box whole = {3, {0, 0, 0}, {4, 6, 5}}, piece = {3, {1, 2, 0}, {4, 5, 5}};
    const struct box parts[] = {
        {3, {1, 3, 1}, {3, 5, 4}}, {3, {1, 2, 0}, {4, 5, 5}}, {3, {2, 2, 0}, {3, 5, 5}},
        {3, {3, 4, 4}, {4, 5, 5}}, {3, {2, 2, 0}, {2, 5, 5}},
    };
    const struct box *part = &parts[_i];
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        float from[120], to[45];
        for (int i = 0; i < 120; i++)
            from[i] = (float)i;
        for (int i = 0; i < 45; i++)
            to[i] = -1;
        copy(device, &(struct view){to, piece, ELEMENT_F32},
             &(struct view){from, whole, ELEMENT_F32}, part);
        for (int i = 0; i < 45; i++) {
            int64_t x = i / 15 + 1, y = i / 5 % 3 + 2, z = i % 5;
            bool inside = x >= part->low[0] && x < part->high[0] && y >= part->low[1] &&
                          y < part->high[1] && z >= part->low[2] && z < part->high[2];
            ck_assert_float_eq(to[i], inside ? (float)(x * 30 + y * 5 + z) : -1);
        }
    }
}
END_TEST

START_TEST(a_scalar_is_copied)
{
    float from = 3, to = 0;
    struct box scalar = {0};
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        copy(device, &(struct view){&to, scalar, ELEMENT_F32},
             &(struct view){&from, scalar, ELEMENT_F32}, &scalar);
        ck_assert_float_eq(to, 3);
        to = 0;
    }
}
END_TEST

enum { COUNT = 10007 };

static void draw(float *data, uint64_t stream)
{
    for (int i = 0; i < COUNT; i++)
        data[i] = (float)random_normal(3, stream, (uint64_t)i);
}

static float square_sum(const struct device *device, float *data, size_t count, float before)
{
    struct apart *apart = apart_begin(device);
    device->square_sum(apart_bring(apart, data, count * sizeof *data), count,
                       apart_bring(apart, &before, sizeof before));
    apart_end(apart);
    return before;
}

static struct view array(void *data, enum element element, int64_t count)
{
    return (struct view){data, {.dims = 1, .high = {count}}, element};
}

START_TEST(arrays_are_added_and_squared)
{
    static float a[COUNT], b[COUNT];
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        draw(a, 0);
        for (int i = 0; i < COUNT; i++)
            b[i] = 0.5f;
        struct apart *apart = apart_begin(device);
        struct view to = array(apart_bring(apart, a, sizeof a), ELEMENT_F32, COUNT),
                    from = array(apart_bring(apart, b, sizeof b), ELEMENT_F32, COUNT - 1);
        device->add(&to, &from);
        apart_end(apart);
        double right = 1;
        for (int i = 0; i < COUNT; i++) {
            float x = (float)random_normal(3, 0, (uint64_t)i);
            ck_assert_float_eq(a[i], i < COUNT - 1 ? x + 0.5f : x);
            right += (double)a[i] * a[i];
        }
        ck_assert_float_eq_tol(square_sum(device, a, COUNT, 1), (float)right,
                               (float)(1e-7 * right));
        ck_assert_float_eq(square_sum(device, a, 0, 1), 1);
    }
}
END_TEST

START_TEST(arrays_are_cleared_to_the_byte)
{
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        static uint16_t words[COUNT];
        if (!device)
            continue;
        memset(words, 0xff, sizeof words);
        struct apart *apart = apart_begin(device);
        device->clear(apart_bring(apart, words, sizeof words), sizeof words - sizeof *words);
        device->clear(NULL, 0);
        apart_end(apart);
        for (int i = 0; i < COUNT; i++)
            ck_assert_uint_eq(words[i], i < COUNT - 1 ? 0 : 0xffff);
    }
}
END_TEST

/* Numbers that have 9 bits at most, so that every sum of two is rounded in bf16's 8, and one that
 * is no number. */
START_TEST(bf16_is_rounded_to_the_nearest_and_ties_to_even)
{
    static const float wide[] = {1, 1.00390625f, 1.01171875f, -1.01171875f, 3.4e38f, 1e-45f};
    static const uint16_t narrow[] = {0x3f80, 0x3f80, 0x3f82, 0xbf82, 0x7f80, 0};
    enum { NUMBERS = sizeof wide / sizeof *wide };
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        float numbers[NUMBERS + 1], twice[NUMBERS + 1];
        uint16_t out[NUMBERS + 1];
        if (!device)
            continue;
        memcpy(numbers, wide, sizeof wide);
        numbers[NUMBERS] = NAN;
        memcpy(twice, numbers, sizeof twice);
        struct apart *apart = apart_begin(device);
        struct view from = array(apart_bring(apart, numbers, sizeof numbers), ELEMENT_F32,
                                 NUMBERS + 1),
                    to = array(apart_bring(apart, out, sizeof out), ELEMENT_BF16, NUMBERS + 1),
                    sum = array(apart_bring(apart, twice, sizeof twice), ELEMENT_F32, NUMBERS + 1);
        device->copy(&to, &from, &to.box);
        device->add(&sum, &to);
        apart_end(apart);
        for (int i = 0; i < NUMBERS; i++) {
            ck_assert_uint_eq(out[i], narrow[i]);
            ck_assert_float_eq(twice[i], wide[i] + bf16_widen(narrow[i]));
        }
        ck_assert_float_nan(bf16_widen(out[NUMBERS]));
    }
}
END_TEST

/* Of a step whose loss and gradient are such. */
struct metrics {
    float loss, square_sum;
};

static void update(const struct device *device, const struct update_call *call,
                   struct metrics metrics)
{
    struct apart *apart = apart_begin(device);
    size_t bytes = call->count * sizeof(float);
    struct update_call there = *call;
    there.parameter = apart_bring(apart, call->parameter, bytes);
    there.gradient = apart_bring(apart, call->gradient, bytes);
    there.first = apart_bring(apart, call->first, bytes);
    there.second = apart_bring(apart, call->second, bytes);
    there.loss = apart_bring(apart, &metrics.loss, sizeof metrics.loss);
    there.square_sum = apart_bring(apart, &metrics.square_sum, sizeof metrics.square_sum);
    device->update(&there);
    apart_end(apart);
}

/* Three elements by the book (PyTorch 1.13 AdamW, two steps of gradient 0.5, -2 and 0). */
START_TEST(adamw_moves_by_the_rate_and_decays_apart)
{
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        float parameter[3] = {1, -1, 4}, first[3] = {0}, second[3] = {0};
        for (uint64_t step = 1; step <= 2; step++) {
            float gradient[3] = {1, -4, 0};
            struct update_call call = {.parameter = parameter,
                                       .gradient = gradient,
                                       .first = first,
                                       .second = second,
                                       .count = 3,
                                       .rate = 0.1f,
                                       .beta1 = 0.9f,
                                       .beta2 = 0.999f,
                                       .epsilon = 1e-8f,
                                       .decay = 0.5f,
                                       .clip = 2,
                                       .step = step};
            /* A norm of 4 where 2 is the most: the gradient is halved. */
            update(device, &call, (struct metrics){1, 16});
        }
        /* A constant gradient moves by the rate whatever its size: p = 0.95 p - 0.1 sign(g). */
        ck_assert_float_eq_tol(parameter[0], 0.7075f, 1e-5f);
        ck_assert_float_eq_tol(parameter[1], -0.7075f, 1e-5f);
        ck_assert_float_eq_tol(parameter[2], 3.61f, 1e-5f);
        ck_assert_float_eq_tol(first[0], 0.095f, 1e-6f);
        ck_assert_float_eq_tol(second[1], 0.007996f, 1e-6f);
    }
}
END_TEST

START_TEST(a_step_that_is_not_finite_changes_nothing)
{
    const struct metrics metrics[] = {{NAN, 1}, {1, INFINITY}, {1, NAN}, {-INFINITY, 1}};
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        float data[4] = {1, 2, 3, 4};
        struct update_call call = {.parameter = &data[0],
                                   .gradient = &data[1],
                                   .first = &data[2],
                                   .second = &data[3],
                                   .count = 1,
                                   .rate = 0.1f,
                                   .clip = _i % 2 ? 1.0f : 0.0f,
                                   .step = 1};
        if (device)
            update(device, &call, metrics[_i]);
        for (int i = 0; i < 4; i++)
            ck_assert_float_eq(data[i], (float)(i + 1));
    }
}
END_TEST

START_TEST(adamw_of_many_elements_is_that_of_plain_c)
{
    static float data[2][4][COUNT];
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        for (int which = 0; which < 2; which++) {
            for (int i = 0; i < 4; i++)
                draw(data[which][i], (uint64_t)i);
            for (int i = 0; i < COUNT; i++)
                data[which][3][i] *= data[which][3][i];
            struct update_call call = {.parameter = data[which][0],
                                       .gradient = data[which][1],
                                       .first = data[which][2],
                                       .second = data[which][3],
                                       .count = COUNT,
                                       .rate = 3e-4f,
                                       .beta1 = 0.9f,
                                       .beta2 = 0.95f,
                                       .epsilon = 1e-8f,
                                       .decay = 0.1f,
                                       .clip = 0.7f,
                                       .step = 12};
            update(which ? &device_plain : device, &call, (struct metrics){2, 3});
        }
        for (int i = 0; i < 4; i++)
            for (int at = 0; at < COUNT; at++)
                ck_assert_float_eq_tol(data[0][i][at], data[1][i][at],
                                       1e-6f * fmaxf(1, fabsf(data[1][i][at])));
    }
}
END_TEST

/* Slices of many sizes, one behind the other. */
enum { SLICES = 150, SLICES_COUNT = 40000 };

static size_t slice_count(int slice)
{
    static const size_t counts[] = {1, 0, 37, 2047, 2048, 2049, 255};
    size_t count = counts[slice % 7];
    return slice < 7 || count < 2000 ? count : count / 8;
}

static struct update_call slice_of(float *const arrays[4], size_t first, int slice)
{
    return (struct update_call){.parameter = arrays[0] + first,
                                .gradient = arrays[1] + first,
                                .first = arrays[2] + first,
                                .second = arrays[3] + first,
                                .count = slice_count(slice),
                                .rate = 3e-4f,
                                .beta1 = 0.9f,
                                .beta2 = 0.95f,
                                .epsilon = 1e-8f,
                                .decay = slice % 2 ? 0.1f : 0,
                                .clip = 0.7f,
                                .step = 12};
}

static void update_slices(const struct device *device, bool together, float data[4][SLICES_COUNT])
{
    struct apart *apart = apart_begin(device);
    struct update_call calls[SLICES];
    struct metrics metrics = {2, 3};
    float *arrays[4];
    for (int i = 0; i < 4; i++)
        arrays[i] = apart_bring(apart, data[i], sizeof data[i]);
    size_t first = 0;
    for (int i = 0; i < SLICES; i++) {
        calls[i] = slice_of(arrays, first, i);
        calls[i].loss = apart_bring(apart, &metrics.loss, sizeof metrics.loss);
        calls[i].square_sum = apart_bring(apart, &metrics.square_sum, sizeof metrics.square_sum);
        first += calls[i].count;
    }
    ck_assert_uint_le(first, SLICES_COUNT);
    if (together)
        device->update_all(calls, SLICES);
    for (int i = 0; i < SLICES && !together; i++)
        device->update(&calls[i]);
    apart_end(apart);
}

START_TEST(slices_together_are_updated_as_one_by_one)
{
    static float data[2][4][SLICES_COUNT];
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device || !device->update_all)
            continue;
        for (int together = 0; together < 2; together++) {
            for (int i = 0; i < 4; i++)
                for (int at = 0; at < SLICES_COUNT; at++)
                    data[together][i][at] =
                        fabsf((float)random_normal(3, (uint64_t)i, (uint64_t)at));
            update_slices(device, together, data[together]);
        }
        ck_assert_mem_eq(data[0], data[1], sizeof data[0]);
        ck_assert_float_ne(data[0][0][0], fabsf((float)random_normal(3, 0, 0)));
    }
}
END_TEST

/* The output of one operation whose operands are set by hand: element 0 of a trial. */
static struct trial *by_hand(const struct device *device, const char *name, struct sizes sizes)
{
    struct trial_config config = {
        .device = device, .like = kind_find(name), .sizes = sizes, .wanted = WANTED_ALL};
    return trial_create(&config);
}

static void set(struct trial *trial, int operand, const float *values)
{
    const struct view *view = &trial->calls[0].operand[operand];
    memcpy(view->data, values, (size_t)box_count(&view->box) * sizeof(float));
}

static const float *output(struct trial *trial)
{
    trial_forward(trial);
    return trial->calls[0].operand[operation_output(trial->node.operation)].data;
}

START_TEST(operations_mean_what_the_books_say)
{
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        struct trial *gelu = by_hand(device, "gelu", trial_sizes(1, 1, 1, 1, 1, 3, 1));
        set(gelu, 0, (float[]){1, -2, 30});
        const float *y = output(gelu);
        ck_assert_float_eq_tol(y[0], 0.8411920f, 1e-6f); /* torch, approximate='tanh' */
        ck_assert_float_eq_tol(y[1], -0.0454023f, 1e-6f);
        ck_assert_float_eq(y[2], 30);
        trial_destroy(gelu);

        /* One head of width 1: equal keys give the mean of the values so far. */
        struct trial *core = by_hand(device, "causal_attention", trial_sizes(1, 3, 1, 1, 1, 1, 1));
        set(core, 1, (float[]){2, 2, 2});
        set(core, 2, (float[]){3, 5, 10});
        y = output(core);
        ck_assert_float_eq_tol(y[0], 3, 1e-6f);
        ck_assert_float_eq_tol(y[1], 4, 1e-6f);
        ck_assert_float_eq_tol(y[2], 6, 2e-6f);
        trial_destroy(core);

        struct trial *norm = by_hand(device, "norm", trial_sizes(1, 1, 2, 1, 1, 1, 1));
        norm->node.epsilon = 0;
        set(norm, 0, (float[]){1, 5});
        set(norm, 1, (float[]){10, 100});
        set(norm, 2, (float[]){0.5f, 0.25f});
        y = output(norm);
        ck_assert_float_eq_tol(y[0], -9.5f, 1e-5f);
        ck_assert_float_eq_tol(y[1], 100.25f, 1e-4f);
        trial_destroy(norm);

        /* Equal logits: log 4 for each of 2 targets of 7; the third row's is ignored. */
        struct trial *loss = by_hand(device, "loss", trial_sizes(1, 3, 1, 1, 1, 1, 4));
        set(loss, 0, (float[12]){0});
        memcpy(loss->calls[0].operand[1].data, (int32_t[]){3, 0, -1}, 3 * sizeof(int32_t));
        output(loss);
        struct box box;
        double *value = trial_gather(loss, false, 2, &box);
        ck_assert_double_eq_tol(*value, 2 * log(4) / 7, 1e-6);
        free(value);
        trial_destroy(loss);
    }
}
END_TEST

START_TEST(products_and_tables_are_read_the_right_way_round)
{
    for (int d = 0; devices[d]; d++) {
        const struct device *device = apart_device(d);
        if (!device)
            continue;
        struct trial *fc1 = by_hand(device, "fc1", trial_sizes(1, 1, 2, 1, 1, 3, 1));
        set(fc1, 0, (float[]){1, 10});
        set(fc1, 1, (float[]){1, 2, 3, 4, 5, 6});
        set(fc1, 2, (float[]){100, 200, 300});
        const float *y = output(fc1);
        ck_assert_float_eq(y[0], 141);
        ck_assert_float_eq(y[2], 363);
        trial_destroy(fc1);

        struct trial *logits = by_hand(device, "logits", trial_sizes(1, 1, 2, 1, 1, 1, 3));
        set(logits, 0, (float[]){1, 10});
        set(logits, 1, (float[]){1, 2, 3, 4, 5, 6});
        y = output(logits);
        ck_assert_float_eq(y[0], 21);
        ck_assert_float_eq(y[2], 65);
        trial_destroy(logits);

        struct trial *embed = by_hand(device, "embed", trial_sizes(1, 2, 2, 1, 1, 1, 3));
        memcpy(embed->calls[0].operand[0].data, (int32_t[]){2, 0}, 2 * sizeof(int32_t));
        set(embed, 1, (float[]){1, 2, 3, 4, 5, 6});
        y = output(embed);
        ck_assert_float_eq(y[0], 5);
        ck_assert_float_eq(y[3], 2);
        trial_destroy(embed);
    }
}
END_TEST

Suite *device_suite(void)
{
    TCase *tcase = tcase_create("device");
    tcase_add_test(tcase, devices_are_found_by_name);
    tcase_add_loop_test(tcase, a_box_is_copied_between_pieces_that_lie_differently, 0, 5);
    tcase_add_test(tcase, a_scalar_is_copied);
    tcase_add_test(tcase, arrays_are_added_and_squared);
    tcase_add_test(tcase, arrays_are_cleared_to_the_byte);
    tcase_add_test(tcase, bf16_is_rounded_to_the_nearest_and_ties_to_even);
    tcase_add_test(tcase, adamw_moves_by_the_rate_and_decays_apart);
    tcase_add_loop_test(tcase, a_step_that_is_not_finite_changes_nothing, 0, 4);
    tcase_add_test(tcase, adamw_of_many_elements_is_that_of_plain_c);
    tcase_add_test(tcase, slices_together_are_updated_as_one_by_one);
    tcase_add_test(tcase, operations_mean_what_the_books_say);
    tcase_add_test(tcase, products_and_tables_are_read_the_right_way_round);
    Suite *suite = suite_create("device");
    suite_add_tcase(suite, tcase);
    return suite;
}
