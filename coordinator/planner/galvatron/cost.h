/* cost.h - step time by the formula of the Galvatron project (its cost model of version 2.4), so
 * that a plan can be judged by both cost models. Times in seconds, memory in bytes.
 *
 * It knows plans of layers that are all alike, with the roles batch and tensor (with or without
 * split sequences), zero 0, 2 and 3, and no or full recomputation. Its time of a pipeline is the
 * larger of two estimates, neither of which is a bound: see cost.c. */
#ifndef COORDINATOR_PLANNER_GALVATRON_COST_H
#define COORDINATOR_PLANNER_GALVATRON_COST_H

#include "common/plan/plan.h"
#include "coordinator/planner/galvatron/profile.h"

struct galvatron_problem {
    const struct galvatron_profile *profile;
    int64_t hidden, seq;
    int layers;
    uint64_t memory_bytes; /* of a device; galvatron_memory() tells how much of it is used */
};

/* The strategy of a layer on tensor x batch devices. */
struct galvatron_strategy {
    int tensor, batch;
    /* the ranks of a tensor group are adjacent; otherwise those of a batch group */
    bool neighbours;
    int zero;
    bool recompute;
};

/* Cost of a layer, of embedding and head, or of a whole stage. */
struct galvatron_cost {
    double seconds; /* of a micro-batch without reduction of gradients */
    /* of a micro-batch with it; 0 for embedding and head, whose gradients are always reduced */
    double reduce_s;
    double bytes;
    /* For a simulation, which reduces every gradient once: what each micro-batch takes, and the
     * reductions. */
    double repeated_s, once_s;
};

/* The memory that is used: a fifth is left free if there are more than 20 GiB. */
double galvatron_memory(const struct galvatron_problem *problem);

/* Cost of a layer. samples: per micro-batch. slots: micro-batches whose activations are kept.
 * -EINVAL: the profile lacks a degree; the message names it. */
int galvatron_layer(const struct galvatron_problem *problem,
                    const struct galvatron_strategy *strategy, int stages, int64_t samples,
                    int slots, struct galvatron_cost *out, struct error *err);
/* Cost of a stage without its layers, on `devices` devices: the context of a device and, at either
 * end of the model, embedding and head over `tensor` devices. */
int galvatron_ends(const struct galvatron_problem *problem, int devices, int tensor, int zero,
                   int stage, int stages, int64_t samples, int slots, struct galvatron_cost *out,
                   struct error *err);
/* Step time of a pipeline by the formula. */
double galvatron_step(const struct galvatron_cost *stages, int count, int micro_batches);
/* Simulate the same stages in the order of the plan's schedule, with a third of a micro-batch's
 * time forward, the rest backward, and what is done once at the end: a step by neither side's
 * formula. */
double galvatron_simulate(const struct galvatron_cost *stages, const struct plan *plan);

/* Judge a whole plan. costs (optional) receives one entry per stage. -ENOTSUP: the formula does not
 * know something that the plan uses. */
int galvatron_judge(const struct galvatron_problem *problem, const struct plan *plan,
                    struct galvatron_cost *costs, double *step_s, bool *fits, struct error *err);

#endif
