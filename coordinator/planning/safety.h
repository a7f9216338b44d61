/* safety.h - what a job loses with a node, by its plan; and what the copies cost that keep it
 * small.
 *
 * Where every slice of the state is on two nodes nothing is lost. Else a slice that one node alone
 * has is copied to another one behind every elastic.copy_every steps, or so often that it takes no
 * more than elastic.copy_share of the time; without that the newest checkpoint is all there is. An
 * executor that dies alone costs nothing in any case: its worker holds its state. */
#ifndef COORDINATOR_PLANNING_SAFETY_H
#define COORDINATOR_PLANNING_SAFETY_H

#include "coordinator/planning/fleet.h"

enum safety_kind {
    SAFETY_UNKNOWN,    /* too many ranks to look at all pairs, or a plan from before a restart */
    SAFETY_REPLICAS,   /* no step */
    SAFETY_COPIES,     /* those since the newest copy */
    SAFETY_CHECKPOINT, /* those since the newest checkpoint */
};

struct safety {
    enum safety_kind kind;
    /* Of SAFETY_COPIES: host memory of the rank that needs most of it, and how long the slowest
     * rank takes for a copy; these are beside the predicted memory and the predicted time of a
     * step. */
    uint64_t copy_bytes;
    double copy_s;
    uint64_t copy_every; /* steps from one to the next */
};

/* The plan has the names of its ranks' devices. */
struct safety safety_of(const struct planner_request *request, const struct plan *plan);
/* Of a step, in the mean; 0 where there are no copies. */
double safety_seconds(const struct safety *safety);
/* "replicas", "copies", "checkpoint"; "". */
const char *safety_name(enum safety_kind kind);

#endif
