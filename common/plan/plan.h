/* plan.h - a plan as data: which devices form each pipeline stage, which blocks of the model a
 * stage holds, and which role each mesh axis has for each block. Graph and plan together are
 * lowered to one program per rank (program/lower.h).
 *
 * Ranks are numbered through the stages in order, and inside a stage as in its mesh. Blocks are
 * those of the graph: "embed" first, "head" last, the layers between them. */
#ifndef COMMON_PLAN_PLAN_H
#define COMMON_PLAN_PLAN_H

#include "common/base/error.h"
#include "common/graph/graph.h"
#include "common/placement/role.h"
#include "common/plan/schedule.h"

#define PLAN_ID_SIZE 16

/* Limits of a plan, chosen so that no sum over it overflows. */
#define PLAN_RANKS_MAX 65536
#define PLAN_BLOCKS_MAX 16384
#define PLAN_MICRO_BATCHES_MAX 65536
#define PLAN_SAMPLES_MAX 1000000000          /* per step */
#define PLAN_ELEMENTS_MAX ((int64_t)1 << 42) /* per whole tensor */

struct plan_stage {
    struct mesh mesh; /* mesh.weights points to the weights below */
    int *weights;     /* relative shares of the samples, one per rank; NULL: all equal */
    char **devices;   /* "node/index", one per rank; NULL: not assigned yet */
    int block_first, block_count;
    double time_s;         /* predicted time of one micro-batch, forward and backward */
    uint64_t memory_bytes; /* predicted memory reservation of the rank that needs most */
};

/* Activation recomputation: what a block's backward computes again rather than keep from forward.
 * None; selective: the outputs of cheap operations; full: everything but the block's input. */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTES };
extern const char *const recompute_names[RECOMPUTES];

struct plan_block {
    int stage;
    const struct role *roles[AXES_MAX]; /* one per axis of the stage's mesh */
    /* The ZeRO stage (Rajbhandari et al., arXiv 1910.02054): what is sharded over the axes on which
     * a weight's gradient is partial. 0: nothing; 1: the optimizer state; 2: also the gradient,
     * which is reduced in every micro-batch; 3: also the weight, which is gathered for every block
     * that uses it. */
    int zero;
    enum recompute recompute;
};

/* A plan on the Pareto frontier of time, memory and devices: every other plan that was found is
 * worse than it in one of these or equal in all. The plan that lists it may be one of them. */
struct plan_alternative {
    char id[PLAN_ID_SIZE];
    double step_time_s;
    uint64_t memory_bytes_max;
    int devices;
};
#define PLAN_ALTERNATIVES_MAX 32

struct plan {
    char id[PLAN_ID_SIZE];
    struct plan_stage *stages;
    struct plan_block *blocks;
    int stage_count, block_count;
    int micro_batches;
    int64_t micro_batch_samples; /* over all ranks of a stage */
    const struct schedule *schedule;
    bool overlap; /* communication whose result is not needed at once runs beside computation */
    /* What the search found and predicted; 0 where it did not say. */
    struct {
        /* The name of the search ("given": the user gave the plan), and of what predicted
         * step_time_s: "simulation" or "events" (coordinator/planner/costs/simulate.h). */
        char search[16], referee[16];
        double wall_s;  /* how long the search took */
        int candidates; /* plans it considered */
        double step_time_s, tokens_per_s, bubble;
        /* Mean time per step spent on copies of state that a single node holds, in addition to
         * step_time_s. 0: there are none, or it was not asked. */
        double copies_time_s;
        uint64_t memory_bytes_max;
        double formula_s;                    /* step time by the closed formula */
        double balance_time, balance_memory; /* 1 - largest / sum, over the stages */
        /* How far from optimal the plan may be: by the formula; and, by simulation, a lower bound
         * on the step time of any plan and the gap to it. lower_bound_s 0: no bound is known. */
        double formula_gap, lower_bound_s, gap;
        char roles[64]; /* the roles that the bounds cover; "": all there are */
        struct plan_alternative alternatives[PLAN_ALTERNATIVES_MAX];
        int alternative_count;
    } predicted;
};

/* A plan with zeroed stages and blocks, one micro-batch of one sample, the first schedule, and
 * overlap. A mesh without axes is a single device. */
struct plan *plan_create(int stages, int blocks);
/* Accepts NULL. */
void plan_destroy(struct plan *plan);
/* A deep copy. */
struct plan *plan_copy(const struct plan *plan);

/* The number of ranks of all stages. */
int plan_ranks(const struct plan *plan);
/* The samples of a step. */
int64_t plan_global_batch(const struct plan *plan);
/* The first rank of a stage. */
int plan_stage_rank(const struct plan *plan, int stage);
/* The stage of a rank; *inside is the rank inside that stage. */
int plan_rank_stage(const struct plan *plan, int rank, int *inside);
/* The device of a rank, borrowed from the plan; NULL when none is assigned. */
const char *plan_device(const struct plan *plan, int rank);
/* Drop all device names, so that ranks may be assigned anywhere. */
void plan_forget_devices(struct plan *plan);
/* The product of the sizes of those axes whose role for this block is one of `names`, which ends
 * with NULL. */
int plan_degree(const struct plan *plan, int block, const char *const *names);

/* Check that the plan fits the model and can be lowered. -EINVAL if not; the text names the stage
 * or block at fault and what would be accepted. */
int plan_check(const struct plan *plan, const struct graph *graph, struct error *err);
/* The same for one block only, taking the mesh of its stage as checked. */
int plan_check_block(const struct plan *plan, const struct graph *graph, int block,
                     struct error *err);
/* Set the id to a short hash of the content, "p-3c1f09". For people only: two different plans may
 * have the same id. */
void plan_name(struct plan *plan);
/* Are the plans equal, devices included? Ids and predictions are ignored. */
bool plan_same(const struct plan *a, const struct plan *b);
/* Summarise in one line, "pp2·tp2·dp2 m4 1f1b", truncated to `size`; returns `out`. */
char *plan_print(char *out, size_t size, const struct plan *plan);

/* The plan as JSON, as in `gimbal plan -o json`: apiVersion gimbal/v1, kind Plan. To be freed by
 * the caller. */
char *plan_encode(const struct plan *plan, const struct graph *graph);
/* Read a plan from untrusted JSON. -EINVAL naming the member at fault. Whether the plan fits a
 * model is left to plan_check(). On success *out belongs to the caller. */
int plan_decode(const char *text, struct plan **out, struct error *err);
/* The same from a file; a negative errno when it cannot be read. The text names the path. */
int plan_load(const char *path, struct plan **out, struct error *err);

#endif
