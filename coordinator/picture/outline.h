/* outline.h - which box each instruction of a rank's step belongs to, run-length encoded: what is
 * kept of a program to make boxes from measured times. */
#ifndef COORDINATOR_PICTURE_OUTLINE_H
#define COORDINATOR_PICTURE_OUTLINE_H

#include "coordinator/picture/boxes.h"

struct outline_run {
    struct box_place place;
    uint32_t count; /* of instructions */
};

/* Initialize to zero. */
struct outline {
    struct outline_run *runs;
    size_t count, capacity;
};
void outline_finish(struct outline *outline);

/* Outline the first instructions_max instructions of a training step. */
void outline_make(const struct program *program, size_t instructions_max, struct outline *out);
bool outline_same(const struct outline *a, const struct outline *b);

/* When the first instructions of a step ran: nanoseconds relative to a time that is base_s seconds
 * after the beginning of the step. */
struct outline_times {
    const uint64_t *begin_ns, *end_ns;
    size_t count;
    double base_s;
};
/* Add boxes as by boxes_add(). */
void outline_measure(const struct outline *outline, const struct outline_times *times, double gap_s,
                     struct boxes *out);

#endif
