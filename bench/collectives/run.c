/* run.c - how fast two ranks on this machine sum: the latency of few elements, and the bytes of a
 * large sum over its time ("algorithm bandwidth" of nccl-tests). Medians, ranks as threads. */
#include "tests/support/ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES 9
#define SMALL 16 /* elements */
#define LARGE_BYTES (16u << 20)

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

/* Seconds of one sum. */
static double measure(struct test_rank *rank, struct fabric_group *group, float *data, size_t count,
                      int calls)
{
    double samples[SAMPLES];
    for (int i = -1; i < SAMPLES; i++) { /* the first is not counted: it touches the memory */
        double begin = now_s();
        for (int j = 0; j < calls; j++) {
            struct error err;
            if (rank->library->all_reduce(group, ELEMENT_F32, data, count, REDUCTION_SUM, &err) <
                0) {
                fprintf(stderr, "%s\n", err.text);
                exit(EXIT_FAILURE);
            }
        }
        if (i >= 0)
            samples[i] = (now_s() - begin) / calls;
    }
    qsort(samples, SAMPLES, sizeof *samples, ascending);
    return samples[SAMPLES / 2];
}

static void body(struct test_rank *rank)
{
    const int ranks[] = {0, 1};
    struct fabric_group *group;
    struct error err;
    if (rank->library->group(rank->fabric, ranks, 2, &group, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(EXIT_FAILURE);
    }
    const size_t large = LARGE_BYTES / sizeof(float);
    float *data = calloc(large, sizeof *data);
    double small_s = measure(rank, group, data, SMALL, 1000);
    double large_s = measure(rank, group, data, large, 1);
    free(data);
    if (rank->rank != 0)
        return;
    const char *name = rank->library->name;
    printf("bench collectives/%s_all_reduce_2_small_s %.3g s\n", name, small_s);
    printf("bench collectives/%s_all_reduce_2_16MiB_s %.3g s\n", name, large_s);
    printf("bench collectives/%s_all_reduce_2_16MiB_bytes_per_s %.4g B/s\n", name,
           LARGE_BYTES / large_s);
}

int main(void)
{
    for (int i = 0; collective_libraries[i]; i++)
        test_ranks_run(collective_libraries[i], 2, 60, body, NULL);
    puts("bench collectives done");
    return EXIT_SUCCESS;
}
