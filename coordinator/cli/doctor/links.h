/* links.h - links of a cluster, each with the others of its level. */
#ifndef COORDINATOR_CLI_DOCTOR_LINKS_H
#define COORDINATOR_CLI_DOCTOR_LINKS_H

#include "common/doctor/doctor.h"

#include <stdint.h>

struct link_figure {
    const char *level;     /* "within": between the devices of a node; "between": nodes */
    const char *like;      /* of which model; links of others are not compared with it */
    const char *from, *to; /* names of nodes; lent, as all texts */
    double latency_s;
    double bytes_per_s;        /* 0: nobody has measured it */
    uint64_t measured_unix_ms; /* 0: not told */
};

/* Of those of its level and model the middle one; of an even number, between both. */
double links_median_latency(const struct link_figure *figures, size_t count,
                            const struct link_figure *of);
double links_median_bandwidth(const struct link_figure *figures, size_t count,
                              const struct link_figure *of);

/* A warning for each that is less than half as fast, or takes more than twice as long, as the
 * median of its level; a word of praise for a level without any. */
void links_judge(const struct link_figure *figures, size_t count, struct findings *out);

#endif
