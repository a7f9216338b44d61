/* test_pace.c - the rank that computes at half the speed of the others is named, once and in time;
 * noise, a profile that is wrong everywhere and a hiccup accuse nobody. */
#include "coordinator/pace/pace.h"

#include "common/base/random.h"
#include "tests/support/suite.h"

#define RANKS 4
#define REPORT_MS 1000

static struct pace pace;
static uint64_t now_ms;
static struct pace_found found;

static void set_up(void)
{
    pace = (struct pace){0};
    now_ms = 1000;
}

static void tear_down(void)
{
    pace_finish(&pace);
}

/* A report of every rank; what the news of `of` is. Each is `wrong` times as slow as predicted. */
static enum pace_news report(const double *slower, double wrong, size_t of)
{
    enum pace_news news = PACE_NOTHING;
    now_ms += REPORT_MS;
    for (size_t i = 0; i < RANKS; i++) {
        enum pace_news here =
            pace_hear(&pace, 1, RANKS, i, 0.4 * slower[i] * wrong, 0.4, now_ms, &found);
        if (i == of)
            news = here;
        else
            ck_assert_int_eq(here, PACE_NOTHING);
    }
    return news;
}

static unsigned reports_until(const double *slower, double wrong, size_t of, enum pace_news wanted)
{
    unsigned reports = 1;
    while (report(slower, wrong, of) != wanted)
        ck_assert_uint_lt(reports++, 60);
    return reports;
}

START_TEST(one_at_half_speed_is_slow_and_then_is_not)
{
    const double even[RANKS] = {1, 1, 1, 1}, one[RANKS] = {1, 1, 2, 1};
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(report(even, 3, 2), PACE_NOTHING);
    unsigned took = reports_until(one, 3, 2, PACE_HAS_SLOWED);
    const size_t most = (PACE_HELD + 1) * ((size_t)PACE_WINDOW_MS / REPORT_MS + 1);
    ck_assert_uint_le(took, most);
    ck_assert_double_eq_tol(found.factor, 2, 0.01);
    ck_assert(found.drifted);
    for (int i = 0; i < 100; i++) /* it is said once */
        ck_assert_int_eq(report(one, 3, 2), PACE_NOTHING);
    reports_until(even, 3, 2, PACE_HAS_RECOVERED);
}
END_TEST

START_TEST(a_good_window_does_not_put_the_news_off)
{
    const double even[RANKS] = {1, 1, 1, 1}, one[RANKS] = {1, 1, 2, 1};
    const int reports = PACE_WINDOW_MS / REPORT_MS; /* a window; the first has one more */
    enum pace_news news = report(one, 1, 2);
    for (int window = 0; window <= PACE_HELD; window++) { /* the first counts for no one */
        ck_assert_int_eq(news, PACE_NOTHING);
        for (int i = 0; i < reports; i++)
            news = report(window == 3 ? even : one, 1, 2);
    }
    ck_assert_int_eq(news, PACE_HAS_SLOWED);
    ck_assert_double_eq_tol(found.factor, 2, 0.01);
}
END_TEST

START_TEST(a_hiccup_and_noise_accuse_nobody)
{
    const double hiccup[RANKS] = {1, 5, 1, 1};
    for (unsigned i = 0; i < 24 * 3600; i++) {
        double noise[RANKS];
        for (size_t rank = 0; rank < RANKS; rank++)
            noise[rank] = 0.8 + 0.6 * random_uniform(7, rank, i);
        ck_assert_int_eq(report(i % 60 < 2 ? hiccup : noise, 1, 0), PACE_NOTHING);
    }
}
END_TEST

START_TEST(one_that_was_slow_in_the_epoch_before_can_recover_in_the_next)
{
    const double even[RANKS] = {1, 1, 1, 1};
    pace_begin(&pace, 1, RANKS, 3);
    reports_until(even, 1, 3, PACE_HAS_RECOVERED);
}
END_TEST

START_TEST(one_that_was_never_faster_may_have_been_predicted_wrong)
{
    const double one[RANKS] = {1, 1, 2, 1};
    reports_until(one, 1, 2, PACE_HAS_SLOWED);
    ck_assert_double_eq_tol(found.factor, 2, 0.01);
    ck_assert(!found.drifted);
}
END_TEST

SUITE(pace)
{
    TCase *tcase = tcase_create("pace");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, one_at_half_speed_is_slow_and_then_is_not);
    tcase_add_test(tcase, a_good_window_does_not_put_the_news_off);
    tcase_add_test(tcase, a_hiccup_and_noise_accuse_nobody);
    tcase_add_test(tcase, one_that_was_slow_in_the_epoch_before_can_recover_in_the_next);
    tcase_add_test(tcase, one_that_was_never_faster_may_have_been_predicted_wrong);
    return suite_run("pace", tcase, NULL);
}
