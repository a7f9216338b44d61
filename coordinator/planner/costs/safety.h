/* safety.h - what a job would lose with a node under its plan, and the cost of the copies that
 * limit the loss.
 *
 * If every slice of the state is on two nodes, nothing is lost. Otherwise slices held by a single
 * node are copied to another one every elastic.copy_every steps, or as often as elastic.copy_share
 * of the time allows. Without copies the newest checkpoint is all there is.
 *
 * An executor that dies alone costs nothing if its state lies in host memory, since its worker
 * holds it. Then a plan on a single node makes no copies: nobody else could keep them. The state in
 * an accelerator's own memory dies with its executor, so a plan for accelerators of one node does
 * make copies, of what a single rank holds.
 *
 * Copies are made beside the next step, which waits for them before it is applied. So a node that
 * dies in the meantime takes one step more with it.
 *
 * Copies lie in host memory. Where a rank has no room for them beside what it needs there anyhow,
 * none are made. */
#ifndef COORDINATOR_PLANNER_COSTS_SAFETY_H
#define COORDINATOR_PLANNER_COSTS_SAFETY_H

#include "common/plan/plan.h"

struct planner_request;

enum safety_kind {
    SAFETY_UNKNOWN,    /* of a plan from before a restart of the coordinator, for one */
    SAFETY_REPLICAS,   /* no step is lost */
    SAFETY_COPIES,     /* the steps since the newest copy are lost */
    SAFETY_CHECKPOINT, /* the steps since the newest checkpoint are lost */
};

struct safety {
    enum safety_kind kind;
    bool single;  /* all ranks are on one node, so with the node all of it is lost anyhow */
    bool no_room; /* SAFETY_CHECKPOINT because copies would not fit into host memory */
    /* For SAFETY_COPIES and no_room, in addition to the plan's predicted memory and step time: host
     * memory of the rank that needs most for copies, and the time by which copies lengthen a step
     * on the slowest rank. */
    uint64_t copy_bytes;
    double copy_s;
    uint64_t copy_every; /* steps between copies; 0: none are made */
};

/* Analyse a plan whose predicted step time is known; rank r is on device r of the request. */
struct safety safety_of(const struct planner_request *request, const struct plan *plan);
/* Mean time per step spent on copies; 0 if there are none. */
double safety_seconds(const struct safety *safety);
/* "replicas", "copies", "checkpoint" or "". */
const char *safety_name(enum safety_kind kind);

#endif
