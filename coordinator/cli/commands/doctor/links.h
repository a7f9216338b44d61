/* links.h - compares each link of a cluster with the others of its level. */
#ifndef COORDINATOR_CLI_COMMANDS_DOCTOR_LINKS_H
#define COORDINATOR_CLI_COMMANDS_DOCTOR_LINKS_H

#include "common/doctor/doctor.h"

#include <stdint.h>

struct link_figure {
    const char *level;     /* "within": between devices of a node; "between": between nodes */
    const char *like;      /* model of the devices; links of different models are not compared */
    const char *from, *to; /* names of nodes; all texts are lent */
    double latency_s;
    double bytes_per_s;        /* 0: not measured */
    uint64_t measured_unix_ms; /* 0: unknown */
};

/* Median over the links of the same level and model; for an even number the mean of the middle
 * two. */
double links_median_latency(const struct link_figure *figures, size_t count,
                            const struct link_figure *of);
double links_median_bandwidth(const struct link_figure *figures, size_t count,
                              const struct link_figure *of);

/* Add a warning for each link with less than half the median bandwidth of its level or more than
 * twice its latency, and a finding that all is well for a level without any. */
void links_judge(const struct link_figure *figures, size_t count, struct findings *out);

#endif
