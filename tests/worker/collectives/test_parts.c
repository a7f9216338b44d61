/* test_parts.c - calls that move several tensors at once, each as if it were alone; and the same
 * calls in bf16. */
#include "tests/worker/collectives/cases.h"

#include <stdint.h>
#include <stdlib.h>

#define LIMIT_S 20

/* Chunks that are packed, chunks that are not, and none. */
#define PARTS 7

static size_t part_count(int part, int member)
{
    static const size_t lengths[PARTS] = {3, 20000, 0, 16384, 1, 16385, 50};
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

static void free_parts(struct collective_part *parts, int count)
{
    for (int part = 0; part < count; part++) {
        free((void *)(uintptr_t)parts[part].source);
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
    const float *got = is->destination;
    size_t offset = total(is->counts, rank->rank);
    for (size_t i = 0; i < is->counts[rank->rank]; i++) {
        float expected = 0;
        for (int j = 0; j < rank->count; j++)
            expected += value(j, (uint64_t)part, offset + i);
        must_equal(got[i], expected);
    }
}

static void many_parts_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    struct collective_part parts[PARTS];
    size_t counts[PARTS][RANKS_MAX];
    struct error err;
    for (int again = 0; again < 3; again++) {
        make_parts(rank, false, counts, parts);
        ck_assert_msg(rank->library->all_gather(group, ELEMENT_F32, parts, PARTS, &err) == 0, "%s",
                      err.text);
        for (int part = 0; part < PARTS; part++)
            check_gathered(rank, part, &parts[part]);
        free_parts(parts, PARTS);
        make_parts(rank, true, counts, parts);
        ck_assert_msg(rank->library->reduce_scatter(group, ELEMENT_F32, parts, PARTS, &err) == 0,
                      "%s", err.text);
        for (int part = 0; part < PARTS; part++)
            check_scattered(rank, part, &parts[part]);
        free_parts(parts, PARTS);
    }
}

START_TEST(one_call_moves_several_tensors)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, many_parts_body, NULL);
}
END_TEST

/* ---- in bf16 ---- */

static uint16_t narrow(int rank, size_t part, size_t index)
{
    return bf16_narrow(value(rank, part, index));
}

static void must_be(uint16_t is, uint16_t right)
{
    if (is != right)
        ck_abort_msg("%04x where %04x is right", is, right);
}

static uint16_t *narrow_values(int rank, size_t part, size_t count)
{
    uint16_t *out = calloc(count + 1, sizeof *out);
    for (size_t i = 0; i < count; i++)
        out[i] = narrow(rank, part, i);
    return out;
}

/* Summed in f32, rounded once. */
static uint16_t narrow_sum(const struct test_rank *rank, size_t part, size_t index)
{
    float sum = bf16_widen(narrow(0, part, index));
    for (int i = 1; i < rank->count; i++)
        sum += bf16_widen(narrow(i, part, index));
    return bf16_narrow(sum);
}

static void narrow_reduced(const struct test_rank *rank, struct fabric_group *group)
{
    static const size_t counts[] = {1, 7, 1025, 5001};
    for (size_t call = 0; call < sizeof counts / sizeof *counts; call++) {
        uint16_t *data = narrow_values(rank->rank, call, counts[call]);
        ck_assert_int_eq(
            rank->library->all_reduce(group, ELEMENT_BF16, data, counts[call], REDUCTION_SUM, NULL),
            0);
        for (size_t i = 0; i < counts[call]; i++)
            must_be(data[i], narrow_sum(rank, call, i));
        must_be(data[counts[call]], 0);
        free(data);
    }
}

/* A chunk that is packed, one that is not, an odd one; gathered, then scattered. */
static void narrow_moved(const struct test_rank *rank, struct fabric_group *group)
{
    static const size_t lengths[] = {3, 20001, 51};
    enum { COUNT = sizeof lengths / sizeof *lengths };
    struct collective_part gathers[COUNT], scatters[COUNT];
    size_t counts[COUNT][RANKS_MAX];
    for (size_t part = 0; part < COUNT; part++) {
        for (int i = 0; i < rank->count; i++)
            counts[part][i] = lengths[part] + (size_t)i;
        size_t all = total(counts[part], rank->count), own = counts[part][rank->rank];
        gathers[part] = (struct collective_part){narrow_values(rank->rank, part, own),
                                                 narrow_values(0, 0, all), counts[part]};
        scatters[part] = (struct collective_part){narrow_values(rank->rank, part, all),
                                                  narrow_values(0, 0, own), counts[part]};
    }
    ck_assert_int_eq(rank->library->all_gather(group, ELEMENT_BF16, gathers, COUNT, NULL), 0);
    ck_assert_int_eq(rank->library->reduce_scatter(group, ELEMENT_BF16, scatters, COUNT, NULL), 0);
    for (size_t part = 0; part < COUNT; part++) {
        const uint16_t *at = gathers[part].destination, *sum = scatters[part].destination;
        size_t offset = total(counts[part], rank->rank);
        for (int i = 0; i < rank->count; i++)
            for (size_t j = 0; j < counts[part][i]; j++)
                must_be(*at++, narrow(i, part, j));
        for (size_t i = 0; i < counts[part][rank->rank]; i++)
            must_be(sum[i], narrow_sum(rank, part, offset + i));
    }
    free_parts(gathers, COUNT);
    free_parts(scatters, COUNT);
}

/* Around the ring; and all to all, as many to each as its number says. */
static void narrow_sent(const struct test_rank *rank, struct fabric_group *group)
{
    size_t sends[RANKS_MAX], receives[RANKS_MAX], count = 101;
    for (int i = 0; i < rank->count; i++) {
        sends[i] = (size_t)i;
        receives[i] = (size_t)rank->rank;
    }
    uint16_t *mine = narrow_values(rank->rank, 0, count), *other = narrow_values(0, 1, count);
    ck_assert_int_eq(
        rank->library->all_to_all(group, ELEMENT_BF16, mine, sends, other, receives, NULL), 0);
    const uint16_t *at = other;
    for (int i = 0; i < rank->count; i++)
        for (int j = 0; j < rank->rank; j++)
            must_be(*at++, narrow(i, 0, total(sends, rank->rank) + (size_t)j));
    struct fabric_request *request = NULL;
    int next = (rank->rank + 1) % rank->count,
        before = (rank->rank + rank->count - 1) % rank->count;
    if (rank->count > 1) {
        ck_assert_int_eq(
            rank->library->send(rank->fabric, next, 5, ELEMENT_BF16, mine, count, &request, NULL),
            0);
        ck_assert_int_eq(
            rank->library->receive(rank->fabric, before, 5, ELEMENT_BF16, other, count, NULL), 0);
        ck_assert_int_eq(rank->library->wait(rank->fabric, request, NULL), 0);
        for (size_t i = 0; i < count; i++)
            must_be(other[i], narrow(before, 0, i));
    }
    free(mine);
    free(other);
}

static void narrow_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    narrow_reduced(rank, group);
    narrow_moved(rank, group);
    narrow_sent(rank, group);
}

START_TEST(bf16_travels_in_two_bytes_and_is_summed_in_f32)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, narrow_body, NULL);
}
END_TEST

TCase *part_cases(int rows)
{
    TCase *parts = tcase_create("parts");
    tcase_set_timeout(parts, 60);
    tcase_add_loop_test(parts, one_call_moves_several_tensors, 0, rows);
    tcase_add_loop_test(parts, bf16_travels_in_two_bytes_and_is_summed_in_f32, 0, rows);
    return parts;
}
