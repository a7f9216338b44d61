/* instance.h - one point of the space in numbers: the choices of every block, what joins adjacent
 * blocks, and what every stage may hold. stage_frontier.h and partition.h search it.
 *
 * T is forward plus backward of one micro-batch, u what happens once per step, m the number of
 * micro-batches. An "end" is the layout of a block's input (entry) or output (exit). */
#ifndef COORDINATOR_PLANNER_EXACT_INSTANCE_H
#define COORDINATOR_PLANNER_EXACT_INSTANCE_H

#include "coordinator/planner/exact/chains.h"
#include "coordinator/planner/exact/crossings.h"
#include "coordinator/planner/exact/memory_price.h"
#include "coordinator/planner/exact/tied_floor.h"
#include "coordinator/planner/space/space.h"

/* A strategy that is not worse in every respect than another with the same ends. */
struct choice {
    struct strategy strategy;
    struct part_cost cost;
    /* Lower bounds on T and on u, whatever strategy the block that it shares weights with has. */
    double floor_s, floor_once_s;
    int entry, exit; /* indices among the ends that the block's choices have */
    int tie;         /* see costs_tie() */
};

/* Strategies with the same roles. None takes less than the unsharded one. */
struct role_vector {
    const struct strategy *strategies; /* `count` consecutive ones, lent */
    size_t count;
    /* lower bounds per micro-batch, as in struct choices; 0: not known */
    double least_s, least_bound_s, least_both_s, least_steady_s, least_forward_s;
    bool slow[RECOMPUTES]; /* recomputations that never pay off if memory is unlimited */
    bool added;            /* its strategies have been added to the choices */
};

/* The choices of one block on one kind of site. */
struct choices {
    const struct site *site; /* a site of the kind */
    int block, place;        /* a block of the place (short_graph.h) */
    struct strategy *strategies;
    struct role_vector *vectors;
    size_t vector_count, vector_capacity;
    struct choice *items;
    size_t count, capacity;
    int entries, exits;
    struct strategy *entry_like, *exit_like; /* [end]: a strategy that has it */
    /* minima over the choices, of one micro-batch */
    double least_s, least_forward_s, least_bound_s;
    double least_steady_s; /* as counted in stages_ahead(): by then all strategies were looked at */
    double least_alone_s;  /* minimum of m T + u, which is what counts if there is only one stage */
    double least_step_s;   /* minimum of what it spends at least in a step, see part_cost.h */
    /* as least_bound_s, least_both_s and least_s, for strategies that were left out as too slow */
    double omitted_s, omitted_both_s, omitted_time_s;
    /* least_forward_s as of the survey: of all strategies. Of all of them, too, m T + u, and what
     * is counted of the last to finish in instance_late_events(). */
    double ahead_s, work_s, late_s;
};

/* Costs of joining exits of one block to entries of the next, computed as requested. */
struct joints {
    const struct choices *before, *after;
    int side; /* side of a crossing (0 or 1); -1: within a stage */
    int pair; /* of a crossing: sites_pair() of the two stages */
    struct part_cost *costs;
    bool *known;
};

/* Lower bounds on some blocks wherever they are: sums of the minima in struct choices. */
struct least {
    double seconds, forward_s, alone_s;
};

struct instance {
    struct costs *costs;
    double upper_s; /* plans that take this long are not wanted */
    /* Bounds from the blocks between the ends alone. If early_s is at least early_upper_s, the
     * value of upper_s at that time, the end blocks have no choices, and there are no other
     * bounds. */
    double early_s, early_simulated_s, early_upper_s;
    struct space_point point;
    int ahead; /* stages_ahead() */
    /* Lower bounds on the step by events, early and of the whole survey. */
    double early_events_s, events_s;
    /* Memory is unlimited: no recomputation that takes time is considered. Times are those of one
     * rank. */
    bool relaxed;
    int blocks;
    const struct site **sites; /* per stage */
    int *slots;                /* per stage: micro-batches in flight */
    struct part_cost *bases;   /* per stage: costs_base() */
    struct choices **all;      /* each set of choices once */
    size_t all_count, all_capacity;
    const struct choices **of; /* [stage * blocks + block] */
    struct joints **joints;
    size_t joints_count, joints_capacity, joints_last;
    int *pairs; /* per stage: sites_pair() of the previous stage and this one */
    struct crossings crossings;
    struct tied_floor tied;
    struct least *surveyed; /* as `before`, at the end of the survey: of all strategies */
    struct least *before; /* [block]: least of all blocks before it; [blocks]: of the whole model */
    /* Bounds over all divisions of the blocks, for plans that are wanted: of the first and last
     * stages, of the sum of all T, and of the largest T. */
    struct chains chains;
    double sum_s, longest_s;
    double stage_s; /* least m T + u of the slowest stage */
    struct memory_price price;
};

/* Steps of computing choices (choices.c), used by the instance's own files. choices_survey() finds
 * the role vectors and their lower bounds. choices_settle() tightens the bound on m T + u, for
 * points with one stage. choices_fill() prices all strategies whose role vectors are not too slow.
 * Errors as of instance_init(). */
int choices_survey(struct choices *choices, struct instance *instance, struct error *err);
int choices_settle(struct choices *choices, struct instance *instance, struct error *err);
int choices_fill(struct choices *choices, struct instance *instance, struct error *err);
void choices_destroy(struct choices *choices);
/* Build the instance of a point. Strategies that no plan faster than upper_s can have are left out;
 * if there is no such plan, all are. -ERANGE: a block has no legal strategy on some site. -EINVAL:
 * it has none that the job allows. -ECANCELED: the search was stopped. Call instance_finish() in
 * any case. */
int instance_init(struct instance *instance, struct costs *costs, const struct space_point *point,
                  bool relaxed, double upper_s, struct error *err);
/* The two halves of instance_init(). After the survey all bounds are valid and, for points with one
 * stage, the strategies that are best by themselves are known. The fill may be given a lower
 * upper_s. */
int instance_survey(struct instance *instance, struct costs *costs, const struct space_point *point,
                    bool relaxed, double upper_s, struct error *err);
int instance_fill(struct instance *instance, double upper_s, struct error *err);
void instance_finish(struct instance *instance);
/* Sum up the lower bounds of the blocks; filled: use the minima over all their strategies. */
void instance_sum(struct instance *instance, bool filled);
/* Bytes that each device of a stage may use. */
uint64_t instance_memory(const struct instance *instance, int stage);
/* Drop choices with which no plan is faster than upper_s, and of the others keep at most `most` per
 * set. Returns a lower bound on plans with choices that were dropped for their number; infinity:
 * none were. */
double instance_prune(struct instance *instance, double upper_s, size_t most);
/* The choices of a block on a stage, lent; NULL if it cannot be there. */
const struct choices *instance_choices(const struct instance *instance, int stage, int block);
/* Cost of joining `block` to the next one: both on the stage; or one side of a crossing, with side
 * 0 for the sending stage and 1 for the receiving one, `stage` being the stage of that side. Lent;
 * impossible joints take infinite time. */
const struct part_cost *instance_joint(struct instance *instance, int stage, int block, int exit,
                                       int entry);
const struct part_cost *instance_crossing(struct instance *instance, int stage, int block, int exit,
                                          int entry, int side);
/* The least of a member of struct choices (its offset) over all kinds of site that a block may be
 * on. */
double instance_least(const struct instance *instance, int block, size_t member);
/* Sums of these minima over blocks [first, end). */
struct least instance_between(const struct instance *instance, int first, int end);
/* Lower bound on the step if a block takes T = seconds and u = once_s on the kind of site of these
 * choices. */
double instance_choice_bound(const struct instance *instance, const struct choices *choices,
                             double seconds, double once_s);
/* Lower bounds on all plans of the point by the formula and by simulation; they may be capped at
 * upper_s. */
double instance_formula_bound(const struct instance *instance);
double instance_bound(const struct instance *instance);
/* Lower bound by events on all plans of the point, and what it is at the end of the survey, as long
 * as the minima of choices are over all strategies. */
double instance_events_bound(const struct instance *instance);
double instance_survey_events(const struct instance *instance);
/* The same once choices are filled, which counts what follows once per step. */
double instance_late_events(const struct instance *instance);

#endif
