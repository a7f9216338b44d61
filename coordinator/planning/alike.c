/* alike.c - see alike.h. All terms of a profile are factors of a sum, so the mean of terms predicts
 * the mean of times. */
#include "coordinator/planning/alike.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Of two times, or of two that are not known. */
static bool is_near(double a, double b, double ratio)
{
    return a == b || (a > 0 && b > 0 && a <= b * ratio && b <= a * ratio);
}

static bool have_same_rates(const struct profile *a, const struct profile *b)
{
    bool same = a->rate_count == b->rate_count;
    for (size_t i = 0; i < a->rate_count && same; i++)
        same = a->rates[i].element == b->rates[i].element &&
               strcmp(a->rates[i].operation, b->rates[i].operation) == 0;
    return same;
}

static bool are_alike(const struct profile *a, const struct profile *b)
{
    return is_near(a->seconds_per_flop, b->seconds_per_flop, ALIKE_FLOPS) &&
           is_near(a->seconds_per_flop_bf16, b->seconds_per_flop_bf16, ALIKE_FLOPS) &&
           is_near(a->seconds_per_byte, b->seconds_per_byte, ALIKE_BYTES) &&
           is_near(a->host.seconds_per_byte, b->host.seconds_per_byte, ALIKE_LINK) &&
           is_near(a->network.seconds_per_byte, b->network.seconds_per_byte, ALIKE_LINK) &&
           a->network_cards == b->network_cards && have_same_rates(a, b);
}

static void add_link(struct hardware_link *sum, const struct hardware_link *link, double share)
{
    sum->latency_s += share * link->latency_s;
    sum->seconds_per_byte += share * link->seconds_per_byte;
}

static void add(struct profile *sum, const struct profile *profile, double share)
{
    for (size_t i = 0; i < profile->rate_count; i++)
        for (int d = 0; d < DIRECTIONS; d++) {
            sum->rates[i].fixed_s[d] += share * profile->rates[i].fixed_s[d];
            sum->rates[i].seconds_per_flop[d] += share * profile->rates[i].seconds_per_flop[d];
            sum->rates[i].seconds_per_byte[d] += share * profile->rates[i].seconds_per_byte[d];
        }
    sum->seconds_per_flop += share * profile->seconds_per_flop;
    sum->seconds_per_flop_bf16 += share * profile->seconds_per_flop_bf16;
    sum->seconds_per_byte += share * profile->seconds_per_byte;
    sum->overhead_s += share * profile->overhead_s;
    sum->overlap += share * profile->overlap;
    add_link(&sum->host, &profile->host, share);
    add_link(&sum->network, &profile->network, share);
}

/* Names of operations and counts, with all times 0. */
static struct profile without_times(const struct profile *profile)
{
    struct profile out = {.rate_count = profile->rate_count,
                          .network_cards = profile->network_cards};
    for (size_t i = 0; i < profile->rate_count; i++) {
        memcpy(out.rates[i].operation, profile->rates[i].operation, PROFILE_NAME_SIZE);
        out.rates[i].element = profile->rates[i].element;
    }
    return out;
}

/* The fastest device without a group; count: all have one. */
static size_t find_leader(const struct profile *profiles, const char *const *names,
                          const bool *grouped, size_t count)
{
    size_t leader = count;
    for (size_t i = 0; i < count; i++)
        if (names[i] && !grouped[i] &&
            (leader == count || profiles[i].seconds_per_flop < profiles[leader].seconds_per_flop))
            leader = i;
    return leader;
}

void profiles_level(struct profile *profiles, const char *const *names, size_t count)
{
    bool *grouped = xcalloc(count, sizeof *grouped);
    size_t *members = xcalloc(count, sizeof *members), leader;
    while ((leader = find_leader(profiles, names, grouped, count)) < count) {
        size_t size = 0;
        bool equal = true; /* then the mean would differ by rounding */
        for (size_t i = 0; i < count; i++)
            if (names[i] && !grouped[i] && strcmp(names[i], names[leader]) == 0 &&
                are_alike(&profiles[i], &profiles[leader])) {
                equal = equal && profile_equal(&profiles[i], &profiles[leader]);
                members[size++] = i;
            }
        struct profile mean = without_times(&profiles[leader]);
        for (size_t i = 0; i < size; i++)
            add(&mean, &profiles[members[i]], 1 / (double)size);
        for (size_t i = 0; i < size; i++) {
            grouped[members[i]] = true;
            profiles[members[i]] = equal ? profiles[members[i]] : mean;
        }
    }
    free(grouped);
    free(members);
}

const struct profile *profiles_first(const struct profile *profiles, size_t index)
{
    size_t first = 0;
    while (first < index && !profile_equal(&profiles[first], &profiles[index]))
        first++;
    return &profiles[first];
}
