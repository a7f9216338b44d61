/* boxes.h - a rank's step as boxes to draw: consecutive instructions of one section of one
 * micro-batch form a box, either of computing or of moving data.
 *
 * Times are seconds from the beginning of the step.
 *
 * An outline tells which box each instruction of a rank's step belongs to, run-length encoded: what
 * is kept of a program to make boxes from measured times. */
#ifndef COORDINATOR_PICTURE_BOXES_H
#define COORDINATOR_PICTURE_BOXES_H

#include "common/program/program.h"

/* computing; moving data or waiting for it */
enum box_lane { BOX_COMPUTE, BOX_COMMUNICATION, BOX_LANES };

/* What an instruction is part of; uses small types because many are kept. */
struct box_place {
    uint8_t section, queue, lane;
    int32_t micro_batch; /* -1: none */
};

struct picture_box {
    struct box_place place;
    double begin_s, end_s;
};

/* Initialize to zero. */
struct boxes {
    struct picture_box *items;
    size_t count, capacity;
    size_t open[QUEUES][BOX_LANES]; /* 1 + index of the box that may still grow; 0: none */
    double busy_s;                  /* time that the compute queue computes */
    size_t left_out; /* set by boxes_settle(): number of boxes left out, and their total time */
    double left_out_s;
};
void boxes_finish(struct boxes *boxes);

/* The place of the instruction at the cursor. */
struct box_place box_place(const struct program *program, const struct program_cursor *cursor);
bool box_place_same(const struct box_place *a, const struct box_place *b);

/* Add an instruction; those of a queue must come in its order. It extends the preceding box if that
 * has the same place and ended less than gap_s before. Instructions that take no time are
 * ignored. */
void boxes_add(struct boxes *boxes, const struct box_place *place, double begin_s, double end_s,
               double gap_s);
/* Leave out boxes shorter than shortest_s and sort the others: computing first, each lane by begin.
 * Nothing may be added afterwards. */
void boxes_settle(struct boxes *boxes, double shortest_s);

/* "compute", "communication" */
const char *box_lane_name(enum box_lane lane);

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
