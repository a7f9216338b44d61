/* lower.h - graph + plan -> the program of one rank.
 *
 * Redistribution is inserted by one routine: between operations, between gradients, between
 * stages, and from where gradients arise to where the optimizer keeps its slices. The same
 * input gives the same program everywhere: its hash travels with an assignment. */
#ifndef COMMON_PROGRAM_LOWER_H
#define COMMON_PROGRAM_LOWER_H

#include "common/program/program.h"

/* The graph is lent to the program. -EINVAL: the plan is not one that can be lowered; the
 * sentence is plan_check's. */
int lower(const struct graph *graph, const struct plan *plan, int rank, struct program **out,
          struct error *err);

/* What many ranks' programs, or many parts, share: ways between placements, found once, on any mesh
 * whose weights (if it has some) stay where they are meanwhile; and the memory of a part that is
 * done with. */
struct ways;
struct ways *ways_create(void);
void ways_destroy(struct ways *ways);
/* lower(), for many ranks: the same programs, sooner. ways: may be NULL. */
int lower_with(struct ways *ways, const struct graph *graph, const struct plan *plan, int rank,
               struct program **out, struct error *err);

/* Part of a rank's program, by itself. What a stage's blocks and joints take is the sum of its
 * parts', and its transient region the largest of theirs, so a planner lowers every part once. */
enum part_kind {
    PART_BASE,     /* what a step needs besides blocks: the metrics */
    PART_BLOCK,    /* block `index`: weights, forward, backward, without its input */
    PART_JOINT,    /* between blocks `index` and the next, of one stage */
    PART_CROSSING, /* between stages `index` and the next, on a rank of either */
};

struct part {
    enum part_kind kind;
    int index;
    /* Of a block: its weights are tied to those of this one, which are lowered too; else -1. */
    int tied;
};

struct lowered_part {
    struct program *program; /* its regions hold this part alone */
    uint64_t forward_bytes;  /* of a block: transients of its forward, without its output */
    uint64_t other_bytes;    /* transients of all other rooms */
    uint64_t passing_bytes;  /* of the output that a joint or crossing finds: kept no longer */
};

/* `rank` of a plan that plan_check accepted, at least in the blocks that the part touches.
 * The program is the caller's. */
int lower_part(const struct graph *graph, const struct plan *plan, int rank,
               const struct part *part, struct ways *ways, struct lowered_part *out,
               struct error *err);
/* In place of program_destroy(): the next part's program is written over this one. */
void lower_part_done(struct ways *ways, struct lowered_part *part);

/* The first recomputation that makes the same programs of the block, whatever its roles: what it
 * would run again may be nothing, or no more than another does. */
enum recompute recompute_like(const struct graph *graph, int block, enum recompute recompute);

/* Where a block meets its neighbours: how it finds its input and leaves that one's gradient (one
 * placement for each way in which it leaves), how it makes its output and wants its gradient.
 * Compared by memcmp. */
struct part_ends {
    struct {
        struct placement entry, leaves[4];
    } input;
    struct {
        struct placement made, wanted;
    } output;
};

int lower_ends(const struct graph *graph, const struct plan *plan, int block, struct part_ends *out,
               struct error *err);

#endif
