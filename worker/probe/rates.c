/* rates.c - turns the measurements of a few sizes into the rates of a profile. */
#include "worker/probe/fit.h"
#include "worker/probe/internal.h"

#include <string.h>

#define SIZES_MAX 8

size_t probe_find_rates(const struct sums *sums, const char *operation)
{
    size_t i = 0;
    while (i < sums->count && strcmp(sums->rates[i].operation, operation) != 0)
        i++;
    return i;
}

/* Fit one direction of an operation, leaving out sizes in which it took no measurable time. */
static void fill_rate(struct profile_rate *rate, enum direction direction, const struct sums *sums,
                      size_t sizes)
{
    struct fit_sample samples[SIZES_MAX];
    double terms[FIT_TERMS];
    size_t count = 0;
    for (size_t s = 0; s < sizes && s < SIZES_MAX; s++) {
        size_t i = probe_find_rates(&sums[s], rate->operation);
        double times = i < sums[s].count ? sums[s].rates[i].instructions[direction] : 0;
        double seconds = times > 0 ? sums[s].rates[i].seconds[direction] / times : 0;
        if (seconds > 0)
            samples[count++] = (struct fit_sample){{1, sums[s].rates[i].flops[direction] / times,
                                                    sums[s].rates[i].bytes[direction] / times},
                                                   seconds};
    }
    fit_work(samples, count, terms);
    rate->fixed_s[direction] = terms[FIT_FIXED];
    rate->seconds_per_flop[direction] = terms[FIT_FLOPS];
    rate->seconds_per_byte[direction] = terms[FIT_BYTES];
}

/* Fit the cost of all instructions that are no kernels. */
static void fill_others(struct profile *profile, const struct sums *sums, size_t sizes)
{
    struct fit_sample samples[SIZES_MAX];
    double terms[FIT_TERMS];
    size_t count = 0;
    for (size_t s = 0; s < sizes && s < SIZES_MAX; s++)
        if (sums[s].other_seconds > 0)
            samples[count++] =
                (struct fit_sample){{1, 0, sums[s].other_bytes / sums[s].other_instructions},
                                    sums[s].other_seconds / sums[s].other_instructions};
    fit_work(samples, count, terms);
    profile->overhead_s = terms[FIT_FIXED];
    profile->seconds_per_byte = terms[FIT_BYTES];
}

void probe_fill_rates(struct profile *profile, enum element element, const struct sums *sums,
                      size_t sizes)
{
    for (size_t i = 0; i < sums->count && profile->rate_count < PROFILE_RATES_MAX; i++) {
        struct profile_rate *rate = &profile->rates[profile->rate_count++];
        strncpy(rate->operation, sums->rates[i].operation, sizeof rate->operation - 1);
        rate->element = element;
        for (int d = 0; d < DIRECTIONS; d++)
            fill_rate(rate, (enum direction)d, sums, sizes);
    }
    size_t product = probe_find_rates(sums, "fc1");
    double per_flop = sums->rates[product].seconds[FORWARD] / sums->rates[product].flops[FORWARD];
    if (element == ELEMENT_BF16) {
        profile->seconds_per_flop_bf16 = per_flop;
        return;
    }
    profile->seconds_per_flop = per_flop;
    fill_others(profile, sums, sizes);
}
