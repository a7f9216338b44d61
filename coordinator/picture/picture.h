/* picture.h - the timeline of a step, predicted and measured.
 *
 * A picture is made once per plan, which is lowered and simulated for it and so takes its time;
 * measurements are added later from the times of instructions, which is quick. The size of a
 * picture is bounded, however large the job: it has at most PICTURE_RANKS_MAX ranks, the first of
 * all stages before the second; boxes shorter than 1/PICTURE_PARTS of a step are left out; and a
 * rank whose boxes would exceed PICTURE_BOXES_MAX together with those before it has none. What is
 * left out is counted. */
#ifndef COORDINATOR_PICTURE_PICTURE_H
#define COORDINATOR_PICTURE_PICTURE_H

#include "coordinator/picture/boxes.h"
#include "coordinator/planner/planner.h"
#include "coordinator/telemetry/measured.h"

#define PICTURE_RANKS_MAX 32
#define PICTURE_BOXES_MAX 4096 /* per side */
#define PICTURE_PARTS 2000

/* A rank's step. */
struct picture_row {
    bool told;                /* its boxes are present */
    double bubble;            /* share of the step in which it does not compute; NAN: unknown */
    size_t instructions_left; /* instructions at the end of the step that were not reported */
    struct boxes boxes;
};

/* Either the prediction or the measurement. */
struct picture_side {
    double step_s;            /* 0: there is none */
    double bubble;            /* mean over the rows; NAN: unknown for all */
    struct picture_row *rows; /* one per rank of the picture */
    size_t count;
};
void picture_side_finish(struct picture_side *side);

struct picture_rank {
    int rank, stage;
    char *device;   /* as in "node-a/0"; NULL: unspecified */
    size_t outline; /* index of its outline; many ranks share one */
};

struct picture {
    char plan[PLAN_ID_SIZE];
    int rank_count; /* of the plan */
    struct picture_rank *ranks;
    size_t count;
    struct outline *outlines;
    size_t outline_count, outline_capacity;
    struct picture_side predicted;
    struct error why; /* why there is no prediction */
};

/* Draw a plan that plan_check() accepts; rank r runs on device r of the request. If the request has
 * no devices, for the reason given by `why`, or if the simulation fails, there is no prediction.
 * The caller owns *out. Errors of lower(); -ECANCELED: stopped. */
int picture_make(const struct planner_request *request, const struct plan *plan,
                 const struct error *why, struct picture **out, struct error *err);
/* Accepts NULL. */
void picture_destroy(struct picture *picture);

/* Draw a step of the picture's plan as reported by its ranks, by their nodes' clocks; rows are
 * shifted where the clocks differ. The caller finishes *out. */
void picture_measure(const struct picture *picture, const struct trace_step *step,
                     struct picture_side *out);

#endif
