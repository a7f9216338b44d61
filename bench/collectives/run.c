/* run.c - measures collectives between two ranks, which are threads of this process: the latency of
 * an all-reduce of few elements; the bytes of a large one over its time ("algorithm bandwidth" of
 * nccl-tests); and all-gathers of a block's weights, in one call and one by one. Medians count.
 *
 * Then each rank, with the threads of its library, is bound to a core of its own, and computes
 * between the calls, as ranks that train do. The mean counts. */
#include "tests/support/ranks.h"
#include "worker/hardware/cpuset.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 9
#define SMALL 16 /* elements */
#define LARGE_BYTES (16u << 20)
#define TENSORS 16 /* of a block */
#define BOUND_ELEMENTS (32u << 10)
#define BOUND_SAMPLES 400
#define COMPUTED_S 1e-3

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct work {
    struct test_rank *rank;
    struct fabric_group *group;
    float *data;
    size_t count; /* of a sum */
    enum element element;
    struct collective_part parts[TENSORS];
};

static void need(int rc, const struct error *err)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", err->text);
        exit(EXIT_FAILURE);
    }
}

static void sum(struct work *work)
{
    struct error err;
    need(work->rank->library->all_reduce(work->group, work->element, work->data, work->count,
                                         REDUCTION_SUM, &err),
         &err);
}

static void gather_together(struct work *work)
{
    struct error err;
    need(work->rank->library->all_gather(work->group, ELEMENT_F32, work->parts, TENSORS, &err),
         &err);
}

static void gather_one_by_one(struct work *work)
{
    struct error err;
    for (int i = 0; i < TENSORS; i++)
        need(work->rank->library->all_gather(work->group, ELEMENT_F32, &work->parts[i], 1, &err),
             &err);
}

/* Seconds of one call. */
static double measure(struct work *work, void (*call)(struct work *work), int calls)
{
    double samples[SAMPLES];
    for (int i = -1; i < SAMPLES; i++) { /* the first is not counted: it touches the memory */
        double begin = now_s();
        for (int j = 0; j < calls; j++)
            call(work);
        if (i >= 0)
            samples[i] = (now_s() - begin) / calls;
    }
    qsort(samples, SAMPLES, sizeof *samples, ascending);
    return samples[SAMPLES / 2];
}

/* The weights of a block of GPT of hidden 128, in halves. */
static void lay_out_block(struct work *work, size_t (*counts)[2])
{
    static const size_t sizes[TENSORS] = {64,   64, 8192, 64, 8192,  64,  8192,  64,
                                          8192, 64, 64,   64, 32768, 256, 32768, 64};
    float *at = work->data;
    for (int i = 0; i < TENSORS; i++) {
        counts[i][0] = counts[i][1] = sizes[i];
        work->parts[i] = (struct collective_part){
            .source = at + (work->rank->rank == 0 ? 0 : sizes[i]),
            .destination = at,
            .counts = counts[i],
        };
        at += 2 * sizes[i];
    }
}

static void body(struct test_rank *rank)
{
    const int ranks[] = {0, 1};
    const size_t large = LARGE_BYTES / sizeof(float);
    struct work work = {.rank = rank, .data = calloc(large, sizeof(float)), .count = SMALL};
    size_t counts[TENSORS][2];
    struct error err;
    need(rank->library->group(rank->fabric, ranks, 2, &work.group, &err), &err);
    double small_s = measure(&work, sum, 1000);
    work.count = large;
    double large_s = measure(&work, sum, 1);
    work.element = ELEMENT_BF16;
    work.count = LARGE_BYTES / element_size(ELEMENT_BF16);
    double narrow_s = measure(&work, sum, 1);
    lay_out_block(&work, counts);
    double apart_s = measure(&work, gather_one_by_one, 30);
    double together_s = measure(&work, gather_together, 30);
    free(work.data);
    if (rank->rank != 0)
        return;
    const char *name = rank->library->name;
    printf("bench collectives/%s_all_reduce_2_small_s %.3g s\n", name, small_s);
    printf("bench collectives/%s_all_reduce_2_16MiB_s %.3g s\n", name, large_s);
    printf("bench collectives/%s_all_reduce_2_16MiB_bytes_per_s %.4g B/s\n", name,
           LARGE_BYTES / large_s);
    printf("bench collectives/%s_all_reduce_2_16MiB_bf16_bytes_per_s %.4g B/s\n", name,
           LARGE_BYTES / narrow_s);
    printf("bench collectives/%s_gather_block_2_s %.3g s  # %d tensors in one call; one by one "
           "%.3g s\n",
           name, together_s, TENSORS, apart_s);
}

static const struct collectives *to_bind; /* ranks on it are bound before they open it */

static int open_bound(const struct fabric_config *config, struct fabric **out, struct error *err)
{
    cpu_set_t sets[CPUSETS_MAX];
    int threads;
    cpuset_share(config->count, sets);
    need(cpuset_bind(&sets[config->rank], &threads, err), err);
    return to_bind->open(config, out, err);
}

static void compute(void)
{
    double begin = now_s();
    volatile float sum = 0;
    while (now_s() - begin < COMPUTED_S)
        for (int i = 0; i < 1000; i++)
            sum = sum + 1;
}

static void body_bound(struct test_rank *rank)
{
    const int ranks[] = {0, 1};
    struct work work = {
        .rank = rank, .data = calloc(BOUND_ELEMENTS, sizeof(float)), .count = BOUND_ELEMENTS};
    double total_s = 0;
    struct error err;
    need(rank->library->group(rank->fabric, ranks, 2, &work.group, &err), &err);
    for (int i = -1; i < BOUND_SAMPLES; i++) {
        compute();
        double begin = now_s();
        sum(&work);
        total_s += i < 0 ? 0 : now_s() - begin;
    }
    free(work.data);
    if (rank->rank == 0)
        printf(
            "bench collectives/%s_all_reduce_2_128KiB_bound_s %.3g s  # mean, each rank bound to "
            "a core\n",
            rank->library->name, total_s / BOUND_SAMPLES);
}

static void measure_bound(const struct collectives *library)
{
    struct collectives bound = *library;
    to_bind = library;
    bound.open = open_bound;
    test_ranks_run(&bound, 2, 60, body_bound, NULL);
}

int main(void)
{
    for (int i = 0; collective_libraries[i]; i++) {
        test_ranks_run(collective_libraries[i], 2, 60, body, NULL);
        measure_bound(collective_libraries[i]);
    }
    puts("bench collectives done");
    return EXIT_SUCCESS;
}
