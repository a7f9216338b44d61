/* hunt.h - the exact search: visits the points of the space in the order of their lower bounds and
 * finds the best plans of each.
 *
 * A point is opened only if its bound leaves it a chance. It is relaxed first, that is, searched as
 * if memory were unlimited, and then closed: searched with the memory there is. In comments, T is a
 * stage's forward and backward of one micro-batch, F its forward, u what it does once per step, and
 * m the number of micro-batches. */
#ifndef COORDINATOR_PLANNER_EXACT_HUNT_H
#define COORDINATOR_PLANNER_EXACT_HUNT_H

#include "coordinator/planner/exact/bounds.h"
#include "coordinator/planner/exact/partition.h"

/* Limits beyond which an exact search stops being exact; its certificate says so. None of them is a
 * time: they are amounts of work, numbers of devices and relative differences, and do not depend on
 * how fast the machine is. */
struct hunt_limits {
    /* labels per frontier, in points with one stage and with several */
    size_t labels, pipeline_labels;
    size_t choices; /* choices of a block per kind of site */
    size_t pairs;   /* pairs of ties of the first and last block that are solved */
    double points;  /* if the space has more points, only the even ones are listed at first */
    double joins;   /* pairs of labels, in points that are searched again by deepening.h */
    /* points whose bound is this close to the best, relatively, are not searched again */
    double near;
    size_t scouts; /* programs of parts after which scouting stops */
    /* Programs of parts after which no more points are opened, provided that some plan fits: per
     * device, and the minimum and maximum of the product. */
    size_t parts, parts_least, parts_most;
    size_t patience;    /* factor on that budget as long as little is known */
    size_t search;      /* factor on that budget as long as nothing that fits has been found */
    double proof;       /* the relative gap to be proved, for which more work is granted */
    int proof_devices;  /* on up to this many devices */
    int wide_devices;   /* on more devices not all roles are tried */
    double plans;       /* plans in a space that may be enumerated to close the gap */
    size_t simulations; /* how many of these may be simulated */
    /* block runs to spend on simulating neighbours of the best plans; 0: none are tried */
    int64_t polish;
    /* plans of points that are worse by this fraction, by the formula, are confirmed too */
    double slack;
    /* On few devices points are also resumed whose formula exceeds the best simulated step by up to
     * this fraction, within a budget of programs of parts. */
    double over;
    size_t resumed;
    double enough; /* a plan within this fraction of the best of its point will do */
};
/* standard: the usual search. quick: for requests in a hurry. none: no limits. */
extern const struct hunt_limits hunt_limits_standard, hunt_limits_quick, hunt_limits_none;

/* A plan that was found, owned by the hunt; seconds by the formula, and its own lower bound. */
struct found {
    struct plan *plan;
    double formula_s, bound_s;
    bool simulated;
};

struct hunt_point {
    struct space_point point;
    struct point_bound bound; /* lower bounds for all its plans, as far as known */
    double hope_s;            /* the scouts' estimate of its best step; infinity: not scouted */
    bool too_small;           /* its devices cannot hold the model's state */
    bool relaxed, closed;     /* relaxed: searched with unlimited memory. closed: finished. */
    bool surveyed;            /* its bounds were tightened, and it was not relaxed by then */
    bool found;               /* its best plan, as far as it was searched, has been found */
    bool resumed;  /* searched once more for plans no slower than the best simulated one */
    int depth;     /* how often it was searched again with higher limits */
    double joined; /* pairs of labels joined when it was searched last */
    size_t index;
};

struct hunt {
    const struct planner_request *request;
    struct hunt_limits limits;
    struct costs costs;
    struct basis basis;
    struct hunt_point *points; /* in the order in which they are opened */
    size_t point_count, point_capacity;
    int least; /* number of devices */
    /* If not 0, only numbers of devices this far apart are listed, and of these only even
     * divisions. 0: all points are listed. */
    int step;
    struct plan *smallest; /* if nothing was found at once: the plan that needs the least memory */
    struct found *found;   /* the best plans of points, best first once hunt_run() has returned */
    size_t found_count, found_capacity;
    double best_s;      /* best step by the formula */
    double simulated_s; /* best step by simulation; infinity: none was simulated yet */
    double unlisted_s;  /* lower bound by simulation on the points that were not listed */
    /* lower bounds on all plans, by the formula and by simulation */
    double formula_least_s, least_s;
    size_t opened; /* points that were searched or scouted successfully */
    size_t before; /* programs of parts lowered before the points were opened */
};

/* -ENOTSUP as costs_init(). The request must outlive the hunt. */
int hunt_init(struct hunt *hunt, const struct planner_request *request,
              const struct hunt_limits *limits, struct error *err);
void hunt_finish(struct hunt *hunt);
/* List the points on `least` to `most` devices with their bounds, discarding earlier results; opens
 * none. -EINVAL: there are none. */
int hunt_points(struct hunt *hunt, int least, int most, struct error *err);
/* Search on `least` to `most` devices, discarding earlier results. -EINVAL: there is no legal plan;
 * the message tells of the last point tried. A return of 0 with found_count 0 means that no plan
 * fits. */
int hunt_run(struct hunt *hunt, int least, int most, struct error *err);

/* For code that looks for plans: hunt_add() takes ownership of a plan that fits and may be the
 * best; hunt_is_enough() tells whether the search may end. */
void hunt_add(struct hunt *hunt, struct plan *plan, double formula_s);
bool hunt_is_enough(const struct hunt *hunt);
/* Set formula_least_s and least_s to what is proved so far. */
void hunt_certify(struct hunt *hunt);

#endif
