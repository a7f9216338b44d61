/* cost.h - what a step takes by the formula of the Galvatron project (its cost model of
 * version 2.4), so that a plan can be judged by both referees. Times in seconds, memory in bytes.
 *
 * It knows plans of layers that are all alike, of the roles batch and tensor (with or without
 * sequences split), zero 0, 2 and 3, and recomputation of nothing or all. What it takes for the
 * time of a pipeline is the larger of two guesses, neither of which is a bound: see
 * cost.c. */
#ifndef COORDINATOR_PLANNER_GALVATRON_COST_H
#define COORDINATOR_PLANNER_GALVATRON_COST_H

#include "common/plan/plan.h"
#include "common/profile/galvatron.h"

struct galvatron_problem {
    const struct galvatron_profile *profile;
    int64_t hidden, seq;
    int layers;
    uint64_t memory_bytes; /* of a device: galvatron_memory says how much of it is used */
};

/* Of a layer, on tensor x batch devices. */
struct galvatron_strategy {
    int tensor, batch;
    bool neighbours; /* tensor's ranks are: else batch's */
    int zero;
    bool recompute;
};

/* Of a layer, of embedding and head, or of a whole stage. */
struct galvatron_cost {
    double seconds;  /* of a micro-batch whose gradients are not reduced */
    double reduce_s; /* of one whose gradients are; of embedding and head 0: theirs always are */
    double bytes;
    /* The same for a simulation, which reduces every gradient once: what each micro-batch takes,
     * and the reductions. */
    double repeated_s, once_s;
};

/* A fifth stays unused where there are more than 20 GiB. */
double galvatron_memory(const struct galvatron_problem *problem);

/* samples: of a micro-batch. slots: micro-batches whose activations are kept. -EINVAL: the profile
 * lacks a degree; the sentence names it. */
int galvatron_layer(const struct galvatron_problem *problem,
                    const struct galvatron_strategy *strategy, int stages, int64_t samples,
                    int slots, struct galvatron_cost *out, struct error *err);
/* What the stage has besides layers, on `devices` of them: the context of a device; at the ends
 * embedding and head, over `tensor` devices. */
int galvatron_ends(const struct galvatron_problem *problem, int devices, int tensor, int zero,
                   int stage, int stages, int64_t samples, int slots, struct galvatron_cost *out,
                   struct error *err);
double galvatron_step(const struct galvatron_cost *stages, int count, int micro_batches);
/* The same stages run in the order of the plan's schedule, a third of a micro-batch forward, the
 * rest backward, what is done once at the end: a step by neither side's formula. */
double galvatron_simulate(const struct galvatron_cost *stages, const struct plan *plan);

/* A whole plan; costs (optional): filled, one per stage. -ENOTSUP: their formula does not know what
 * it has. */
int galvatron_judge(const struct galvatron_problem *problem, const struct plan *plan,
                    struct galvatron_cost *costs, double *step_s, bool *fits, struct error *err);

#endif
