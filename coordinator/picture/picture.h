/* picture.h - the timeline of a step, in two colours: as it was predicted, and as it was measured.
 *
 * A picture is made once for a plan, which lowers and simulates it and takes its time; what was
 * measured is put beside it from the times of instructions, which is soon done. However large a job
 * is, its picture is not: of PICTURE_RANKS_MAX ranks, the first of all stages before the second; a
 * box that is shorter than a step by PICTURE_PARTS is left out; and a rank whose boxes would be
 * more than PICTURE_BOXES_MAX together with those before it is without them. What is left out is
 * counted. */
#ifndef COORDINATOR_PICTURE_PICTURE_H
#define COORDINATOR_PICTURE_PICTURE_H

#include "coordinator/picture/outline.h"
#include "coordinator/planner/planner.h"
#include "coordinator/telemetry/traces.h"

#define PICTURE_RANKS_MAX 32
#define PICTURE_BOXES_MAX 4096 /* of either colour */
#define PICTURE_PARTS 2000

/* What a rank does in a step. */
struct picture_row {
    bool told;                /* its boxes are there */
    double bubble;            /* share of the step in which it does not compute; NAN: not known */
    size_t instructions_left; /* that were not told of, at the end of the step */
    struct boxes boxes;
};

/* One colour. */
struct picture_side {
    double step_s;            /* 0: there is none */
    double bubble;            /* mean over the rows; NAN: not known of any */
    struct picture_row *rows; /* of the picture's ranks */
    size_t count;
};
void picture_side_finish(struct picture_side *side);

struct picture_rank {
    int rank, stage;
    char *device;   /* "node-a/0"; NULL: anywhere */
    size_t outline; /* many have the same */
};

struct picture {
    char plan[PLAN_ID_SIZE];
    int rank_count; /* of the plan */
    struct picture_rank *ranks;
    size_t count;
    struct outline *outlines;
    size_t outline_count, outline_capacity;
    struct picture_side predicted;
    struct error why; /* there is no prediction */
};

/* Rank r of the plan, which plan_check accepts, runs on device r of the request; where it has none,
 * for the reason that `why` gives, there is no prediction, nor where the simulation fails. *out is
 * yours. -errno of lower; -ECANCELED: it was stopped. */
int picture_make(const struct planner_request *request, const struct plan *plan,
                 const struct error *why, struct picture **out, struct error *err);
/* Accepts NULL. */
void picture_destroy(struct picture *picture);

/* A step of the picture's plan as its ranks have told of it, by their nodes' clocks: where these
 * differ, rows are shifted. *out is yours to finish. */
void picture_measure(const struct picture *picture, const struct trace_step *step,
                     struct picture_side *out);

#endif
