/* test_sequences.c - random sequences of mixed calls on overlapping groups, against a model that
 * computes what each call must give from the numbers that all ranks know. */
#include "tests/worker/collectives/cases.h"

#include <string.h>

#define LIMIT_S 20
#define CALLS 150
#define LENGTH_MAX 40

struct members {
    int count, ranks[RANKS_MAX];
};

/* The world, rows and columns of a 2 x 2 mesh, a chain, and a group in another order. */
static const struct members groups[] = {
    {5, {0, 1, 2, 3, 4}}, {2, {0, 1}}, {2, {2, 3}},    {2, {0, 2}}, {2, {1, 3}},
    {3, {4, 0, 3}},       {2, {1, 4}}, {3, {4, 0, 3}}, {1, {2}},
};
#define GROUPS (sizeof groups / sizeof *groups)

struct sequence {
    struct test_rank *rank;
    struct fabric_group *groups[GROUPS];
    const struct members *members; /* of the present call */
    int me;
    uint64_t seed, call;
};

static uint64_t draw(const struct sequence *sequence, uint64_t index, uint64_t bound)
{
    return random_below(sequence->seed, sequence->call, index, bound);
}

static void sequence_all_reduce(struct sequence *sequence, struct fabric_group *group)
{
    const struct members *members = sequence->members;
    size_t count = (size_t)draw(sequence, 10, LENGTH_MAX);
    float *data = values(sequence->rank->rank, sequence->call, count);
    ck_assert_int_eq(
        sequence->rank->library->all_reduce(group, ELEMENT_F32, data, count, REDUCTION_SUM, NULL),
        0);
    for (size_t i = 0; i < count; i++) {
        float expected = value(members->ranks[0], sequence->call, i);
        for (int j = 1; j < members->count; j++)
            expected += value(members->ranks[j], sequence->call, i);
        must_equal(data[i], expected);
    }
    free(data);
}

static void sequence_reduce_scatter(struct sequence *sequence, struct fabric_group *group)
{
    const struct members *members = sequence->members;
    size_t counts[RANKS_MAX];
    for (int i = 0; i < members->count; i++)
        counts[i] = (size_t)draw(sequence, 20 + (uint64_t)i, LENGTH_MAX);
    size_t offset = total(counts, sequence->me), length = counts[sequence->me];
    float *source = values(sequence->rank->rank, sequence->call, total(counts, members->count));
    /* In place: the sum of my chunk replaces my chunk. */
    float *mine = source + offset;
    ck_assert_int_eq(
        sequence->rank->library->reduce_scatter(
            group, ELEMENT_F32, &(struct collective_part){source, mine, counts}, 1, NULL),
        0);
    for (size_t i = 0; i < length; i++) {
        float expected = value(members->ranks[0], sequence->call, offset + i);
        for (int j = 1; j < members->count; j++)
            expected += value(members->ranks[j], sequence->call, offset + i);
        must_equal(mine[i], expected);
    }
    free(source);
}

/* What a member has for another. */
static size_t parcel(const struct sequence *sequence, int sender, int receiver)
{
    int index = 100 + sender * 10 + receiver;
    return (size_t)draw(sequence, (uint64_t)index, LENGTH_MAX);
}

static void sequence_all_to_all(struct sequence *sequence, struct fabric_group *group)
{
    const struct members *members = sequence->members;
    size_t sends[RANKS_MAX], receives[RANKS_MAX];
    for (int i = 0; i < members->count; i++) {
        sends[i] = parcel(sequence, sequence->me, i);
        receives[i] = parcel(sequence, i, sequence->me);
    }
    float *source = values(sequence->rank->rank, sequence->call, total(sends, members->count));
    float *destination = values(0, 0, total(receives, members->count));
    ck_assert_int_eq(sequence->rank->library->all_to_all(group, ELEMENT_F32, source, sends,
                                                         destination, receives, NULL),
                     0);
    const float *at = destination;
    for (int i = 0; i < members->count; i++) {
        size_t offset = 0;
        for (int j = 0; j < sequence->me; j++)
            offset += parcel(sequence, i, j);
        for (size_t j = 0; j < receives[i]; j++)
            must_equal(*at++, value(members->ranks[i], sequence->call, offset + j));
    }
    free(source);
    free(destination);
}

static void sequence_all_gather(struct sequence *sequence, struct fabric_group *group)
{
    const struct members *members = sequence->members;
    size_t counts[RANKS_MAX];
    for (int i = 0; i < members->count; i++)
        counts[i] = (size_t)draw(sequence, 20 + (uint64_t)i, LENGTH_MAX);
    float *source = values(sequence->rank->rank, sequence->call, counts[sequence->me]);
    float *destination = values(0, 0, total(counts, members->count));
    ck_assert_int_eq(
        sequence->rank->library->all_gather(
            group, ELEMENT_F32, &(struct collective_part){source, destination, counts}, 1, NULL),
        0);
    const float *at = destination;
    for (int i = 0; i < members->count; i++)
        for (size_t j = 0; j < counts[i]; j++)
            must_equal(*at++, value(members->ranks[i], sequence->call, j));
    free(source);
    free(destination);
}

/* The first member sends to the last, while both may have other things under way. */
static void sequence_message(struct sequence *sequence)
{
    const struct collectives *library = sequence->rank->library;
    struct fabric *fabric = sequence->rank->fabric;
    int sender = sequence->members->ranks[0];
    int receiver = sequence->members->ranks[sequence->members->count - 1];
    size_t count = (size_t)draw(sequence, 10, LENGTH_MAX);
    uint32_t tag = (uint32_t)draw(sequence, 11, 3);
    if (sender == receiver)
        return;
    if (sequence->rank->rank == sender) {
        struct fabric_request *request;
        float *source = values(sender, sequence->call, count);
        ck_assert_int_eq(
            library->send(fabric, receiver, tag, ELEMENT_F32, source, count, &request, NULL), 0);
        ck_assert_int_eq(library->wait(fabric, request, NULL), 0);
        free(source);
    } else if (sequence->rank->rank == receiver) {
        float destination[LENGTH_MAX];
        ck_assert_int_eq(
            library->receive(fabric, sender, tag, ELEMENT_F32, destination, count, NULL), 0);
        for (size_t i = 0; i < count; i++)
            must_equal(destination[i], value(sender, sequence->call, i));
    }
}

static void sequence_call(struct sequence *sequence)
{
    size_t which = (size_t)draw(sequence, 0, GROUPS);
    sequence->members = &groups[which];
    if (!sequence->groups[which])
        return;
    for (int i = 0; i < sequence->members->count; i++)
        if (sequence->members->ranks[i] == sequence->rank->rank)
            sequence->me = i;
    switch (draw(sequence, 1, 5)) {
    case 0:
        sequence_all_reduce(sequence, sequence->groups[which]);
        break;
    case 1:
        sequence_reduce_scatter(sequence, sequence->groups[which]);
        break;
    case 2:
        sequence_all_gather(sequence, sequence->groups[which]);
        break;
    case 3:
        sequence_all_to_all(sequence, sequence->groups[which]);
        break;
    default:
        sequence_message(sequence);
    }
}

static void sequence_body(struct test_rank *rank)
{
    struct sequence sequence = {.rank = rank, .seed = *(uint64_t *)rank->argument};
    for (size_t i = 0; i < GROUPS; i++)
        for (int j = 0; j < groups[i].count; j++)
            if (groups[i].ranks[j] == rank->rank)
                ck_assert_int_eq(rank->library->group(rank->fabric, groups[i].ranks,
                                                      groups[i].count, &sequence.groups[i], NULL),
                                 0);
    for (sequence.call = 0; sequence.call < CALLS; sequence.call++)
        sequence_call(&sequence);
}

START_TEST(mixed_calls_on_overlapping_groups_keep_apart)
{
    for (uint64_t seed = 1; seed <= 3; seed++)
        test_ranks_run(collective_libraries[_i], RANKS_MAX, LIMIT_S, sequence_body, &seed);
}
END_TEST

struct side {
    struct test_rank *rank;
    struct fabric_group *group;
    uint64_t call;
};

static void *side_run(void *context)
{
    struct side *side = context;
    for (int i = 0; i < CALLS; i++) {
        size_t count = (size_t)(i * 17 % 3000);
        float *data = values(side->rank->rank, side->call, count);
        ck_assert_int_eq(side->rank->library->all_reduce(side->group, ELEMENT_F32, data, count,
                                                         REDUCTION_SUM, NULL),
                         0);
        for (size_t j = 0; j < count; j++)
            must_equal(data[j], value(0, side->call, j) + value(1, side->call, j));
        free(data);
    }
    return NULL;
}

static void sides_body(struct test_rank *rank)
{
    const int ranks[] = {0, 1};
    struct side sides[2];
    pthread_t thread;
    for (int i = 0; i < 2; i++) {
        sides[i] = (struct side){.rank = rank, .call = (uint64_t)i};
        ck_assert_int_eq(rank->library->group(rank->fabric, ranks, 2, &sides[i].group, NULL), 0);
    }
    ck_assert_int_eq(pthread_create(&thread, NULL, side_run, &sides[1]), 0);
    side_run(&sides[0]);
    pthread_join(thread, NULL);
}

START_TEST(groups_of_the_same_ranks_work_side_by_side)
{
    test_ranks_run(collective_libraries[_i], 2, LIMIT_S, sides_body, NULL);
}
END_TEST

TCase *sequence_cases(int rows)
{
    TCase *tcase = tcase_create("sequences");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, mixed_calls_on_overlapping_groups_keep_apart, 0, rows);
    tcase_add_loop_test(tcase, groups_of_the_same_ranks_work_side_by_side, 0, rows);
    return tcase;
}
