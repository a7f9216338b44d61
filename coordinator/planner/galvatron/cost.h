/* cost.h - what a plan costs by the accounting of the Galvatron project (its cost model of version
 * 2.4): time by its formula, memory in MB; and the time that the same stages take when they are
 * simulated, by neither side's formula.
 *
 * The pipeline formula is the larger of two estimates, neither of which is a bound, and charges
 * only the first and the last stage per micro-batch: see cost.c. */
#ifndef COORDINATOR_PLANNER_GALVATRON_COST_H
#define COORDINATOR_PLANNER_GALVATRON_COST_H

#include "coordinator/planner/galvatron/profile.h"

#define GALVATRON_STAGES_MAX 1024

struct galvatron_problem {
    struct galvatron_spec spec;
    struct galvatron_profile profile;
};

/* How a layer is divided over the tp x dp devices of a stage. */
struct galvatron_strategy {
    int tp, dp;
    bool consecutive; /* the ranks of a tensor group are adjacent; otherwise those of a dp group */
    bool ulysses;     /* tp divides sequences between layers, and heads inside attention */
    bool recompute;
    int zero; /* 0, 2 or 3 */
};

/* What all layers of a plan have in common. */
struct galvatron_point {
    int pp;
    int64_t batch;   /* samples per step */
    int64_t chunks;  /* micro-batches, as the plan has them */
    int64_t samples; /* of a micro-batch, on each replica where tp is min_tp: "mbsz" */
    int min_tp, max_tp;
    int vtp;        /* degree of tensor parallelism of embedding and head */
    bool vsp;       /* these divide sequences instead, over all devices */
    bool embed_sdp; /* these use zero 3 */
};

struct galvatron_plan {
    struct galvatron_point point;
    int division[GALVATRON_STAGES_MAX]; /* layers of each stage */
    int layers;
    struct galvatron_strategy *strategies; /* one per layer; owned */
};

/* Of a layer or of a stage. Seconds are of one micro-batch. */
struct galvatron_cost {
    double seconds;   /* without reduction of gradients */
    double reduced_s; /* with it */
    double layers_s;  /* with it, of a stage without embedding and head */
    int64_t mb;
};

struct galvatron_verdict {
    double formula_s, neutral_s;
    int64_t micro_batches; /* as the formula counts them */
    int64_t budget_mb, reserve_mb;
    bool fits; /* in what the reserve leaves */
    int stages;
    struct galvatron_cost stage[GALVATRON_STAGES_MAX];
    /* What is outside of that project's own space: words that end with NULL. */
    const char *notes[8];
};

/* Micro-batches of a step as the formula counts them. */
int64_t galvatron_micro_batches(const struct galvatron_problem *problem,
                                const struct galvatron_point *point);
/* Seconds of a layer of this type. -EINVAL: the profile lacks something, which the message names.
 */
int galvatron_layer_seconds(const struct galvatron_problem *problem, int type,
                            const struct galvatron_strategy *strategy,
                            const struct galvatron_point *point, struct galvatron_cost *out,
                            struct error *err);
/* MB of a layer of this type on a stage, not rounded: a stage has the sum of its layers', each
 * rounded up. -EINVAL also when the samples cannot be divided so. */
int galvatron_layer_mb(const struct galvatron_problem *problem, int type,
                       const struct galvatron_strategy *strategy,
                       const struct galvatron_point *point, int stage, double *out,
                       struct error *err);
/* MB of a stage's embedding, head and context, not rounded. */
int galvatron_ends_mb(const struct galvatron_problem *problem, const struct galvatron_point *point,
                      int stage, double *out, struct error *err);
/* Seconds and MB of a stage without its layers: of these, rounded up, and of the buffer that
 * sequence parallelism gathers into; layers_s is 0. */
int galvatron_ends(const struct galvatron_problem *problem, const struct galvatron_point *point,
                   int stage, struct galvatron_cost *out, struct error *err);

/* Step time by the formula. */
double galvatron_formula(const struct galvatron_cost *stages, int count, int64_t micro_batches);
/* Step time by simulation: 1F1B without interleaving, a third of a stage's time forward and the
 * rest backward, and its gradients reduced once, after its last backward. */
double galvatron_neutral(const struct galvatron_cost *stages, int count, int64_t micro_batches);

/* -EINVAL: the plan does not describe this model on these devices, or the profile lacks something;
 * the message says what. */
int galvatron_judge(const struct galvatron_problem *problem, const struct galvatron_plan *plan,
                    struct galvatron_verdict *out, struct error *err);

#endif
