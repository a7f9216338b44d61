/* instance.h - one point of the space as numbers: choices for every block, what joins them, and
 * what every stage may hold. What stage_frontier and partition search. */
#ifndef COORDINATOR_PLANNER_EXACT_INSTANCE_H
#define COORDINATOR_PLANNER_EXACT_INSTANCE_H

#include "coordinator/planner/exact/chains.h"
#include "coordinator/planner/exact/crossings.h"
#include "coordinator/planner/exact/memory_price.h"
#include "coordinator/planner/exact/tied_floor.h"
#include "coordinator/planner/space/space.h"

/* A strategy that is not worse in everything than another with the same ends. */
struct choice {
    struct strategy strategy;
    struct part_cost cost;
    /* No less whatever the block is tied to: T of a micro-batch, and u. */
    double floor_s, floor_once_s;
    int entry, exit; /* which of the ends that the block's choices have */
    int tie;         /* see costs_tie */
};

/* Strategies with the same roles. They take no less than without sharding. */
struct role_vector {
    const struct strategy *strategies; /* so many follow each other */
    size_t count;
    double least_s, least_bound_s; /* of one micro-batch, as of choices; 0: not known */
    bool slow[RECOMPUTES];         /* whoever has all the memory he wants does not recompute so */
    bool added;                    /* its strategies are among the choices */
};

/* Of one block on one kind of site. */
struct choices {
    const struct site *site; /* one of the kind */
    int block, place;        /* one of the place */
    struct strategy *strategies;
    struct role_vector *vectors;
    size_t vector_count, vector_capacity;
    struct choice *items;
    size_t count, capacity;
    int entries, exits;
    struct strategy *entry_like, *exit_like;        /* per end: one that has it */
    double least_s, least_forward_s, least_bound_s; /* of one micro-batch */
    double least_alone_s; /* of m T + u: what counts where there is one stage */
    double omitted_s;     /* of those that were left out as too slow, like least_bound_s */
};

/* What joins the exits of one block to the entries of the next; known as far as asked for. */
struct joints {
    const struct choices *before, *after;
    int side; /* of a crossing; -1: inside a stage */
    int pair;
    struct part_cost *costs;
    bool *known;
};

/* What some blocks take at least, wherever they are: sums of the least of struct choices. */
struct least {
    double seconds, forward_s, alone_s;
};

struct instance {
    struct costs *costs;
    double upper_s; /* no plan is wanted that takes so long or longer */
    /* The bounds that the blocks between the ends have by themselves. Where the first is no less
     * than upper_s was at first there are no choices for the ends, and no other bounds. */
    double early_s, early_simulated_s, early_upper_s;
    struct space_point point;
    /* Memory is no object: nothing is recomputed that takes time. Times are of one rank. */
    bool relaxed;
    int blocks;
    const struct site **sites; /* per stage */
    int *slots;                /* per stage */
    struct part_cost *bases;   /* per stage */
    struct choices **all;      /* every set of choices once */
    size_t all_count, all_capacity;
    const struct choices **of; /* [stage * blocks + block] */
    struct joints **joints;
    size_t joints_count, joints_capacity, joints_last;
    int *pairs; /* per stage: what the one before is to it */
    struct crossings crossings;
    struct tied_floor tied;
    struct least *before; /* per block, and of the whole: of all blocks before it */
    /* Of plans that are wanted, however the blocks are divided: what the first stages and the last
     * take, the sum of all T, and the longest T. */
    struct chains chains;
    double sum_s, longest_s;
    double stage_s; /* m T + u of some stage */
    struct memory_price price;
};

/* choices.c, for the instance's own files: role vectors and what they take at least; then, of one
 * stage, what m T + u is at least; then the costs of all strategies whose vectors are not too slow.
 * Errors as of instance_init. */
int choices_survey(struct choices *choices, struct instance *instance, struct error *err);
int choices_settle(struct choices *choices, struct instance *instance, struct error *err);
int choices_fill(struct choices *choices, struct instance *instance, struct error *err);
void choices_destroy(struct choices *choices);
/* Strategies are left out that no plan below upper_s has; if there is no such plan, all are.
 * -ERANGE: a block has no legal strategy on some site; -EINVAL: none that the job allows;
 * -ECANCELED: nobody waits for the search any more. */
int instance_init(struct instance *instance, struct costs *costs, const struct space_point *point,
                  bool relaxed, double upper_s, struct error *err);
/* The two halves of that. After the first all bounds hold, and of one stage the strategies are
 * there that are best for themselves; the second may be told a lower upper_s. */
int instance_survey(struct instance *instance, struct costs *costs, const struct space_point *point,
                    bool relaxed, double upper_s, struct error *err);
int instance_fill(struct instance *instance, double upper_s, struct error *err);
void instance_finish(struct instance *instance);
/* Add up what the blocks take at least; filled: of all their strategies. */
void instance_sum(struct instance *instance, bool filled);
/* Bytes that a stage may have. */
uint64_t instance_memory(const struct instance *instance, int stage);
/* Leave out choices with which no plan takes less than this; keep the `most` that look best.
 * Returns what no plan with others that were left out is shorter than; infinity: there are none. */
double instance_prune(struct instance *instance, double upper_s, size_t most);
const struct choices *instance_choices(const struct instance *instance, int stage, int block);
/* Between `block` and the next, both on the stage; or on its side of a crossing from it (0) or
 * into it (1, `stage` being the second). */
const struct part_cost *instance_joint(struct instance *instance, int stage, int block, int exit,
                                       int entry);
const struct part_cost *instance_crossing(struct instance *instance, int stage, int block, int exit,
                                          int entry, int side);
/* The least of a block, wherever it is, of one of the sums of struct choices. */
double instance_least(const struct instance *instance, int block, size_t member);
/* The same of blocks [first, end). */
struct least instance_between(const struct instance *instance, int first, int end);
/* What the step takes at least if a block takes T and u on the kind of site that its choices are
 * for. */
double instance_choice_bound(const struct instance *instance, const struct choices *choices,
                             double seconds, double once_s);
/* No plan of the point is shorter, by the formula and by simulation; of longer ones than upper_s
 * they may say that alone. */
double instance_formula_bound(const struct instance *instance);
double instance_bound(const struct instance *instance);

#endif
