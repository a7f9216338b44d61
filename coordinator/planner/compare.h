/* compare.h - compares plans of our searches with the best plan of Galvatron's space, by
 * Galvatron's formula and by a simulation that is independent of both.
 *
 * The searches use the same measurements and only plans that the formula knows: the roles
 * batch, tensor and tensor_seq; zero 0, 2 and 3; no or full recomputation; 1F1B. */
#ifndef COORDINATOR_PLANNER_COMPARE_H
#define COORDINATOR_PLANNER_COMPARE_H

#include "coordinator/planner/galvatron/cost.h"
#include "coordinator/planner/planner.h"

struct galvatron_row {
    const char *from; /* name of the search; "galvatron" or "given" */
    /* NULL: there is none, and words says why. Its predictions are by our programs. */
    struct plan *plan;
    bool judged;      /* Galvatron's formula can judge it; if not, words says why */
    double formula_s; /* step time by that formula */
    /* step time of the stages as that formula has them, run one micro-batch forward, one
     * backward */
    double simulated_s;
    double bytes; /* on the devices of the fullest stage, by that formula */
    bool fits;    /* by that formula */
    struct error words;
};

struct galvatron_rows {
    struct galvatron_row *items;
    size_t count;
    double memory_bytes; /* of a device, as that formula uses it */
};

/* Fill one row per search and a last one for Galvatron. `names` are of searches and end with NULL;
 * alternatively a plan may be given, of which ownership is taken. -ECANCELED: stopped. The caller
 * finishes *out in any case. */
int galvatron_compare(const struct planner_request *request,
                      const struct galvatron_profile *profile, const char *const *names,
                      struct plan *given, struct galvatron_rows *out, struct error *err);
void galvatron_rows_finish(struct galvatron_rows *rows);

/* The profile of the request's first device, made from Galvatron's measurements, so that our
 * searches, whose costs are those of instructions, choose by the same data. What changes: one layer
 * alone takes what was measured forward, and twice that backward; links have the bandwidth of the
 * largest group measured inside a host and across all devices. What was not measured (latencies,
 * the optimizer, embedding and head) is unchanged. */
struct profile galvatron_fit(const struct galvatron_profile *measured,
                             const struct planner_request *request);

#endif
