/* cases.h - the conformance suite of collectives: every case runs for every row of the table. */
#ifndef TESTS_WORKER_COLLECTIVES_CASES_H
#define TESTS_WORKER_COLLECTIVES_CASES_H

#include "common/base/random.h"
#include "tests/support/ranks.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define RANKS_MAX 5

/* What rank holds at index of its data in the call-th call; sums of it depend on their order. */
static inline float value(int rank, uint64_t call, size_t index)
{
    return (float)(random_uniform((uint64_t)rank, call, index) - 0.5);
}

static inline float *values(int rank, uint64_t call, size_t count)
{
    float *data = malloc((count + 1) * sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = value(rank, call, i);
    return data;
}

/* ck_assert writes a record each time: too much for every element. */
static inline void must_equal(float have, float expected)
{
    if (have != expected)
        ck_abort_msg("have %.9g, expected %.9g", (double)have, (double)expected);
}

static inline size_t total(const size_t *counts, int count)
{
    size_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}

/* All ranks, in their order. */
static inline struct fabric_group *world(struct test_rank *rank)
{
    int ranks[RANKS_MAX];
    for (int i = 0; i < rank->count; i++)
        ranks[i] = i;
    struct fabric_group *group;
    struct error err;
    ck_assert_msg(rank->library->group(rank->fabric, ranks, rank->count, &group, &err) == 0, "%s",
                  err.text);
    return group;
}

/* No event says that a thread sleeps inside a call; the kernel does. */
static inline bool thread_sleeps(pid_t process, pid_t thread)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)process, (int)thread);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    return state == 'S';
}

TCase *part_cases(int rows);
TCase *sequence_cases(int rows);
TCase *failure_cases(int rows);
/* Of local alone. */
TCase *local_cases(void);
/* Of gloo alone, with ranks as processes. */
TCase *process_cases(void);
TCase *leaving_cases(void);

#endif
