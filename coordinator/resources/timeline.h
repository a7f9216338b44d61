/* timeline.h - a picture as JSON: ranks with the boxes of a step, as predicted and as measured in
 * the newest step. Each side has its length and bubble and counts what is left out. A missing side
 * is null, and its reason says why. */
#ifndef COORDINATOR_RESOURCES_TIMELINE_H
#define COORDINATOR_RESOURCES_TIMELINE_H

#include "coordinator/picture/picture.h"

#include <jansson.h>

struct resource_timeline {
    const char *job, *plan; /* "": it has none */
    uint64_t epoch;
    int rank_count;
    bool pending;                        /* the picture is being made */
    const struct picture *picture;       /* NULL: there is none, or none yet */
    const char *predicted_why;           /* "": there is a prediction */
    const struct picture_side *measured; /* NULL: there is none */
    const char *measured_why;
    uint64_t step; /* the measured step, and when it began */
    double unix_s;
};

/* The caller owns it. */
json_t *resource_timeline(const struct resource_timeline *of);

#endif
