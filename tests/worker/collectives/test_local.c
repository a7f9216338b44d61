/* test_local.c - what only ranks inside one process can do: find that they disagree, and count what
 * they copy. */
#include "tests/worker/collectives/cases.h"
#include "worker/collectives/library.h"

#include <errno.h>
#include <string.h>

#define LIMIT_S 20

/* Rank 2 is the one of another opinion. */
static int disagree(struct test_rank *rank, int about, struct error *err)
{
    struct fabric_group *group = world(rank);
    bool odd = rank->rank == 2;
    float data[64] = {0}, result[64];
    const size_t counts[] = {1, 2, 3, 4, 5}, other[] = {1, 3, 3, 4, 5};
    const size_t equal[] = {2, 2, 2, 2, 2}, unequal[] = {2, 2, 2, 2, 3};
    switch (about) {
    case 0:
        if (odd)
            return rank->library->all_gather(
                group, ELEMENT_F32, &(struct collective_part){data, result, counts}, 1, err);
        return rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, err);
    case 1:
        return rank->library->all_reduce(group, ELEMENT_F32, data, odd ? 9 : 8, REDUCTION_SUM, err);
    case 2:
        return rank->library->all_reduce(group, ELEMENT_F32, data, 8,
                                         odd ? REDUCTION_MAX : REDUCTION_SUM, err);
    case 3:
        return rank->library->reduce_scatter(
            group, ELEMENT_F32, &(struct collective_part){data, result, odd ? other : counts}, 1,
            err);
    default:
        if (odd)
            return rank->library->all_to_all(group, ELEMENT_F32, data, unequal, result, equal, err);
        return rank->library->all_to_all(group, ELEMENT_F32, data, equal, result, equal, err);
    }
}

static const char *const words[] = {
    "group {0,1,2,3,4}: rank 0 calls all_reduce, but rank 2 calls all_gather",
    "all_reduce in group {0,1,2,3,4}: rank 0 has 8 elements, but rank 2 has 9",
    "group {0,1,2,3,4}: rank 0 calls all_reduce, but rank 2 calls all_reduce of maxima",
    ("reduce_scatter in group {0,1,2,3,4}: the chunk of rank 1 has 2 elements for rank 0, but 3 "
     "for rank 2"),
    "all_to_all in group {0,1,2,3,4}: rank 2 sends 3 elements to rank 4, which expects 2",
};

static void disagree_body(struct test_rank *rank)
{
    struct error err;
    int about = *(int *)rank->argument;
    ck_assert_int_eq(disagree(rank, about, &err), -EINVAL);
    ck_assert_str_eq(err.text, words[about]);
}

START_TEST(members_that_disagree_all_hear_about_what)
{
    test_ranks_run(&collectives_local, 5, LIMIT_S, disagree_body, &_i);
}
END_TEST

static void wrong_length_body(struct test_rank *rank)
{
    float data[8] = {0};
    struct error err;
    if (rank->rank == 0) {
        struct fabric_request *request;
        ck_assert_int_eq(
            rank->library->send(rank->fabric, 1, 7, ELEMENT_F32, data, 8, &request, NULL), 0);
        ck_assert_int_eq(rank->library->wait(rank->fabric, request, &err), -EINVAL);
    } else {
        ck_assert_int_eq(rank->library->receive(rank->fabric, 0, 7, ELEMENT_F32, data, 4, &err),
                         -EINVAL);
    }
    ck_assert_str_eq(err.text, "message from rank 0 to rank 1, tag 7: 8 elements are sent, but 4 "
                               "are expected");
}

START_TEST(a_message_of_another_length_is_refused_on_both_sides)
{
    test_ranks_run(&collectives_local, 2, LIMIT_S, wrong_length_body, NULL);
}
END_TEST

static uint64_t sent_by(struct test_rank *rank)
{
    uint64_t sent = rank->library->sent(rank->fabric);
    pthread_barrier_wait(rank->barrier);
    return sent;
}

static void sent_body(struct test_rank *rank)
{
    const struct collectives *library = rank->library;
    struct fabric_group *group = world(rank);
    static float data[5][1003], result[5][5000];
    float *source = data[rank->rank], *destination = result[rank->rank];
    uint64_t others = (uint64_t)rank->count - 1, before = sent_by(rank);
    ck_assert_uint_eq(before, 0);

    size_t low, high;
    collective_chunk(1003, rank->count, rank->rank, &low, &high);
    ck_assert_int_eq(library->all_reduce(group, ELEMENT_F32, source, 1003, REDUCTION_SUM, NULL), 0);
    ck_assert_uint_eq(sent_by(rank), before += 1003 - (high - low) + others * (high - low));

    const size_t counts[] = {10, 0, 30, 7, 50};
    size_t mine = counts[rank->rank];
    ck_assert_int_eq(library->reduce_scatter(group, ELEMENT_F32,
                                             &(struct collective_part){source, destination, counts},
                                             1, NULL),
                     0);
    ck_assert_uint_eq(sent_by(rank), before += total(counts, rank->count) - mine);
    ck_assert_int_eq(library->all_gather(group, ELEMENT_F32,
                                         &(struct collective_part){source, destination, counts}, 1,
                                         NULL),
                     0);
    ck_assert_uint_eq(sent_by(rank), before += others * mine);

    size_t receives[5];
    for (int i = 0; i < rank->count; i++)
        receives[i] = mine;
    ck_assert_int_eq(
        library->all_to_all(group, ELEMENT_F32, source, counts, destination, receives, NULL), 0);
    ck_assert_uint_eq(sent_by(rank), before += total(counts, rank->count) - mine);

    if (rank->rank == 0) {
        struct fabric_request *request;
        ck_assert_int_eq(library->send(rank->fabric, 1, 0, ELEMENT_F32, source, 99, &request, NULL),
                         0);
        ck_assert_int_eq(library->wait(rank->fabric, request, NULL), 0);
        before += 99;
    } else if (rank->rank == 1) {
        ck_assert_int_eq(library->receive(rank->fabric, 0, 0, ELEMENT_F32, destination, 99, NULL),
                         0);
    }
    ck_assert_uint_eq(sent_by(rank), before);
}

START_TEST(what_is_sent_is_what_the_formulas_say)
{
    for (int count = 2; count <= 5; count++)
        test_ranks_run(&collectives_local, count, LIMIT_S, sent_body, NULL);
}
END_TEST

static void abort_all_body(struct test_rank *rank)
{
    struct fabric_group *group = world(rank);
    float data[8] = {0};
    if (rank->rank == 0)
        rank->library->abort(rank->fabric);
    else
        ck_assert_int_eq(
            rank->library->all_reduce(group, ELEMENT_F32, data, 8, REDUCTION_SUM, NULL),
            -ECANCELED);
    pthread_barrier_wait(rank->barrier);
}

START_TEST(one_rank_aborts_the_whole_hub)
{
    test_ranks_run(&collectives_local, 4, LIMIT_S, abort_all_body, NULL);
}
END_TEST

START_TEST(a_rank_joins_once)
{
    struct local_hub *hub = local_hub_create(2);
    struct fabric_config config = {.rank = 1, .count = 2, .timeout_s = 1, .shared = hub};
    struct fabric *fabric, *again;
    struct error err;
    ck_assert_int_eq(collectives_local.open(&config, &fabric, NULL), 0);
    ck_assert_int_eq(collectives_local.open(&config, &again, &err), -EBUSY);
    ck_assert_str_eq(err.text, "local: rank 1 has joined this hub before");
    collectives_local.close(fabric);
    config.rank = 2;
    ck_assert_int_eq(collectives_local.open(&config, &again, NULL), -EINVAL);
    local_hub_destroy(hub);
}
END_TEST

TCase *local_cases(void)
{
    TCase *tcase = tcase_create("local");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, members_that_disagree_all_hear_about_what, 0, 5);
    tcase_add_test(tcase, a_message_of_another_length_is_refused_on_both_sides);
    tcase_add_test(tcase, what_is_sent_is_what_the_formulas_say);
    tcase_add_test(tcase, one_rank_aborts_the_whole_hub);
    tcase_add_test(tcase, a_rank_joins_once);
    return tcase;
}
