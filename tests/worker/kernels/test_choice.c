/* test_choice.c - a product large enough to be measured takes the fastest way that has the bits of
 * the first, and the next process takes it from the file. On the emulated device, which has three
 * ways: the first, a faster one, and the fastest, whose bits are others. */
#include "common/base/memory.h"
#include "tests/support/suite.h"
#include "tests/worker/kernels/apart.h"
#include "tests/worker/kernels/trial.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern int emulated_products, emulated_graphs;
extern uint64_t emulated_limit;

static char folder[] = "/tmp/gimbal-choice-XXXXXX";

static void setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", folder, 1), 0);
}

static void teardown(void)
{
    char *command = xasprintf("rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
}

static struct trial_config layer(int rows)
{
    return (struct trial_config){.device = &device_cuda,
                                 .like = kind_find("fc1"),
                                 .sizes = trial_sizes(1, rows, 200, 1, 1, 300, 1),
                                 .element = ELEMENT_BF16,
                                 .rounded = true};
}

/* Products that one forward of such a layer asks for. */
static int products_run(int rows)
{
    const struct trial_config config = layer(rows);
    int before = emulated_products;
    struct trial *trial = trial_create(&config);
    trial_forward(trial);
    trial_destroy(trial);
    return emulated_products - before;
}

/* To prepare such a layer, and to run it once. Its operands are zeros, of which all algorithms make
 * the same. */
static int products_prepared(int rows)
{
    const struct trial_config config = layer(rows);
    struct trial *trial = trial_create(&config);
    struct kernel_call call = trial->calls[0];
    const struct kernel *kernel = device_kernel(&device_cuda, config.like->operation);
    struct apart *apart = apart_begin(&device_cuda);
    for (int slot = 0; slot < VIEWS_MAX; slot++) {
        struct view *view = &call.operand[slot];
        size_t bytes = view_elements(view) * element_size(view->element);
        if (view->data)
            memset(view->data, 0, bytes);
        view->data = apart_bring(apart, view->data, bytes);
    }
    int before = emulated_products;
    kernel->prepare(&call, FORWARD);
    kernel->run[FORWARD][0](&call);
    apart_end(apart);
    trial_destroy(trial);
    return emulated_products - before;
}

/* In a process of its own, which forks leave as it is. */
static int products_of_another(int products_of(int rows), int rows)
{
    int ends[2], products = 0;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        products = products_of(rows);
        ck_assert_int_eq(write(ends[1], &products, sizeof products), sizeof products);
        _exit(0);
    }
    ck_assert_int_eq(read(ends[0], &products, sizeof products), sizeof products);
    close(ends[0]);
    close(ends[1]);
    return products;
}

/* The one file there, as text. */
static char *read_file(void)
{
    char *at = xasprintf("%s/gimbal", folder), *text = xcalloc(1, 4096);
    DIR *entries = opendir(at);
    ck_assert_ptr_nonnull(entries);
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        char *path = xasprintf("%s/%s", at, entry->d_name);
        FILE *file = entry->d_name[0] == 'p' ? fopen(path, "re") : NULL;
        if (file) {
            ck_assert_uint_gt(fread(text, 1, 4095, file), 0);
            fclose(file);
        }
        free(path);
    }
    closedir(entries);
    free(at);
    return text;
}

START_TEST(a_large_product_is_measured_once_and_keeps_its_bits)
{
    /* One for the first way's bits; each way once to compare, and four times where they are the
     * same; then the product itself. */
    ck_assert_int_eq(products_of_another(products_run, 150), 1 + 3 + 2 * 4 + 1);
    ck_assert_int_eq(products_of_another(products_run, 150), 1);
    char *text = read_file();
    static const char first[] = "gimbal products 3, cuBLASLt 1, emulated device\n";
    const char *choice = text + strlen(first);
    ck_assert_msg(strncmp(text, first, strlen(first)) == 0, "%s", text);
    ck_assert_int_eq(strncmp(choice + 16, "01", 2), 0); /* the second number is the way */
    free(text);
}
END_TEST

/* Run to be loaded, too: once to overwrite and once to add. */
START_TEST(a_product_is_measured_when_it_is_prepared)
{
    ck_assert_int_eq(products_of_another(products_prepared, 150), 1 + 3 + 2 * 4 + 2 + 1);
    ck_assert_int_eq(products_of_another(products_prepared, 150), 2 + 1);
    ck_assert_int_eq(products_of_another(products_run, 150), 1);
}
END_TEST

START_TEST(a_small_product_is_not_measured)
{
    ck_assert_int_eq(products_run(3), 1);
}
END_TEST

/* Graphs that one forward and one backward of attention run. */
static int graphs_of(const char *name, int width, bool aligned, enum element element)
{
    struct trial_config config = {.device = &device_cuda,
                                  .like = kind_find(name),
                                  .sizes = trial_sizes(2, 16, 1, 2, width, 1, 1),
                                  .aligned = aligned,
                                  .element = element,
                                  .wanted = WANTED_ALL};
    int before = emulated_graphs;
    struct trial *trial = trial_create(&config);
    trial_forward(trial);
    trial_backward(trial);
    trial_destroy(trial);
    return emulated_graphs - before;
}

START_TEST(attention_is_by_the_library_where_it_takes_it)
{
    ck_assert_int_eq(graphs_of("causal_attention", 32, true, ELEMENT_BF16), 2);
    ck_assert_int_eq(graphs_of("grouped_attention", 40, true, ELEMENT_BF16), 2);
    ck_assert_int_eq(graphs_of("causal_attention", 32, true, ELEMENT_F32), 0);
    ck_assert_int_eq(graphs_of("causal_attention", 36, true, ELEMENT_BF16), 0);
    ck_assert_int_eq(graphs_of("causal_attention", 24, true, ELEMENT_BF16),
                     0); /* never seen to be right */
    ck_assert_int_eq(graphs_of("causal_attention", 32, false, ELEMENT_BF16), 0);
    ck_assert_int_eq(graphs_of("attention", 32, true, ELEMENT_BF16), 0); /* it sees all keys */
}
END_TEST

/* The gradients that attention leaves where the device has so much memory in all, and the graphs
 * that were run for it: in a process of its own, whose stream is opened then. */
struct attention {
    const char *name;
    int samples, seq, heads;
    int graphs_in_parts;
};

#define GRADIENTS_MAX (1 << 18)
struct attended {
    int graphs;
    size_t count;
    double gradients[GRADIENTS_MAX];
};

static void attend(const struct attention *attention, struct attended *out)
{
    struct trial_config config = {
        .device = &device_cuda,
        .like = kind_find(attention->name),
        .sizes = trial_sizes(attention->samples, attention->seq, 1, attention->heads, 32, 1, 1),
        .aligned = true,
        .rounded = true,
        .element = ELEMENT_BF16,
        .wanted = WANTED_ALL};
    struct trial *trial = trial_create(&config);
    trial_forward(trial);
    trial_backward(trial);
    out->graphs = emulated_graphs;
    for (int input = 0; input < 3; input++) {
        struct box box;
        double *gradient = trial_gather(trial, true, input, &box);
        for (int64_t i = 0; i < box_count(&box); i++)
            out->gradients[out->count++] = gradient[i];
        free(gradient);
    }
    trial_destroy(trial);
}

static struct attended *attended_with(uint64_t memory, const struct attention *attention)
{
    struct attended *out =
        mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(out, MAP_FAILED);
    int status;
    pid_t child = fork();
    if (child == 0) {
        emulated_limit = memory;
        attend(attention, out);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    return out;
}

/* With 256 KiB for libraries, and with what is enough for all at once: a head's scores are 32 KiB.
 */
static const struct attention attentions[] = {
    {"causal_attention", 4, 128, 4, 4},  /* a sample at a time */
    {"causal_attention", 1, 128, 16, 4}, /* four heads at a time: eight are a little too much */
    {"grouped_attention", 1, 128, 4, 2}, /* those of two of four heads of keys */
};

START_TEST(attention_takes_no_more_memory_than_libraries_have)
{
    const struct attention *attention = &attentions[_i];
    struct attended *whole = attended_with(UINT64_C(4) << 30, attention);
    struct attended *parts = attended_with(UINT64_C(16) << 20, attention);
    ck_assert_int_eq(whole->graphs, 2);
    ck_assert_int_eq(parts->graphs, 1 + attention->graphs_in_parts);
    ck_assert_uint_gt(whole->count, 0);
    ck_assert_mem_eq(whole->gradients, parts->gradients, whole->count * sizeof(double));
}
END_TEST

START_TEST(a_lane_holds_what_the_device_says)
{
    const struct accelerator *accelerator = device_cuda.accelerator;
    uint64_t before, after, libraries;
    struct device_stream *lanes[2];
    struct error err = {""};
    ck_assert_int_eq(accelerator->free_bytes(&before, &err), 0);
    ck_assert_int_eq(accelerator->libraries(&libraries, &err), 0);
    ck_assert_int_eq(accelerator->stream_open(&lanes[0], false, &err), 0);
    ck_assert_int_eq(accelerator->free_bytes(&after, &err), 0);
    ck_assert_uint_eq(after, before);
    ck_assert_int_eq(accelerator->stream_open(&lanes[1], true, &err), 0);
    ck_assert_int_eq(accelerator->free_bytes(&after, &err), 0);
    ck_assert_uint_eq(after, before - libraries);
    accelerator->stream_close(lanes[0]);
    accelerator->stream_close(lanes[1]);
    void *all_but;
    ck_assert_int_eq(accelerator->reserve(before - libraries + 1, &all_but, &err), 0);
    ck_assert_int_eq(accelerator->stream_open(&lanes[0], true, &err), -ENOMEM);
    accelerator->release(all_but);
    ck_assert_msg(strncmp(err.text, "memory for libraries: ", 22) == 0, "%s", err.text);
}
END_TEST

START_TEST(a_damaged_file_costs_measuring_again)
{
    ck_assert_int_eq(products_of_another(products_run, 150), 13);
    char *command = xasprintf("sed -i 's/ nn / nt /' '%s'/gimbal/products-*", folder);
    ck_assert_int_eq(system(command), 0);
    free(command);
    ck_assert_int_eq(products_of_another(products_run, 150), 13);
    ck_assert_int_eq(products_of_another(products_run, 150), 1);
}
END_TEST

SUITE(choice)
{
    TCase *tcase = tcase_create("choice");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_large_product_is_measured_once_and_keeps_its_bits);
    tcase_add_test(tcase, a_product_is_measured_when_it_is_prepared);
    tcase_add_test(tcase, a_small_product_is_not_measured);
    tcase_add_test(tcase, attention_is_by_the_library_where_it_takes_it);
    tcase_add_loop_test(tcase, attention_takes_no_more_memory_than_libraries_have, 0,
                        (int)(sizeof attentions / sizeof *attentions));
    tcase_add_test(tcase, a_lane_holds_what_the_device_says);
    tcase_add_test(tcase, a_damaged_file_costs_measuring_again);
    return suite_run("choice", tcase, NULL);
}
