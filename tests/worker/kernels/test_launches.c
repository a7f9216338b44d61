/* test_launches.c - what is to be done in few launches of kernels is: on the emulated device, which
 * counts them. */
#include "tests/support/suite.h"
#include "tests/worker/kernels/apart.h"
#include "tests/worker/kernels/trial.h"
#include "worker/kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

extern int emulated_launches;
extern bool emulated_refuses_bias;

static const struct accelerator *accelerator;
static struct device_stream *lane;
static float *memory; /* of the device: 1 in all elements */

#define MEMORY 4096

static void setup(void)
{
    static float ones[MEMORY];
    void *there;
    struct error err = {""};
    accelerator = device_cuda.accelerator;
    for (int i = 0; i < MEMORY; i++)
        ones[i] = 1;
    ck_assert_int_eq(accelerator->stream_open(&lane, true, &err), 0);
    ck_assert_int_eq(accelerator->reserve(sizeof ones, &there, &err), 0);
    memory = there;
    accelerator->enter(lane);
    accelerator->upload(memory, ones, sizeof ones);
}

static void teardown(void)
{
    struct error err = {""};
    accelerator->enter(lane); /* a trial leaves it */
    ck_assert_msg(accelerator->finish(&err) == 0, "%s", err.text);
    accelerator->enter(NULL);
    accelerator->release(memory);
    accelerator->stream_close(lane);
}

/* Launches that the update of so many slices takes; every second one is empty. */
static int launches_of(int slices)
{
    struct update_call calls[256];
    int before = emulated_launches;
    ck_assert_int_le(slices, 256);
    for (int i = 0; i < slices; i++) {
        float *place = memory + 16 + i % 512;
        calls[i] = (struct update_call){.parameter = place,
                                        .gradient = place + 512,
                                        .first = place + 1024,
                                        .second = place + 1536,
                                        .count = (size_t)i % 2,
                                        .rate = 0.1f,
                                        .beta1 = 0.9f,
                                        .beta2 = 0.9f,
                                        .epsilon = 1,
                                        .loss = memory,
                                        .square_sum = memory,
                                        .step = 1};
    }
    device_cuda.update_all(calls, slices);
    return emulated_launches - before;
}

START_TEST(many_slices_are_updated_in_one_launch)
{
    ck_assert_int_eq(launches_of(0), 0);
    ck_assert_int_eq(launches_of(1), 0);
    ck_assert_int_eq(launches_of(2), 1);
    ck_assert_int_eq(launches_of(128), 1);
    ck_assert_int_eq(launches_of(130), 2);
}
END_TEST

/* Launches of a norm, whose rows lie here whole or in pieces, forward and backward. */
static void launches_of_norm(const char *name, char split, int launches[DIRECTIONS])
{
    const struct trial_config config = {.device = &device_cuda,
                                        .like = kind_find(name),
                                        .sizes = trial_sizes(2, 3, 40, 1, 1, 1, 1),
                                        .split = split,
                                        .wanted = 1};
    struct trial *trial = trial_create(&config);
    int before = emulated_launches;
    trial_forward(trial);
    launches[FORWARD] = emulated_launches - before;
    before = emulated_launches;
    trial_backward(trial);
    launches[BACKWARD] = emulated_launches - before;
    trial_destroy(trial);
}

START_TEST(a_norm_of_whole_rows_takes_one_launch)
{
    int launches[DIRECTIONS];
    launches_of_norm("norm", 0, launches);
    ck_assert_int_eq(launches[FORWARD], 1);
    ck_assert_int_eq(launches[BACKWARD], 1);
    launches_of_norm("rmsnorm", 0, launches);
    ck_assert_int_eq(launches[FORWARD], 1);
    ck_assert_int_eq(launches[BACKWARD], 1);
    launches_of_norm("norm", 'h', launches);
    ck_assert_int_eq(launches[FORWARD] % 3, 0);
    ck_assert_int_gt(launches[FORWARD], 3);
}
END_TEST

/* ---- a product and its bias ---- */

/* Launches for y = x w + b, whose distance from plain C's is checked. */
static int launches_of_product(int hidden, enum element element)
{
    struct trial_config config = {.device = &device_cuda,
                                  .like = kind_find("fc1"),
                                  .sizes = trial_sizes(2, 3, hidden, 1, 1, 24, 1),
                                  .aligned = true,
                                  .rounded = true,
                                  .element = element};
    struct trial *trial = trial_create(&config);
    int before = emulated_launches, output = operation_output(config.like->operation);
    trial_forward(trial);
    int launches = emulated_launches - before;
    config.device = &device_plain;
    struct trial *plain = trial_create(&config);
    trial_forward(plain);
    struct box box;
    double *got = trial_gather(trial, false, output, &box);
    double *right = trial_gather(plain, false, output, &box);
    for (int64_t i = 0; i < box_count(&box); i++)
        ck_assert_double_eq_tol(got[i], right[i], element == ELEMENT_BF16 ? 0.25 : 1e-4);
    free(got);
    free(right);
    trial_destroy(trial);
    trial_destroy(plain);
    return launches;
}

START_TEST(a_bias_is_added_by_the_product_unless_the_library_cannot)
{
    enum element element = (enum element)_i;
    ck_assert_int_eq(launches_of_product(40, element), 0);
    ck_assert_int_eq(launches_of_product(40, element), 0); /* it is known by now */
    emulated_refuses_bias = true;
    ck_assert_int_eq(launches_of_product(48, element), 1);
    ck_assert_int_eq(launches_of_product(48, element), 1); /* nor is it asked again */
    ck_assert_int_eq(launches_of_product(40, element), 0);
}
END_TEST

/* ---- a sum and the norm of it, in one launch ---- */

struct both {
    struct trial *sum, *norm;
    struct kernel_call *add, *normalise; /* theirs */
    void *own;                           /* what the norm was of before */
};

static struct both make_both(const char *name)
{
    const struct trial_config sum = {.device = &device_cuda,
                                     .like = kind_find("add"),
                                     .sizes = trial_sizes(2, 3, 40, 1, 1, 1, 1)};
    struct trial_config norm = sum;
    norm.like = kind_find(name);
    struct both both = {.sum = trial_create(&sum), .norm = trial_create(&norm)};
    both.add = &both.sum->calls[0];
    both.normalise = &both.norm->calls[0];
    both.own = both.normalise->operand[0].data;
    both.normalise->operand[0].data = both.add->operand[2].data;
    return both;
}

static void destroy_both(const struct both *both)
{
    both->normalise->operand[0].data = both->own;
    trial_destroy(both->sum);
    trial_destroy(both->norm);
}

/* On the device, and back. */
static bool run_there(const struct kernel_pair *pair, const struct both *both)
{
    struct kernel_call add = *both->add, normalise = *both->normalise;
    struct apart *apart = apart_begin(&device_cuda);
    for (int i = 0; i < VIEWS_MAX; i++) {
        struct view *views[] = {&add.operand[i], &normalise.operand[i]};
        for (int j = 0; j < 2; j++)
            views[j]->data = apart_bring(apart, views[j]->data,
                                         view_elements(views[j]) * element_size(views[j]->element));
        add.gradient[i].data = normalise.gradient[i].data = NULL;
    }
    bool done = pair->run(&add, &normalise);
    apart_end(apart);
    return done;
}

static const struct kernel_pair *pair_of(const struct both *both)
{
    const struct kernel_pair *pair = device_cuda.pairs;
    while (pair->second && strcmp(pair->second->name, both->norm->node.operation->name) != 0)
        pair++;
    ck_assert_ptr_nonnull(pair->second);
    return pair;
}

static double *output_of(const struct both *both, size_t *count)
{
    struct box box;
    int output = operation_output(both->norm->node.operation);
    double *values = trial_gather(both->norm, false, output, &box);
    *count = (size_t)box_count(&box);
    return values;
}

static const char *const norms_of_sums[] = {"norm", "rmsnorm"};

START_TEST(a_sum_and_the_norm_of_it_take_one_launch_and_have_the_same_bits)
{
    struct both both = make_both(norms_of_sums[_i]);
    size_t count;
    trial_forward(both.sum);
    trial_forward(both.norm);
    double *apart = output_of(&both, &count);
    int before = emulated_launches;
    ck_assert(run_there(pair_of(&both), &both));
    ck_assert_int_eq(emulated_launches - before, 1);
    double *at_once = output_of(&both, &count);
    ck_assert_mem_eq(apart, at_once, count * sizeof *apart);
    free(apart);
    free(at_once);
    destroy_both(&both);
}
END_TEST

/* Rows that are still to be added up would be written over. */
START_TEST(what_the_norm_makes_may_not_lie_across_what_is_added)
{
    struct both both = make_both(norms_of_sums[_i]);
    const struct kernel_pair *pair = pair_of(&both); /* it says no before it touches anything */
    int output = operation_output(both.norm->node.operation), before = emulated_launches;
    struct view *made = &both.normalise->operand[output], *sums = made + 1;
    void *made_at = made->data, *sums_at = sums->data;
    for (int i = 0; i < 2; i++) {
        float *added = both.add->operand[i].data;
        made->data = added + 40;
        ck_assert(!pair->run(both.add, both.normalise));
        made->data = made_at;
        sums->data = added + 40;
        ck_assert(!pair->run(both.add, both.normalise));
        sums->data = sums_at;
    }
    ck_assert_int_eq(emulated_launches, before);
    made->data = both.add->operand[1].data;
    ck_assert(run_there(pair_of(&both), &both));
    made->data = made_at;
    destroy_both(&both);
}
END_TEST

SUITE(launches)
{
    TCase *updates = tcase_create("updates"), *norms = tcase_create("norms"),
          *products = tcase_create("products"), *pairs = tcase_create("pairs");
    tcase_add_checked_fixture(updates, setup, teardown);
    tcase_add_test(updates, many_slices_are_updated_in_one_launch);
    tcase_add_test(norms, a_norm_of_whole_rows_takes_one_launch);
    tcase_add_loop_test(products, a_bias_is_added_by_the_product_unless_the_library_cannot, 0,
                        ELEMENTS);
    tcase_add_checked_fixture(pairs, setup, teardown);
    tcase_add_loop_test(pairs, a_sum_and_the_norm_of_it_take_one_launch_and_have_the_same_bits, 0,
                        2);
    tcase_add_loop_test(pairs, what_the_norm_makes_may_not_lie_across_what_is_added, 0, 2);
    return suite_run("launches", updates, norms, products, pairs, NULL);
}
