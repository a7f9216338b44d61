/* outline.h - of which box each instruction of a rank's step is a part, run by run: what is kept of
 * a program to make boxes of times that were measured. */
#ifndef COORDINATOR_PICTURE_OUTLINE_H
#define COORDINATOR_PICTURE_OUTLINE_H

#include "coordinator/picture/boxes.h"

struct outline_run {
    struct box_place place;
    uint32_t count; /* instructions */
};

/* Zeroed to begin with. */
struct outline {
    struct outline_run *runs;
    size_t count, capacity;
};
void outline_finish(struct outline *outline);

/* Of the first instructions_max instructions of a training step. */
void outline_make(const struct program *program, size_t instructions_max, struct outline *out);
bool outline_same(const struct outline *a, const struct outline *b);

/* When the first instructions of a step ran: nanoseconds from some time, which was base_s seconds
 * behind the beginning of the step. */
struct outline_times {
    const uint64_t *begin_ns, *end_ns;
    size_t count;
    double base_s;
};
/* Adds boxes, as boxes_add. */
void outline_measure(const struct outline *outline, const struct outline_times *times, double gap_s,
                     struct boxes *out);

#endif
