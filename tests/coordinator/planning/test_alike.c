/* test_alike.c - devices of the same make get one profile, others keep theirs. */
#include "coordinator/planning/alike.h"
#include "tests/support/suite.h"

#include <string.h>

#define COUNT 4

static struct profile profiles[COUNT];
static const char *names[COUNT];

/* Four devices of one make, which measured one profile. */
static void setup(void)
{
    const struct hardware_link link = {1e-6, 1e-9};
    for (int i = 0; i < COUNT; i++) {
        profiles[i] = profile_analytic(1e12, 1e11, 0.5, link, link);
        profiles[i].rate_count = 1;
        strcpy(profiles[i].rates[0].operation, "fc1");
        profiles[i].rates[0].fixed_s[FORWARD] = 1e-6;
        names[i] = "H100";
    }
}

START_TEST(like_devices_get_their_mean)
{
    profiles[1].seconds_per_flop *= 1.08;
    profiles[2].rates[0].fixed_s[FORWARD] = 5e-6;
    profiles[3].host.latency_s = 5e-6;
    double flop = profiles[0].seconds_per_flop;
    profiles_level(profiles, names, COUNT);
    ck_assert_double_eq_tol(profiles[0].seconds_per_flop, flop * 1.02, flop * 1e-12);
    ck_assert_double_eq_tol(profiles[0].rates[0].fixed_s[FORWARD], 2e-6, 1e-18);
    ck_assert_double_eq_tol(profiles[0].host.latency_s, 2e-6, 1e-18);
    ck_assert_str_eq(profiles[0].rates[0].operation, "fc1");
    for (size_t i = 0; i < COUNT; i++) {
        ck_assert(profile_equal(&profiles[i], &profiles[0]));
        ck_assert_ptr_eq(profiles_first(profiles, i), &profiles[0]);
    }
}
END_TEST

START_TEST(equal_profiles_stay_to_the_last_bit)
{
    const struct profile before = profiles[0];
    profiles_level(profiles, names, COUNT);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert(profile_equal(&profiles[i], &before));
}
END_TEST

/* What sets device 2 apart from the others, which differ a little among themselves. */
static void slower(struct profile *profile)
{
    profile->seconds_per_flop *= ALIKE_FLOPS * 1.01;
}

static void slower_in_bf16(struct profile *profile)
{
    profile->seconds_per_flop_bf16 = 1e-13;
}

static void slower_memory(struct profile *profile)
{
    profile->seconds_per_byte *= ALIKE_BYTES * 1.01;
}

static void slower_network(struct profile *profile)
{
    profile->network.seconds_per_byte *= ALIKE_LINK * 1.01;
}

static void more_cards(struct profile *profile)
{
    profile->network_cards = 8;
}

static void another_release(struct profile *profile)
{
    strcpy(profile->rates[0].operation, "fc2");
}

static void another_make(struct profile *profile)
{
    names[profile - profiles] = "A100";
}

static void not_measured(struct profile *profile)
{
    names[profile - profiles] = NULL;
}

static void (*const differences[])(struct profile *) = {
    slower,     slower_in_bf16,  slower_memory, slower_network,
    more_cards, another_release, another_make,  not_measured,
};

START_TEST(another_device_keeps_its_own)
{
    differences[_i](&profiles[2]);
    profiles[1].seconds_per_byte *= 1.1;
    const struct profile before = profiles[2];
    profiles_level(profiles, names, COUNT);
    ck_assert(profile_equal(&profiles[2], &before));
    ck_assert(profile_equal(&profiles[0], &profiles[1]));
    ck_assert(profile_equal(&profiles[0], &profiles[3]));
    ck_assert(!profile_equal(&profiles[0], &profiles[2]));
    ck_assert_ptr_eq(profiles_first(profiles, 2), &profiles[2]);
}
END_TEST

/* Each is compared with the fastest: a long row of small steps is not one group. */
START_TEST(groups_do_not_creep)
{
    for (int i = 1; i < COUNT; i++)
        profiles[i].seconds_per_flop = profiles[i - 1].seconds_per_flop * 1.06;
    profiles_level(profiles, names, COUNT);
    ck_assert(profile_equal(&profiles[0], &profiles[1]));
    ck_assert(profile_equal(&profiles[2], &profiles[3]));
    ck_assert(!profile_equal(&profiles[0], &profiles[2]));
}
END_TEST

SUITE(alike)
{
    TCase *tcase = tcase_create("alike");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, like_devices_get_their_mean);
    tcase_add_test(tcase, equal_profiles_stay_to_the_last_bit);
    tcase_add_loop_test(tcase, another_device_keeps_its_own, 0,
                        sizeof differences / sizeof *differences);
    tcase_add_test(tcase, groups_do_not_creep);
    return suite_run("alike", tcase, NULL);
}
