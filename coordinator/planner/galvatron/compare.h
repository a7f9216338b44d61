/* compare.h - plans of our searches beside the best one of Galvatron's space, by its
 * formula and by a simulation that knows neither side.
 *
 * Searches choose by the same measurements (fit.h), among plans that the formula knows:
 * the roles batch, tensor and tensor_seq, zero 0, 2 and 3, recomputation of nothing or all, 1F1B.
 */
#ifndef COORDINATOR_PLANNER_GALVATRON_COMPARE_H
#define COORDINATOR_PLANNER_GALVATRON_COMPARE_H

#include "coordinator/planner/galvatron/cost.h"
#include "coordinator/planner/planner.h"

struct galvatron_row {
    const char *from;   /* the search; "galvatron" or "given" */
    struct plan *plan;  /* NULL: there is none, words says why. predicted: by our programs */
    bool judged;        /* does their formula know it? words says why not */
    double formula_s;   /* a step by their formula */
    double simulated_s; /* the stages of their formula, run one micro-batch forward, one backward */
    double bytes;       /* of the fullest stage's devices, by their formula */
    bool fits;          /* by their formula */
    struct error words;
};

struct galvatron_rows {
    struct galvatron_row *items;
    size_t count;
    double memory_bytes; /* of a device, that their formula uses */
};

/* `names` are of searches, and end with NULL; in their place a plan may be given, which is taken.
 * -ECANCELED: it was stopped. Either way *out is yours to finish. */
int galvatron_compare(const struct planner_request *request,
                      const struct galvatron_profile *profile, const char *const *names,
                      struct plan *given, struct galvatron_rows *out, struct error *err);
void galvatron_rows_finish(struct galvatron_rows *rows);

#endif
