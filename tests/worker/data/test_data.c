/* test_data.c - windows, split and samples, and what is said when there are too few. */
#include "tests/worker/data/data_fixture.h"

#include <errno.h>

START_TEST(targets_are_the_next_tokens)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 10, 0, 1);
    ck_assert_uint_eq(data_size(source), 251);
    ck_assert_uint_eq(data_samples(source, DATA_TRAIN), 25);
    int32_t inputs[10], targets[10];
    for (uint64_t sample = 0; sample < 60; sample++) {
        data_fill(source, DATA_TRAIN, sample, 0, 1, 0, 10, false, inputs);
        data_fill(source, DATA_TRAIN, sample, 0, 1, 0, 10, true, targets);
        ck_assert_int_eq(inputs[0] % 10, 0);
        for (int i = 0; i < 10; i++) {
            ck_assert_int_eq(inputs[i], inputs[0] + i);
            ck_assert_int_eq(targets[i], inputs[i] + 1);
        }
    }
    data_close(source);
}
END_TEST

START_TEST(an_epoch_has_every_window_once_and_no_held_out_token)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 10, 0.2, 1);
    uint64_t train = data_samples(source, DATA_TRAIN);
    uint64_t holdout = data_samples(source, DATA_HOLDOUT);
    ck_assert_uint_eq(holdout, 5);
    ck_assert_uint_eq(train, 19);
    int trained[251] = {0}, held[251] = {0}, starts[251] = {0};
    int32_t tokens[10];
    for (uint64_t sample = 0; sample < train; sample++) {
        for (int targets = 0; targets < 2; targets++) {
            data_fill(source, DATA_TRAIN, sample, 0, 1, 0, 10, targets, tokens);
            starts[tokens[0]] += !targets;
            for (int i = 0; i < 10; i++)
                trained[tokens[i]] = 1;
        }
    }
    for (uint64_t sample = 0; sample < holdout; sample++) {
        for (int targets = 0; targets < 2; targets++) {
            data_fill(source, DATA_HOLDOUT, sample, 0, 1, 0, 10, targets, tokens);
            for (int i = 0; i < 10; i++)
                held[tokens[i]] = 1;
        }
    }
    for (uint64_t window = 0; window < train; window++)
        ck_assert_int_eq(starts[window * 10], 1);
    for (int token = 0; token < 251; token++)
        ck_assert_int_eq(trained[token] && held[token], 0);
    ck_assert_int_eq(held[250], 1); /* the tail */
    ck_assert_int_eq(held[200], 1);
    ck_assert_int_eq(held[199], 0);
    data_close(source);
}
END_TEST

/* A batch of 12 samples of 16 tokens, whole and by every cut in two of both dims. */
START_TEST(a_batch_read_by_pieces_is_the_batch)
{
    enum { SAMPLES = 12, SEQ = 16, FIRST = 31 };
    write_ramp("a", 0, 1000);
    struct data_source *source = open_data("text: a", SEQ, 0, 1);
    int32_t whole[SAMPLES][SEQ], piece[SAMPLES * SEQ];
    data_fill(source, DATA_TRAIN, FIRST, 0, SAMPLES, 0, SEQ, _i, &whole[0][0]);
    for (int cut = 0; cut <= SAMPLES; cut++) {
        for (int seq_cut = 0; seq_cut <= SEQ; seq_cut++) {
            data_fill(source, DATA_TRAIN, FIRST, cut, SAMPLES, seq_cut, SEQ, _i, piece);
            for (int i = cut; i < SAMPLES; i++)
                ck_assert_mem_eq(&whole[i][seq_cut], piece + (i - cut) * (SEQ - seq_cut),
                                 (size_t)(SEQ - seq_cut) * sizeof *piece);
            data_fill(source, DATA_TRAIN, FIRST, 0, cut, 0, seq_cut, _i, piece);
            for (int i = 0; i < cut; i++)
                ck_assert_mem_eq(&whole[i][0], piece + i * seq_cut,
                                 (size_t)seq_cut * sizeof *piece);
        }
        data_fill(source, DATA_TRAIN, FIRST + (uint64_t)cut, 0, SAMPLES - cut, 0, SEQ, _i, piece);
        ck_assert_mem_eq(piece, &whole[0][0] + cut * SEQ,
                         (size_t)((SAMPLES - cut) * SEQ) * sizeof *piece);
    }
    data_close(source);
}
END_TEST

static int count_equal_samples(const struct data_source *one, uint64_t first,
                               const struct data_source *other, uint64_t other_first)
{
    int equal = 0;
    for (uint64_t i = 0; i < 50; i++) {
        int32_t token, other_token;
        data_fill(one, DATA_TRAIN, first + i, 0, 1, 0, 1, false, &token);
        data_fill(other, DATA_TRAIN, other_first + i, 0, 1, 0, 1, false, &other_token);
        equal += token == other_token;
    }
    return equal;
}

START_TEST(the_order_follows_seed_and_epoch_only)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 5, 0, 1);
    struct data_source *same = open_data("text: a", 5, 0, 1);
    struct data_source *other = open_data("text: a", 5, 0, 2);
    ck_assert_uint_eq(data_samples(source, DATA_TRAIN), 50);
    ck_assert_int_eq(count_equal_samples(source, 0, same, 0), 50);
    ck_assert_int_lt(count_equal_samples(source, 0, other, 0), 10);
    ck_assert_int_lt(count_equal_samples(source, 0, source, 50), 10);
    data_close(source);
    data_close(same);
    data_close(other);
}
END_TEST

START_TEST(held_out_samples_come_in_order_and_then_ignored_ones)
{
    write_ramp("a", 0, 251);
    struct data_source *source = open_data("text: a", 10, 0.2, 1);
    int32_t inputs[4][10], targets[4][10];
    data_fill(source, DATA_HOLDOUT, 3, 0, 4, 0, 10, false, &inputs[0][0]);
    data_fill(source, DATA_HOLDOUT, 3, 0, 4, 0, 10, true, &targets[0][0]);
    ck_assert_int_eq(inputs[0][0], 230);
    ck_assert_int_eq(targets[1][9], 250);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(inputs[2][i], 0);
        ck_assert_int_eq(targets[2][i], DATA_IGNORED);
        ck_assert_int_eq(targets[3][i], DATA_IGNORED);
    }
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 3, 4), 20);
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 0, 4), 40);
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 9, 4), 0);
    ck_assert_uint_eq(data_targets(source, DATA_TRAIN, 1000, 4), 40);
    data_close(source);
}
END_TEST

/* The first token of every held-out sample, in order. */
static void check_held_out(const struct data_source *source, const int32_t *firsts, uint64_t count)
{
    ck_assert_uint_eq(data_samples(source, DATA_HOLDOUT), count);
    for (uint64_t sample = 0; sample < count; sample++) {
        int32_t inputs[10], targets[10];
        data_fill(source, DATA_HOLDOUT, sample, 0, 1, 0, 10, false, inputs);
        data_fill(source, DATA_HOLDOUT, sample, 0, 1, 0, 10, true, targets);
        ck_assert_int_eq(inputs[0], firsts[sample]);
        ck_assert_int_eq(targets[9], firsts[sample] + 10);
    }
    ck_assert_uint_eq(data_targets(source, DATA_HOLDOUT, 0, 1000), 10 * count);
}

START_TEST(a_bound_on_samples_takes_some_of_everywhere)
{
    static const int32_t some[] = {120, 150, 180, 210}, all[] = {200, 210, 220, 230, 240};
    write_ramp("a", 0, 251);
    struct data_source *source =
        open_evaluated("text: a", "every: 1, holdout: 0.52, samples: 4", 10, 1);
    check_held_out(source, some, 4); /* windows 0, 3, 6 and 9 of 13 */
    data_close(source);
    source = open_evaluated("text: a", "every: 1, holdout: 0.2, samples: 6", 10, 1);
    check_held_out(source, all, 5);
    data_close(source);
}
END_TEST

START_TEST(files_of_their_own_are_held_out_instead)
{
    static const int32_t firsts[] = {100, 110, 120};
    struct data_file *files;
    struct error err;
    write_ramp("a", 0, 251);
    write_ramp("own", 100, 31);
    struct data_source *source = open_evaluated("text: a", "every: 1, data: own", 10, 1);
    check_held_out(source, firsts, 3);
    ck_assert_uint_eq(data_samples(source, DATA_TRAIN), 25);
    ck_assert_uint_eq(data_files(source, &files), 2);
    ck_assert_str_eq(files[0].path, "a");
    ck_assert_str_eq(files[1].path, "own");
    data_files_free(files, 2);
    data_close(source);
    write_ramp("own", 0, 8);
    ck_assert_int_eq(refuse_data("text: a", "every: 1, data: own", 0, &err), -EINVAL);
    ck_assert_str_eq(
        err.text, "eval.data: 8 tokens are too few for one sample: model.seq 8 needs at least 9");
}
END_TEST

START_TEST(too_short_a_corpus_is_refused_with_the_sizes)
{
    write_ramp("a", 0, 40);
    check_refused(
        "text: a", 40, 0, -EINVAL,
        "data.text: 40 tokens are too few for one sample: model.seq 40 needs at least 41");
    check_refused(
        "text: a", 10, 0.1, -EINVAL,
        "data.text: 40 tokens make 3 samples of model.seq 10: eval.holdout 0.1 of them is "
        "less than one, write 0.333 or more");
    check_refused("text: a", 20, 0.5, -EINVAL,
                  "data.text: 40 tokens leave no sample of model.seq 20 to train on beside an "
                  "eval.holdout of 1: at least 42 are needed");
    write_ramp("a", 0, 42);
    data_close(open_data("text: a", 20, 0.5, 1));
}
END_TEST

SUITE(data)
{
    TCase *tcase = tcase_create("data");
    tcase_add_checked_fixture(tcase, data_setup, data_teardown);
    tcase_add_test(tcase, targets_are_the_next_tokens);
    tcase_add_test(tcase, an_epoch_has_every_window_once_and_no_held_out_token);
    tcase_add_loop_test(tcase, a_batch_read_by_pieces_is_the_batch, 0, 2);
    tcase_add_test(tcase, the_order_follows_seed_and_epoch_only);
    tcase_add_test(tcase, held_out_samples_come_in_order_and_then_ignored_ones);
    tcase_add_test(tcase, a_bound_on_samples_takes_some_of_everywhere);
    tcase_add_test(tcase, files_of_their_own_are_held_out_instead);
    tcase_add_test(tcase, too_short_a_corpus_is_refused_with_the_sizes);
    return suite_run("data", tcase, NULL);
}
