/* profile.h - how fast a device and its links are, as a probe measured it or a datasheet says.
 *
 * A profile prices the instructions of a program: kernels by the measured rate of their operation,
 * with the graph's element type or else in f32; collectives and messages by latency and bytes;
 * everything else by bytes. Times are in seconds. */
#ifndef COMMON_PROFILE_PROFILE_H
#define COMMON_PROFILE_PROFILE_H

#include "common/base/element.h"
#include "common/hardware/hardware.h"
#include "common/program/program.h"

#define PROFILE_RATES_MAX 64
#define PROFILE_NAME_SIZE NODE_NAME_SIZE

/* The rate of one operation with one element type, by direction. An instruction takes
 * fixed_s + flops x seconds_per_flop + bytes x seconds_per_byte. Flops and bytes are separate terms
 * because they grow differently: arithmetic with all three sizes of a matrix product, or with the
 * square of the sequence length, memory traffic with fewer factors. */
struct profile_rate {
    char operation[PROFILE_NAME_SIZE];
    enum element element;
    double fixed_s[DIRECTIONS], seconds_per_flop[DIRECTIONS], seconds_per_byte[DIRECTIONS];
};

struct profile {
    struct profile_rate rates[PROFILE_RATES_MAX];
    size_t rate_count;
    double seconds_per_flop; /* of operations without a rate: the mean of the matrix products */
    double seconds_per_flop_bf16;       /* the same in bf16; 0: not measured, taken as in f32 */
    double seconds_per_byte;            /* copies, sums and the optimizer */
    double overhead_s;                  /* of every instruction without a rate */
    struct hardware_link host, network; /* links within a host; between hosts */
    /* Number of network cards of a host, shared by the transfers of its devices; 0: one each. */
    double network_cards;
    /* How many times as long computation and communication take when they overlap. */
    double overlap;
};

/* The overlap slowdown if it was not measured: between the 1.13 and 1.30 of arXiv 2211.13878. */
#define PROFILE_OVERLAP 1.2
/* With a larger slowdown, running one after the other would be faster. */
#define PROFILE_OVERLAP_MAX 2

/* The profile of a device of which only the peak rates are known; kernels reach `share` of them. */
struct profile profile_analytic(double flops_per_s, double bytes_per_s, double share,
                                struct hardware_link host, struct hardware_link network);
/* Multiply the time of everything that the device itself does by this factor. */
void profile_slow_down(struct profile *profile, double factor);
/* The seconds that an instruction takes on a device with this profile; collectives and messages go
 * over `link`. */
double profile_seconds(const struct profile *profile, const struct hardware_link *link,
                       const struct program *program, const struct instruction *instruction);

/* The part of profile_seconds() that a kernel takes regardless of its size; 0 for other
 * instructions. */
double profile_fixed_seconds(const struct profile *profile, const struct program *program,
                             const struct instruction *instruction);

/* Are two profiles equal, to the last bit? */
bool profile_equal(const struct profile *a, const struct profile *b);

/* The profile as one line of JSON, freed by the caller. */
char *profile_encode(const struct profile *profile);
/* -EINVAL with the member that is wrong. */
int profile_decode(const char *text, struct profile *out, struct error *err);

#endif
