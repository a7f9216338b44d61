/* boxes.h - what a rank does in a step, as boxes to draw: instructions that follow each other in
 * one section of one micro-batch are one box, of computing or of moving data.
 *
 * Times are seconds from the beginning of the step. */
#ifndef COORDINATOR_PICTURE_BOXES_H
#define COORDINATOR_PICTURE_BOXES_H

#include "common/program/program.h"

/* What computes, and what moves data or waits for it. */
enum box_lane { BOX_COMPUTE, BOX_COMMUNICATION, BOX_LANES };

/* Of what an instruction is a part; of the types that are small, because many are kept. */
struct box_place {
    uint8_t section, queue, lane;
    int32_t micro_batch; /* -1: of none */
};

struct picture_box {
    struct box_place place;
    double begin_s, end_s;
};

/* Zeroed to begin with. */
struct boxes {
    struct picture_box *items;
    size_t count, capacity;
    size_t open[QUEUES][BOX_LANES]; /* 1 + the box that may still grow; 0: none */
    double busy_s;                  /* of the computing queue: computing */
    size_t left_out;                /* by boxes_settle: so many, and how long they take */
    double left_out_s;
};
void boxes_finish(struct boxes *boxes);

struct box_place box_place(const struct program *program, const struct program_cursor *cursor);
bool box_place_same(const struct box_place *a, const struct box_place *b);

/* An instruction; those of a queue come in its order. It is of the box before it where that is of
 * the same place and less than gap_s away. One that takes no time is no box. */
void boxes_add(struct boxes *boxes, const struct box_place *place, double begin_s, double end_s,
               double gap_s);
/* Leave out those that are shorter, and put the others in order: computing first, and each by when
 * it begins. Nothing may be added then. */
void boxes_settle(struct boxes *boxes, double shortest_s);

/* "compute", "communication" */
const char *box_lane_name(enum box_lane lane);

#endif
