/* lower.h - lowering: turns a graph and a plan into the program of one rank.
 *
 * Wherever a tensor is wanted in another placement than it has, the same routine inserts the
 * redistribution: between operations, between gradients, between stages, and from where gradients
 * arise to where the optimizer keeps its slices. Lowering is deterministic: the same input gives
 * the same program on every machine. So programs are never sent: coordinator and executor both
 * lower the plan, and compare the hashes of what they got. */
#ifndef COMMON_PROGRAM_LOWER_H
#define COMMON_PROGRAM_LOWER_H

#include "common/program/program.h"

/* Lower the program of `rank`, which the caller destroys with program_destroy(). The program
 * borrows the graph. -EINVAL when the plan cannot be lowered, with the text of plan_check(). */
int lower(const struct graph *graph, const struct plan *plan, int rank, struct program **out,
          struct error *err);

/* A cache for lowering many ranks or many parts: redistribution paths and signatures found so far,
 * and the memory of the last part that is done with. It may be used with any mesh; if one has
 * weights, they are told apart by their address and must stay there while the cache is used. Not
 * thread-safe. */
struct lower_cache;
struct lower_cache *lower_cache_create(void);
/* Accepts NULL. */
void lower_cache_destroy(struct lower_cache *cache);
/* lower() with a cache: the same programs in less time. */
int lower_with(struct lower_cache *cache, const struct graph *graph, const struct plan *plan,
               int rank, struct program **out, struct error *err);

/* Where the master and the moments of a weight are: on the ranks of one stage, each of which has
 * its placement_slice(). Two ranks have the same slice, or slices that do not overlap. */
struct storage {
    int stage; /* -1: the tensor is no weight */
    struct shape shape;
    struct placement placement;
};
/* Find it for all tensors, without lowering anything: out[graph->tensor_count]. Errors as lower().
 */
int lower_storage(const struct graph *graph, const struct plan *plan, struct storage *out,
                  struct error *err);

/* A part of a rank's program, lowered on its own. The time and memory of a stage are the sum over
 * its parts, except for the transient region, which is the largest of theirs. So a planner can
 * lower every distinct part once and combine the results. */
enum part_kind {
    PART_BASE,     /* what a step needs besides blocks: the metrics */
    PART_BLOCK,    /* block `index`: weights, forward and backward, without its input */
    PART_JOINT,    /* between block `index` and the next in the same stage */
    PART_CROSSING, /* between stage `index` and the next, on a rank of either */
};

struct part {
    enum part_kind kind;
    int index;
    int tied; /* PART_BLOCK: the block whose weights it shares, lowered along with it; or -1 */
};

struct lowered_part {
    struct program *program; /* its regions hold this part only */
    uint64_t forward_bytes;  /* transients of a block's forward, without its output */
    uint64_t other_bytes;    /* transients of the largest of all other rooms */
    uint64_t passing_bytes;  /* of the block output that a joint or crossing consumes */
};

/* Lower one part as it is on `rank`. The plan must have passed plan_check(), or plan_check_block()
 * for the blocks that the part touches. The caller owns out->program and ends with
 * lower_part_done() or program_destroy(). */
int lower_part(const struct graph *graph, const struct plan *plan, int rank,
               const struct part *part, struct lower_cache *cache, struct lowered_part *out,
               struct error *err);
/* Return a part's program to the cache, where the next part reuses its memory. */
void lower_part_done(struct lower_cache *cache, struct lowered_part *part);

/* The first kind of recomputation that leads to the same program of a block, whatever its roles:
 * a kind may recompute nothing in this block, or no more than another kind does. */
enum recompute recompute_like(const struct graph *graph, int block, enum recompute recompute);

/* The placements at which a block meets its neighbours. Compared by memcmp. */
struct part_ends {
    struct {
        struct placement entry;     /* in which it expects its input */
        struct placement leaves[4]; /* in which it produces the input's gradient: all distinct */
    } input;
    struct {
        struct placement made;   /* in which it produces its output */
        struct placement wanted; /* in which it expects the output's gradient */
    } output;
};

/* The ends of a block. What it has not (the first block's input, the last one's output) is zero. */
struct part_ends lower_ends(const struct graph *graph, const struct plan *plan, int block);

#endif
