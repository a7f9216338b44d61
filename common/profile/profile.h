/* profile.h - how fast a device and its links are: what a probe measured, or a datasheet says.
 *
 * It prices the instructions of a program: kernels by the measured rate of their operation, with
 * the graph's element or else in f32, everything else by bytes, messages by latency and bytes.
 * Times in seconds. */
#ifndef COMMON_PROFILE_PROFILE_H
#define COMMON_PROFILE_PROFILE_H

#include "common/base/element.h"
#include "common/profile/link.h"
#include "common/program/program.h"

#define PROFILE_RATES_MAX 64
#define PROFILE_NAME_SIZE 24

/* Of one operation that computes with an element, each direction: an instruction takes
 * fixed_s + flops x seconds_per_flop + bytes x seconds_per_byte: arithmetic grows with a product's
 * three sizes, or a sequence's length twice over, and what is read and written with fewer. */
struct profile_rate {
    char operation[PROFILE_NAME_SIZE];
    enum element element;
    double fixed_s[DIRECTIONS], seconds_per_flop[DIRECTIONS], seconds_per_byte[DIRECTIONS];
};

struct profile {
    struct profile_rate rates[PROFILE_RATES_MAX];
    size_t rate_count;
    double seconds_per_flop; /* of an operation that has no rate: the mean of the matrix products */
    double seconds_per_flop_bf16;      /* ... in bf16; 0: not measured, as in f32 */
    double seconds_per_byte;           /* copies, sums and the optimizer */
    double overhead_s;                 /* of every instruction that has no rate */
    struct profile_link host, network; /* between devices of one host; of two */
    double
        network_cards; /* of a host, which its devices' transfers share; 0: one for each device */
    double overlap;    /* how many times as long computing and moving data take beside each other */
};

/* Where nobody has measured it: between the 1.13 and 1.30 of arXiv 2211.13878. */
#define PROFILE_OVERLAP 1.2
/* Beyond it one after the other would be faster. */
#define PROFILE_OVERLAP_MAX 2

/* A device known by its peak rates only: kernels reach `share` of them. */
struct profile profile_analytic(double flops_per_s, double bytes_per_s, double share,
                                struct profile_link host, struct profile_link network);
/* All that the device itself does takes so many times as long. */
void profile_slow_down(struct profile *profile, double factor);
/* Seconds of an instruction on a device with this profile; a collective or a message goes over
 * `link`. */
double profile_seconds(const struct profile *profile, const struct profile_link *link,
                       const struct program *program, const struct instruction *instruction);

/* Of these what every kernel takes however little it has to do. */
double profile_fixed_seconds(const struct profile *profile, const struct program *program,
                             const struct instruction *instruction);

/* Whether two devices are equally fast, to the last bit. */
bool profile_equal(const struct profile *a, const struct profile *b);

/* JSON of one line, the caller's to free. Reading: -EINVAL with the member that is wrong. */
char *profile_encode(const struct profile *profile);
int profile_decode(const char *text, struct profile *out, struct error *err);

#endif
