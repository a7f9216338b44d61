/* test_parts.c - calls that move several tensors at once, each as if it were alone. */
#include "tests/worker/collectives/cases.h"

#include <stdint.h>
#include <stdlib.h>

#define LIMIT_S 20

/* Chunks that are packed, chunks that are not, and none. */
#define PARTS 7

static size_t part_count(int part, int member)
{
    static const size_t lengths[PARTS] = {3, 20000, 0, 8192, 1, 8193, 50};
    return member == 1 && part == 1 ? 5 : lengths[part] + (lengths[part] ? (size_t)member : 0);
}

/* Of each member to begin with, `whole` or only its own chunks: parts with room for both ends. */
static void make_parts(const struct test_rank *rank, bool whole, size_t counts[][RANKS_MAX],
                       struct collective_part *parts)
{
    for (int part = 0; part < PARTS; part++) {
        for (int i = 0; i < rank->count; i++)
            counts[part][i] = part_count(part, i);
        size_t all = total(counts[part], rank->count), own = counts[part][rank->rank];
        parts[part] = (struct collective_part){
            .source = values(rank->rank, (size_t)part, whole ? all : own),
            .destination = calloc((whole ? own : all) + 1, sizeof(float)),
            .counts = counts[part],
        };
    }
}

static void free_parts(struct collective_part *parts)
{
    for (int part = 0; part < PARTS; part++) {
        free((float *)(uintptr_t)parts[part].source);
        free(parts[part].destination);
    }
}

static void check_gathered(const struct test_rank *rank, int part, const struct collective_part *is)
{
    const float *at = is->destination;
    for (int i = 0; i < rank->count; i++)
        for (size_t j = 0; j < is->counts[i]; j++)
            must_equal(*at++, value(i, (uint64_t)part, j));
}

static void check_scattered(const struct test_rank *rank, int part,
                            const struct collective_part *is)
{
    size_t offset = total(is->counts, rank->rank);
    for (size_t i = 0; i < is->counts[rank->rank]; i++) {
        float expected = 0;
        for (int j = 0; j < rank->count; j++)
            expected += value(j, (uint64_t)part, offset + i);
        must_equal(is->destination[i], expected);
    }
}

static void many_parts_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    struct collective_part parts[PARTS];
    size_t counts[PARTS][RANKS_MAX];
    for (int again = 0; again < 3; again++) {
        make_parts(rank, false, counts, parts);
        ck_assert_int_eq(rank->library->all_gather(group, ELEMENT_F32, parts, PARTS, NULL), 0);
        for (int part = 0; part < PARTS; part++)
            check_gathered(rank, part, &parts[part]);
        free_parts(parts);
        make_parts(rank, true, counts, parts);
        ck_assert_int_eq(rank->library->reduce_scatter(group, ELEMENT_F32, parts, PARTS, NULL), 0);
        for (int part = 0; part < PARTS; part++)
            check_scattered(rank, part, &parts[part]);
        free_parts(parts);
    }
}

START_TEST(one_call_moves_several_tensors)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, many_parts_body, NULL);
}
END_TEST

TCase *part_cases(int rows)
{
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 60);
    tcase_add_loop_test(parts, one_call_moves_several_tensors, 0, rows);
    return parts;
}
