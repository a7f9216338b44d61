/* test_kernels.c - every operation of every device: against plain C whole and in pieces, and
 * its gradients against finite differences. */
#include "tests/worker/kernels/apart.h"
#include "tests/worker/kernels/trial.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

Suite *device_suite(void);
Suite *together_suite(void);

/* Loop tests run over all pairs. NULL: this machine lacks the device, or no device has a kernel. */
static const struct device *choose(int index, const struct node **like)
{
    *like = kind_at(index % kind_count());
    const struct device *device =
        (*like)->operation->planned ? NULL : apart_device(index / kind_count());
    if (device && device->threads)
        device->threads(1);
    return device;
}

static double distance(const double *a, const double *b, int64_t count, double *norm)
{
    double square = 0, whole = 0;
    for (int64_t i = 0; i < count; i++) {
        square += (a[i] - b[i]) * (a[i] - b[i]);
        whole += b[i] * b[i];
    }
    *norm = sqrt(whole);
    return sqrt(square);
}

/* A result in bf16 has 8 bits, so it is rounded by at most half of 2^-7 of itself; some are made
 * from others that are. */
#define NARROW_LIMIT 0x1p-7

static void compare(const struct trial *trial, const struct trial *plain, bool gradient, int slot)
{
    if (gradient && !trial->calls[0].gradient[slot].data)
        return;
    struct box box;
    double *got = trial_gather(trial, gradient, slot, &box), norm;
    double *right = trial_gather(plain, gradient, slot, &box);
    double error = distance(got, right, box_count(&box), &norm);
    bool narrow = trial->config.element == ELEMENT_BF16;
    double limit = narrow ? NARROW_LIMIT : 1e-5, floor = narrow ? NARROW_LIMIT / 16 : 1e-7;
    /* Added to 1/16, what is zero comes back as rounding. */
    ck_assert_msg(error <= limit * norm + floor * sqrt((double)box_count(&box)),
                  "%s %s, split '%c', %s %d: error %g of %g", trial->config.device->name,
                  trial->node.operation->name, trial->config.split ? trial->config.split : '-',
                  gradient ? "gradient" : "operand", slot, error, norm);
    free(got);
    free(right);
}

static struct trial *run_trial(const struct trial_config *config)
{
    struct trial *trial = trial_create(config);
    trial_forward(trial);
    trial_backward(trial);
    return trial;
}

/* The whole in plain C: what is right. */
static struct trial *run_plain(const struct trial_config *config)
{
    return run_trial(&(struct trial_config){.device = &device_plain,
                                            .like = config->like,
                                            .sizes = config->sizes,
                                            .rounded = config->rounded,
                                            .wanted = WANTED_ALL});
}

static void check_trial(const struct trial_config *config, const struct trial *plain)
{
    const struct operation *operation = config->like->operation;
    struct trial *trial = run_trial(config);
    int output = operation_output(operation);
    for (int i = output; i <= output + operation->statistic_count[FORWARD]; i++)
        compare(trial, plain, false, i);
    for (int i = 0; i < output; i++)
        compare(trial, plain, true, i);
    trial_destroy(trial);
}

START_TEST(pieces_together_are_the_whole)
{
    struct trial_config config = {.sizes = trial_sizes(3, 67, 53, 3, 17, 71, 101),
                                  .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device)
        return;
    struct trial *plain = run_plain(&config);
    const char *splits = "bshnfvkg";
    for (int i = 0; splits[i]; i++) {
        if (!trial_has_dim(config.like, splits[i]))
            continue;
        config.split = splits[i];
        config.accumulate = i % 2 == 1;
        check_trial(&config, plain);
    }
    trial_destroy(plain);
}
END_TEST

START_TEST(every_size_gives_the_same_as_plain_c)
{
    struct trial_config config = {.wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device)
        return;
    const struct sizes sizes[] = {
        trial_sizes(1, 1, 1, 1, 1, 1, 1),
        trial_sizes(2, 5, 3, 2, 4, 7, 3),
        trial_sizes(0, 5, 3, 2, 4, 7, 3), /* no samples */
        trial_sizes(1, 150, 64, 2, 32, 40, 48),
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        config.sizes = sizes[i];
        struct trial *plain = run_plain(&config);
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            config.accumulate = accumulate;
            check_trial(&config, plain);
        }
        trial_destroy(plain);
    }
}
END_TEST

/* More rows than a device looks at together, and more columns than it adds up at once. */
START_TEST(a_large_table_gives_the_same_as_plain_c)
{
    struct trial_config config = {.sizes = trial_sizes(3, 190, 1050, 2, 4, 7, 23),
                                  .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device || strcmp(config.like->operation->name, "embed") != 0)
        return;
    struct trial *plain = run_plain(&config);
    check_trial(&config, plain);
    trial_destroy(plain);
}
END_TEST

START_TEST(each_gradient_can_be_had_alone)
{
    struct trial_config config = {.sizes = trial_sizes(2, 9, 13, 2, 8, 11, 10)};
    config.device = choose(_i, &config.like);
    if (!config.device)
        return;
    struct trial *plain = run_plain(&config);
    for (int i = 0; i < operation_output(config.like->operation); i++) {
        config.wanted = 1u << i;
        check_trial(&config, plain);
    }
    trial_destroy(plain);
}
END_TEST

/* Against plain C in f32 on the same numbers; gradients of weights are f32, or bf16 as the others.
 */
START_TEST(bf16_is_f32_that_is_rounded)
{
    struct trial_config config = {.sizes = trial_sizes(2, 67, 53, 2, 17, 71, 101),
                                  .rounded = true,
                                  .element = ELEMENT_BF16,
                                  .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device)
        return;
    struct trial *plain = run_plain(&config);
    const char splits[] = {0, 'b', 's', 'h', 'n', 'v'};
    for (size_t i = 0; i < sizeof splits; i++) {
        config.split = splits[i];
        config.accumulate = i % 2 == 1;
        config.weight_gradient = i % 2 == 1 ? ELEMENT_BF16 : ELEMENT_F32;
        if (!splits[i] || trial_has_dim(config.like, splits[i]))
            check_trial(&config, plain);
    }
    trial_destroy(plain);
}
END_TEST

/* Where a library needs round addresses, and widths that are multiples of 8, it may be asked. */
START_TEST(bf16_at_round_addresses_is_the_same)
{
    const struct sizes sizes[] = {trial_sizes(2, 64, 64, 2, 32, 40, 48),
                                  trial_sizes(3, 33, 16, 1, 40, 8, 8)};
    struct trial_config config = {
        .aligned = true, .rounded = true, .element = ELEMENT_BF16, .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    for (size_t i = 0; config.device && i < sizeof sizes / sizeof *sizes; i++) {
        config.sizes = sizes[i];
        struct trial *plain = run_plain(&config);
        check_trial(&config, plain);
        trial_destroy(plain);
    }
}
END_TEST

static bool takes_rows(const struct operation *operation)
{
    return strcmp(operation->name, "norm") == 0 || strcmp(operation->name, "rmsnorm") == 0 ||
           operation->is_loss;
}

/* A device may give a row to a warp, to several, or take it in parts, depending on how wide it is.
 */
START_TEST(rows_of_every_width_give_the_same)
{
    static const int widths[] = {264, 520, 776, 1032, 2056, 4104, 8192, 8200};
    struct trial_config config = {.aligned = true, .rounded = true, .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device || config.device == &device_plain || !takes_rows(config.like->operation))
        return;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        config.sizes = trial_sizes(1, 21, widths[i], 1, 8, 8, widths[i]);
        struct trial *plain = run_plain(&config);
        for (int element = 0; element < ELEMENTS; element++) {
            config.element = element;
            config.accumulate = !config.accumulate;
            check_trial(&config, plain);
        }
        config.accumulate = i % 2 == 1;
        trial_destroy(plain);
    }
}
END_TEST

/* More blocks of queries than one, some heads wider than there are queries, and one thread or
 * three. Plain C has neither blocks nor threads, and takes longest here. */
START_TEST(bf16_over_many_places_is_the_same)
{
    const struct sizes sizes[] = {trial_sizes(2, 300, 24, 2, 32, 8, 48),
                                  trial_sizes(1, 130, 24, 3, 128, 8, 8)};
    struct trial_config config = {.rounded = true, .element = ELEMENT_BF16, .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (config.device == &device_plain)
        return;
    for (size_t i = 0; config.device && i < sizeof sizes / sizeof *sizes; i++) {
        config.sizes = sizes[i];
        struct trial *plain = run_plain(&config);
        for (int threads = 1; threads <= 3; threads += 2) {
            config.accumulate = threads == 3;
            if (config.device->threads)
                config.device->threads(threads);
            check_trial(&config, plain);
        }
        trial_destroy(plain);
    }
}
END_TEST

/* The sum over y of dy y; of a loss itself. */
static double objective(struct trial *trial)
{
    int output = operation_output(trial->node.operation);
    struct box box;
    trial_forward(trial);
    double *y = trial_gather(trial, false, output, &box), sum = 0;
    const float *dy = trial->calls[0].gradient[output].data;
    for (int64_t i = 0; i < box_count(&box); i++)
        sum += dy ? dy[i] * y[i] : y[i];
    free(y);
    return sum;
}

/* Four points: the error is step^4 f'''''/30. */
static double slope(struct trial *trial, float *at)
{
    const float step = 0.0625f, here = *at;
    const float places[] = {-2 * step, -step, step, 2 * step};
    const double weights[] = {1, -8, 8, -1};
    double sum = 0;
    for (int i = 0; i < 4; i++) {
        *at = here + places[i];
        sum += weights[i] * objective(trial);
    }
    *at = here;
    return sum / (12 * step);
}

static void check_gradient(struct trial *trial, int operand)
{
    const struct view *view = &trial->calls[0].operand[operand];
    int64_t count = box_count(&view->box);
    double *differences = calloc((size_t)count, sizeof *differences), norm;
    for (int64_t i = 0; i < count; i++)
        differences[i] = slope(trial, (float *)view->data + i);
    struct box box;
    double *gradient = trial_gather(trial, true, operand, &box);
    double error = distance(gradient, differences, count, &norm);
    ck_assert_double_gt(norm, 0.01);
    ck_assert_msg(error <= 3e-4 * norm, "%s %s, gradient %d: error %g of %g",
                  trial->config.device->name, trial->node.operation->name, operand, error, norm);
    free(differences);
    free(gradient);
}

START_TEST(gradients_are_the_slopes_of_the_output)
{
    struct trial_config config = {.sizes = trial_sizes(2, 4, 6, 2, 3, 5, 7), .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device)
        return;
    struct trial *trial = run_trial(&config);
    for (int i = 0; i < operation_output(config.like->operation); i++)
        if (node_differentiates(config.like, i))
            check_gradient(trial, i);
    trial_destroy(trial);
}
END_TEST

/* The gradient of x over that of y, or over the logits. */
START_TEST(a_gradient_may_lie_over_what_it_is_made_from)
{
    struct trial_config config = {.sizes = trial_sizes(2, 9, 37, 2, 8, 35, 41),
                                  .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    int output = config.device ? operation_output(config.like->operation) : 0;
    if (!config.device || (strcmp(config.like->dims[0], config.like->dims[output]) != 0 &&
                           !config.like->operation->is_loss))
        return;
    struct trial *plain = run_plain(&config), *trial = trial_create(&config);
    trial_forward(trial);
    struct kernel_call *call = &trial->calls[0];
    void *apart = call->gradient[0].data;
    call->gradient[0].data =
        config.like->operation->is_loss ? call->operand[0].data : call->gradient[output].data;
    trial_backward(trial);
    for (int i = 0; i < output; i++)
        compare(trial, plain, true, i);
    call->gradient[0].data = apart;
    trial_destroy(trial);
    trial_destroy(plain);
}
END_TEST

/* All that a trial has written, as bytes. */
static bool same_bits(const struct trial *a, const struct trial *b)
{
    for (int slot = 0; slot < VIEWS_MAX; slot++) {
        const struct view *views[][2] = {
            {&a->calls[0].operand[slot], &b->calls[0].operand[slot]},
            {&a->calls[0].gradient[slot], &b->calls[0].gradient[slot]},
        };
        for (int i = 0; i < 2; i++) {
            size_t size = (size_t)box_count(&views[i][0]->box) * element_size(views[i][0]->element);
            if (views[i][0]->data && memcmp(views[i][0]->data, views[i][1]->data, size) != 0)
                return false;
        }
    }
    return true;
}

START_TEST(the_same_number_of_threads_gives_the_same_bits)
{
    struct trial_config config = {
        .sizes = trial_sizes(3, 167, 53, 3, 17, 71, 101), .rounded = true, .wanted = WANTED_ALL};
    config.device = choose(_i, &config.like);
    if (!config.device || !config.device->threads)
        return;
    config.device->threads(3);
    struct trial *plain = run_plain(&config);
    for (int element = 0; element < ELEMENTS; element++) {
        config.element = (enum element)element;
        check_trial(&config, plain);
        struct trial *first = run_trial(&config), *second = run_trial(&config);
        ck_assert(same_bits(first, second));
        trial_destroy(first);
        trial_destroy(second);
    }
    trial_destroy(plain);
}
END_TEST

static void *run_rank(void *context)
{
    struct trial *trial = context;
    if (trial->config.device->threads)
        trial->config.device->threads(1);
    trial_forward(trial);
    trial_backward(trial);
    return NULL;
}

START_TEST(ranks_compute_at_the_same_time)
{
    struct trial_config config = {.sizes = trial_sizes(1, 67, 53, 3, 17, 71, 101),
                                  .element = _i % 2 == 0 ? ELEMENT_F32 : ELEMENT_BF16,
                                  .wanted = WANTED_ALL};
    config.device = choose(_i / 2, &config.like);
    if (!config.device)
        return;
    enum { RANKS = 4 };
    struct trial *trials[RANKS];
    pthread_t ranks[RANKS];
    for (int i = 0; i < RANKS; i++)
        trials[i] = trial_create(&config);
    for (int i = 0; i < RANKS; i++)
        ck_assert_int_eq(pthread_create(&ranks[i], NULL, run_rank, trials[i]), 0);
    for (int i = 0; i < RANKS; i++)
        pthread_join(ranks[i], NULL);
    struct trial *alone = trial_create(&config);
    run_rank(alone);
    for (int i = 0; i < RANKS; i++) {
        ck_assert(same_bits(trials[i], alone));
        trial_destroy(trials[i]);
    }
    trial_destroy(alone);
}
END_TEST

START_TEST(every_operation_has_its_kernels_or_says_that_none_has)
{
    const struct node *like;
    const struct device *device = choose(_i, &like);
    const struct operation *operation = like->operation;
    if (operation->planned) {
        ck_assert_ptr_null(device_kernel(devices[_i / kind_count()], operation));
        return;
    }
    if (!device)
        return;
    const struct kernel *kernel = device_kernel(device, operation);
    ck_assert_ptr_nonnull(kernel);
    for (int direction = 0; direction < DIRECTIONS; direction++)
        for (int phase = 0; phase < operation->phases[direction]; phase++)
            ck_assert(kernel->run[direction][phase] != NULL);
}
END_TEST

/* Else these tests would pass it by. */
START_TEST(every_operation_is_one_of_a_family)
{
    for (int i = 0; operations[i]; i++) {
        int kind = 0;
        while (kind < kind_count() && kind_at(kind)->operation != operations[i])
            kind++;
        ck_assert_msg(kind < kind_count(), "%s", operations[i]->name);
    }
}
END_TEST

int main(void)
{
    int pairs = 0;
    while (devices[pairs])
        pairs++;
    pairs *= kind_count();
    TCase *tcase = tcase_create("kernels");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, every_operation_is_one_of_a_family);
    tcase_add_loop_test(tcase, every_operation_has_its_kernels_or_says_that_none_has, 0, pairs);
    tcase_add_loop_test(tcase, every_size_gives_the_same_as_plain_c, 0, pairs);
    tcase_add_loop_test(tcase, a_large_table_gives_the_same_as_plain_c, 0, pairs);
    tcase_add_loop_test(tcase, pieces_together_are_the_whole, 0, pairs);
    tcase_add_loop_test(tcase, each_gradient_can_be_had_alone, 0, pairs);
    tcase_add_loop_test(tcase, gradients_are_the_slopes_of_the_output, 0, pairs);
    tcase_add_loop_test(tcase, a_gradient_may_lie_over_what_it_is_made_from, 0, pairs);
    tcase_add_loop_test(tcase, the_same_number_of_threads_gives_the_same_bits, 0, pairs);
    tcase_add_loop_test(tcase, ranks_compute_at_the_same_time, 0, 2 * pairs);
    TCase *narrow = tcase_create("bf16");
    tcase_set_timeout(narrow, 60);
    tcase_add_loop_test(narrow, bf16_is_f32_that_is_rounded, 0, pairs);
    tcase_add_loop_test(narrow, bf16_at_round_addresses_is_the_same, 0, pairs);
    tcase_add_loop_test(narrow, bf16_over_many_places_is_the_same, 0, pairs);
    tcase_add_loop_test(narrow, rows_of_every_width_give_the_same, 0, pairs);
    Suite *suite = suite_create("kernels");
    suite_add_tcase(suite, tcase);
    suite_add_tcase(suite, narrow);
    SRunner *runner = srunner_create(suite);
    srunner_add_suite(runner, device_suite());
    srunner_add_suite(runner, together_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
