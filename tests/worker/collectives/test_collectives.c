/* test_collectives.c - each call of a library against its meaning, element by element and bit by
 * bit. */
#include "tests/support/suite.h"
#include "tests/worker/collectives/cases.h"

#include "worker/collectives/library.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define LIMIT_S 20

static const size_t sizes[] = {0, 1, 2, 3, 17, 1000, 100003, 300007};
#define SIZE_COUNT (sizeof sizes / sizeof *sizes)

static void all_reduce_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    for (size_t call = 0; call < 2 * SIZE_COUNT; call++) {
        size_t count = sizes[call / 2];
        enum reduction reduction = call % 2 ? REDUCTION_MAX : REDUCTION_SUM;
        float *data = values(rank->rank, call, count);
        ck_assert_int_eq(
            rank->library->all_reduce(group, ELEMENT_F32, data, count, reduction, NULL), 0);
        for (size_t i = 0; i < count; i++) {
            float expected = value(0, call, i);
            for (int j = 1; j < rank->count; j++)
                expected = reduction == REDUCTION_SUM ? expected + value(j, call, i)
                                                      : fmaxf(expected, value(j, call, i));
            must_equal(data[i], expected);
        }
        free(data);
    }
}

START_TEST(all_reduce_sums_in_the_order_of_members)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, all_reduce_body, NULL);
}
END_TEST

static void reduce_scatter_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    for (size_t call = 0; call < SIZE_COUNT; call++) {
        size_t counts[RANKS_MAX], offset = 0;
        for (int i = 0; i < rank->count; i++)
            counts[i] = i == 1 ? 0 : sizes[call] + (size_t)i;
        for (int i = 0; i < rank->rank; i++)
            offset += counts[i];
        float *source = values(rank->rank, call, total(counts, rank->count));
        float *mine = calloc(counts[rank->rank] + 1, sizeof *mine);
        ck_assert_int_eq(
            rank->library->reduce_scatter(group, ELEMENT_F32,
                                          &(struct collective_part){source, mine, counts}, 1, NULL),
            0);
        for (size_t i = 0; i < counts[rank->rank]; i++) {
            float expected = 0;
            for (int j = 0; j < rank->count; j++)
                expected += value(j, call, offset + i);
            must_equal(mine[i], expected);
        }
        ck_assert(mine[counts[rank->rank]] == 0);
        for (size_t i = 0; i < total(counts, rank->count); i++)
            must_equal(source[i], value(rank->rank, call, i));
        free(source);
        free(mine);
    }
}

START_TEST(reduce_scatter_leaves_each_member_its_sum)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, reduce_scatter_body, NULL);
}
END_TEST

static void gathered(struct test_rank *rank, size_t call, const size_t *counts, const float *all)
{
    for (int i = 0; i < rank->count; i++)
        for (size_t j = 0; j < counts[i]; j++)
            must_equal(*all++, value(i, call, j));
}

static void all_gather_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    for (size_t call = 0; call < SIZE_COUNT; call++) {
        size_t counts[RANKS_MAX];
        for (int i = 0; i < rank->count; i++)
            counts[i] = i == 0 ? sizes[call] : i == 1 ? 0 : sizes[call] / (size_t)i;
        float *mine = values(rank->rank, call, counts[rank->rank]);
        float *all = calloc(total(counts, rank->count) + 1, sizeof *all);
        ck_assert_int_eq(rank->library->all_gather(group, ELEMENT_F32,
                                                   &(struct collective_part){mine, all, counts}, 1,
                                                   NULL),
                         0);
        gathered(rank, call, counts, all);

        /* In place: what is mine lies where it will be. */
        float *place = all + total(counts, rank->rank);
        memset(all, 0, total(counts, rank->count) * sizeof *all);
        memcpy(place, mine, counts[rank->rank] * sizeof *all);
        ck_assert_int_eq(rank->library->all_gather(group, ELEMENT_F32,
                                                   &(struct collective_part){place, all, counts}, 1,
                                                   NULL),
                         0);
        gathered(rank, call, counts, all);
        free(mine);
        free(all);
    }
}

START_TEST(all_gather_joins_uneven_chunks)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, all_gather_body, NULL);
}
END_TEST

/* What sender has for receiver in a call; 0 for some pairs. */
static size_t parcel(int sender, int receiver, size_t call)
{
    return (sender + receiver) % 3 == 0 ? 0 : sizes[call] / (size_t)(sender + 1) + (size_t)receiver;
}

static void all_to_all_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    for (size_t call = 0; call < SIZE_COUNT; call++) {
        size_t sends[RANKS_MAX], receives[RANKS_MAX];
        for (int i = 0; i < rank->count; i++) {
            sends[i] = parcel(rank->rank, i, call);
            receives[i] = parcel(i, rank->rank, call);
        }
        float *source = values(rank->rank, call, total(sends, rank->count));
        float *destination = calloc(total(receives, rank->count) + 1, sizeof *destination);
        ck_assert_int_eq(rank->library->all_to_all(group, ELEMENT_F32, source, sends, destination,
                                                   receives, NULL),
                         0);
        const float *at = destination;
        for (int i = 0; i < rank->count; i++) {
            size_t offset = 0;
            for (int j = 0; j < rank->rank; j++)
                offset += parcel(i, j, call);
            for (size_t j = 0; j < receives[i]; j++)
                must_equal(*at++, value(i, call, offset + j));
        }
        free(source);
        free(destination);
    }
}

START_TEST(all_to_all_gives_everyone_his_chunk)
{
    for (int count = 1; count <= RANKS_MAX; count++)
        test_ranks_run(collective_libraries[_i], count, LIMIT_S, all_to_all_body, NULL);
}
END_TEST

#define MESSAGES 200

static void messages_body(struct test_rank *rank)
{
    /* Everyone sends to everyone on two tags, more messages than there are requests at first. */
    static const size_t lengths[] = {0, 1, 5000};
    float *sources[MESSAGES];
    struct fabric_request *requests[RANKS_MAX][2][MESSAGES];
    for (int i = 0; i < MESSAGES; i++)
        sources[i] = values(rank->rank, (uint64_t)i, lengths[i % 3]);
    for (int i = 0; i < MESSAGES; i++)
        for (int peer = 0; peer < rank->count; peer++)
            for (uint32_t tag = 0; tag < 2 && peer != rank->rank; tag++)
                ck_assert_int_eq(rank->library->send(rank->fabric, peer, tag, ELEMENT_F32,
                                                     sources[i], lengths[i % 3],
                                                     &requests[peer][tag][i], NULL),
                                 0);
    float destination[5000];
    for (uint32_t tag = 2; tag-- > 0;)
        for (int peer = 0; peer < rank->count; peer++)
            for (int i = 0; i < MESSAGES && peer != rank->rank; i++) {
                ck_assert_int_eq(rank->library->receive(rank->fabric, peer, tag, ELEMENT_F32,
                                                        destination, lengths[i % 3], NULL),
                                 0);
                for (size_t j = 0; j < lengths[i % 3]; j++)
                    must_equal(destination[j], value(peer, (uint64_t)i, j));
            }
    for (int i = 0; i < MESSAGES; i++)
        for (int peer = 0; peer < rank->count; peer++)
            for (int tag = 0; tag < 2 && peer != rank->rank; tag++)
                ck_assert_int_eq(rank->library->wait(rank->fabric, requests[peer][tag][i], NULL),
                                 0);
    for (int i = 0; i < MESSAGES; i++)
        free(sources[i]);
}

START_TEST(messages_of_a_tag_arrive_in_order_whatever_other_tags_do)
{
    test_ranks_run(collective_libraries[_i], 3, LIMIT_S, messages_body, NULL);
}
END_TEST

static void refusals_body(struct test_rank *rank)
{
    const struct collectives *library = rank->library;
    struct fabric_group *group;
    struct fabric_request *request;
    struct error err;
    const int twice[] = {0, 1, 0}, others[] = {1 - rank->rank}, beyond[] = {0, 2};
    ck_assert_int_eq(library->group(rank->fabric, twice, 3, &group, &err), -EINVAL);
    ck_assert_pstr_eq(err.text, "a group with rank 0 twice");
    ck_assert_int_eq(library->group(rank->fabric, others, 1, &group, NULL), -EINVAL);
    ck_assert_int_eq(library->group(rank->fabric, beyond, 2, &group, NULL), -EINVAL);
    ck_assert_int_eq(library->group(rank->fabric, beyond, 0, &group, NULL), -EINVAL);
    ck_assert_int_eq(
        library->send(rank->fabric, rank->rank, 0, ELEMENT_F32, NULL, 0, &request, NULL), -EINVAL);
    ck_assert_int_eq(library->receive(rank->fabric, 2, 0, ELEMENT_F32, NULL, 0, NULL), -EINVAL);
}

START_TEST(groups_and_peers_that_cannot_be_are_refused)
{
    test_ranks_run(collective_libraries[_i], 2, LIMIT_S, refusals_body, NULL);
}
END_TEST

START_TEST(chunks_cover_all_elements_in_order)
{
    static const size_t counts[] = {0, 1, 7, 1000, SIZE_MAX / 4, SIZE_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        for (int members = 1; members <= 9; members++) {
            size_t end = 0;
            for (int j = 0; j < members; j++) {
                size_t low, high;
                collective_chunk(counts[i], members, j, &low, &high);
                ck_assert_uint_eq(low, end);
                ck_assert_uint_eq(
                    low, (size_t)((unsigned __int128)counts[i] * (unsigned)j / (unsigned)members));
                end = high;
            }
            ck_assert_uint_eq(end, counts[i]);
        }
}
END_TEST

START_TEST(a_maximum_shows_what_is_not_a_number)
{
    const float first[] = {1, NAN, 3}, second[] = {NAN, 2, 4};
    const void *sources[] = {first, second};
    float result[3];
    collective_reduce(ELEMENT_F32, result, sources, 2, 3, REDUCTION_MAX);
    ck_assert(isnan(result[0]));
    ck_assert(isnan(result[1]));
    ck_assert(result[2] == 4);
}
END_TEST

START_TEST(libraries_are_found_by_name)
{
    ck_assert_ptr_eq(collectives_find("local"), &collectives_local);
    ck_assert_ptr_null(collectives_find("carrier pigeon"));
}
END_TEST

SUITE(collectives)
{
    int rows = 0;
    while (collective_libraries[rows])
        rows++;
    TCase *calls = tcase_create("calls");
    tcase_set_timeout(calls, 60);
    tcase_add_loop_test(calls, all_reduce_sums_in_the_order_of_members, 0, rows);
    tcase_add_loop_test(calls, reduce_scatter_leaves_each_member_its_sum, 0, rows);
    tcase_add_loop_test(calls, all_gather_joins_uneven_chunks, 0, rows);
    tcase_add_loop_test(calls, all_to_all_gives_everyone_his_chunk, 0, rows);
    tcase_add_loop_test(calls, messages_of_a_tag_arrive_in_order_whatever_other_tags_do, 0, rows);
    tcase_add_loop_test(calls, groups_and_peers_that_cannot_be_are_refused, 0, rows);
    tcase_add_test(calls, chunks_cover_all_elements_in_order);
    tcase_add_test(calls, a_maximum_shows_what_is_not_a_number);
    tcase_add_test(calls, libraries_are_found_by_name);
    TCase *processes = NULL, *leaving = NULL;
    if (collectives_find("gloo")) {
        processes = process_cases();
        leaving = leaving_cases();
    } else {
        suite_skip("gloo", "not built in");
    }
    return suite_run("collectives", calls, part_cases(rows), sequence_cases(rows),
                     failure_cases(rows), local_cases(), processes, leaving, NULL);
}
