/* candidates.h - the plans that were considered, and which of them is the best.
 *
 * A candidate is a complete plan with its predicted values. Searches append candidates; whoever
 * asked reads the answer off them, and the trade-off between time, memory and devices. */
#ifndef COORDINATOR_PLANNER_COSTS_CANDIDATES_H
#define COORDINATOR_PLANNER_COSTS_CANDIDATES_H

#include "common/plan/plan.h"
#include "coordinator/planner/costs/request.h"
#include "coordinator/planner/costs/safety.h"

#include <stdio.h>

struct candidate {
    struct plan *plan; /* owned; its predicted values are filled in */
    bool fits;      /* within the memory of every rank's device, and within the job's plan.memory */
    int tight_rank; /* if it does not fit: the first rank that exceeds its limit; -1: not known */
    uint64_t tight_bytes; /* what that rank needs; only if tight_rank is known */
    bool polished;        /* its neighbours have been tried, or it was found by trying neighbours */
};

struct planner_result {
    /* candidates[0].plan, lent; set only if planner_run() or planner_given() returns 0 */
    struct plan *best;
    struct safety safety; /* what a lost node would cost with `best` */
    /* After the best those that fit, ordered by the job's objective without the time of copies. */
    struct candidate *candidates;
    size_t count, capacity;
    /* plans and groups of plans that were judged; meaningful if more than count */
    size_t looked_at;
};

/* Append a candidate; its plan then belongs to the result. */
void candidates_add(struct planner_result *out, const struct candidate *candidate);
/* Destroys the candidates and zeroes the result. */
void candidates_finish(struct planner_result *result);

/* Whether any candidate fits. */
bool candidates_fits(const struct planner_result *out);
/* The fastest plan that fits, of the candidates from `first` on; NULL: none fits. */
struct plan *candidates_best(const struct planner_result *out, size_t first);
/* Whether a step takes less time; ties are broken by the plans' ids, as in planner_run(). */
bool candidates_shorter(const struct plan *plan, const struct plan *other);

/* The trade-off: the plans that fit and that no other one beats in step time, memory and number of
 * devices at once; of equal ones the first. Ordered by devices, most first, then by step time,
 * fastest first. The plans belong to the result; the caller frees the array. */
const struct plan **tradeoff_find(const struct planner_result *result, size_t *count);
/* Record the trade-off among all candidates as the alternatives of `best`, one that fits. */
void candidates_alternatives(const struct planner_result *out, struct plan *best);

#define CANDIDATES_TIGHT_SIZE 384
/* Describe why a candidate does not fit, by the first rank whose device is too small: "2.1 GiB on
 * node-b/0, where 1.7 GiB may be used (plan.memory)". The words in parentheses appear where the
 * limit is not the size of the device itself. CANDIDATES_TIGHT_SIZE bytes suffice; returns out. */
char *candidates_print_tight(const struct planner_request *request,
                             const struct candidate *candidate, char *out, size_t size);

/* Print the candidates as a table for people; at most `rows` of them, 0 for all. */
void candidates_print(const struct planner_result *result, size_t rows, FILE *out);

#endif
