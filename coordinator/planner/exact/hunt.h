/* hunt.h - all points of a space in the order of their bounds, and the best plans of each. */
#ifndef COORDINATOR_PLANNER_EXACT_HUNT_H
#define COORDINATOR_PLANNER_EXACT_HUNT_H

#include "coordinator/planner/exact/bounds.h"
#include "coordinator/planner/exact/partition.h"

/* Where an exact search stops being exact, and its certificate says so. */
struct hunt_limits {
    size_t labels, pipeline_labels; /* of a frontier where there is one stage, or are more */
    size_t choices;                 /* of a block on one kind of site */
    size_t pairs;                   /* of ties of the ends */
    double points;                  /* more than so many are not listed: uneven ones are left out */
    double joins;                   /* of labels, in points that are looked at again */
    double near;                    /* no point is, whose bound is so near to the best */
    size_t scouts;                  /* programs of parts after which no more points are scouted */
    /* After which no more are opened, if any fits: for each device, at least, and at most. */
    size_t parts, parts_least, parts_most;
    size_t patience;    /* so many times as many as long as little is known */
    size_t search;      /* and as long as nothing was found that fits */
    double proof;       /* the best is to be proved so near to the best of all, */
    int proof_devices;  /* for so many devices at most, if it takes no more than some time */
    int wide_devices;   /* beyond so many not all roles are tried */
    double plans;       /* whole plans that may be walked through to close a gap */
    size_t simulations; /* of these */
    int64_t polish;     /* blocks run in plans that are neighbours of the best; 0: none is tried */
    double slack;       /* points whose best is so much worse by the formula are confirmed too */
    /* And so much worse than the best simulated step, of few devices: as many programs of parts as
     * that takes at most. */
    double over;
    size_t resumed;
    double enough; /* a plan that is so much worse, at most, than the best of its point will do */
};
/* quick: somebody stands still until there is a plan. */
extern const struct hunt_limits hunt_limits_standard, hunt_limits_quick, hunt_limits_none;

struct found {
    struct plan *plan;
    double formula_s, bound_s;
    bool simulated;
};

struct hunt_point {
    struct space_point point;
    struct point_bound bound; /* of all its plans, as far as known */
    double hope_s;            /* what scouts think that a plan of it takes; infinity: not known */
    bool too_small;           /* its devices cannot hold the model's state */
    bool relaxed, closed;     /* searched without regard to memory; done with */
    bool found;               /* a plan of it that is its best, as far as was searched */
    bool resumed;             /* searched once more, for plans as slow as the best simulated one */
    int depth;                /* limits of labels were doubled so often */
    double joined;            /* pairs of labels when it was searched last */
    size_t index;
};

struct hunt {
    const struct planner_request *request;
    struct hunt_limits limits;
    struct costs costs;
    struct bounds bounds;
    struct hunt_point *points; /* in the order in which they are opened */
    size_t point_count, point_capacity;
    int least; /* devices */
    int step;  /* between the numbers of devices that are listed, of which only even divisions; 0:
                  all */
    struct plan *smallest; /* none was found at once: the one that needs the least memory */
    struct found *found;   /* the best of points, best first */
    size_t found_count, found_capacity;
    double best_s;                   /* by the formula */
    double simulated_s;              /* the best by simulation; infinity: none was simulated yet */
    double unlisted_s;               /* no point that was not listed is shorter, by simulation */
    double formula_least_s, least_s; /* no plan is shorter: by the formula, by simulation */
    size_t opened;
    size_t before; /* programs of parts that were lowered before points were opened */
};

/* -ENOTSUP as costs_init. */
int hunt_init(struct hunt *hunt, const struct planner_request *request,
              const struct hunt_limits *limits, struct error *err);
void hunt_finish(struct hunt *hunt);
/* The points on `least` to `most` devices anew, and their bounds; none is opened. -EINVAL: none. */
int hunt_points(struct hunt *hunt, int least, int most, struct error *err);
/* Search on `least` to `most` devices anew. -EINVAL: there is no legal plan; the sentence is of
 * the last point. 0 and found_count 0: none fits. */
int hunt_run(struct hunt *hunt, int least, int most, struct error *err);

/* For those who look for plans: takes a plan that fits, which may be the best; is all known that is
 * wanted? */
void hunt_add(struct hunt *hunt, struct plan *plan, double formula_s);
bool hunt_is_enough(const struct hunt *hunt);
/* What no plan is shorter than, as far as is known by now. */
void hunt_certify(struct hunt *hunt);

#endif
