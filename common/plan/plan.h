/* plan.h - a plan as data: which devices form the stages, which blocks they hold, and what each
 * mesh axis does for each block. Graph and plan together lower to one program per rank.
 *
 * Ranks count through the stages in order, and inside a stage through its mesh. Blocks are the
 * graph's: "embed" first, "head" last, the repeated layers between. */
#ifndef COMMON_PLAN_PLAN_H
#define COMMON_PLAN_PLAN_H

#include "common/base/error.h"
#include "common/graph/graph.h"
#include "common/placement/role.h"
#include "common/plan/schedule.h"

#define PLAN_ID_SIZE 16

/* What a plan may be at most, so that nobody's sums overflow. */
#define PLAN_RANKS_MAX 65536
#define PLAN_BLOCKS_MAX 16384
#define PLAN_MICRO_BATCHES_MAX 65536
#define PLAN_SAMPLES_MAX 1000000000          /* of a step */
#define PLAN_ELEMENTS_MAX ((int64_t)1 << 42) /* of a whole tensor */

struct plan_stage {
    struct mesh mesh; /* lends weights */
    int *weights;     /* share of the samples of each rank; NULL: all equal */
    char **devices;   /* "node/index" of each rank; NULL: not yet placed */
    int block_first, block_count;
    double time_s;         /* predicted, one micro-batch forward and backward */
    uint64_t memory_bytes; /* predicted: the reservation of its largest rank */
};

/* What a block's backward makes again instead of finding it saved: nothing, the outputs of cheap
 * operations, or everything but the block's input. */
enum recompute { RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTES };
extern const char *const recompute_names[RECOMPUTES];

struct plan_block {
    int stage;
    const struct role *roles[AXES_MAX]; /* per axis of the stage's mesh */
    /* What is sharded over the axes on which a weight's gradient is partial: 1 the optimizer's
     * state, 2 also its gradient (reduced in each micro-batch), 3 also the weight (gathered for
     * each block that uses it). Rajbhandari et al., arXiv 1910.02054. */
    int zero;
    enum recompute recompute;
};

/* Another plan that is better in something: what can be had instead. */
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
    int64_t micro_batch_samples; /* of the whole micro-batch */
    const struct schedule *schedule;
    bool overlap; /* communication that is not wanted at once goes beside computing */
    /* What the search predicted; 0 where nothing was. */
    struct {
        char search[16], referee[16];
        double wall_s;
        int candidates;
        double step_time_s, tokens_per_s, bubble;
        uint64_t memory_bytes_max;
        double formula_s;                    /* of a step, in closed form */
        double balance_time, balance_memory; /* 1 - largest / sum, over the stages */
        /* How far from the best plan it may be: by the formula; and the shortest step that a
         * plan could have by simulation, and the gap to that. lower_bound_s 0: nothing is known. */
        double formula_gap, lower_bound_s, gap;
        char roles[64]; /* the best plan of these roles alone; "": of all there are */
        struct plan_alternative alternatives[PLAN_ALTERNATIVES_MAX];
        int alternative_count;
    } predicted;
};

/* Stages and blocks zeroed, one stage's mesh without axes being one device. */
struct plan *plan_create(int stages, int blocks);
void plan_destroy(struct plan *plan);
struct plan *plan_copy(const struct plan *plan);

int plan_ranks(const struct plan *plan);
int64_t plan_global_batch(const struct plan *plan);
/* The first rank of a stage; the stage of a rank, and its rank inside it. */
int plan_stage_rank(const struct plan *plan, int stage);
int plan_rank_stage(const struct plan *plan, int rank, int *inside);
/* Device of a rank, or NULL. */
const char *plan_device(const struct plan *plan, int rank);
/* Its ranks may run anywhere. */
void plan_forget_devices(struct plan *plan);
/* Product of the axes of a block whose role is one of `names` (ended by NULL). */
int plan_degree(const struct plan *plan, int block, const char *const *names);

/* Does lowering accept it? -EINVAL if not; the sentence names stage, block, role and dim, and
 * what would do. */
int plan_check(const struct plan *plan, const struct graph *graph, struct error *err);
/* The same of one block alone, its stage's mesh taken as sound. */
int plan_check_block(const struct plan *plan, const struct graph *graph, int block,
                     struct error *err);
/* Names the plan by its content: "p-3c1f09". For people: another plan may have the same name. */
void plan_name(struct plan *plan);
/* Are they one plan, on the same devices? Predictions are not looked at, nor names. */
bool plan_same(const struct plan *a, const struct plan *b);
/* "pp2·tp2·dp2 m4 1f1b": for a line. */
char *plan_print(char *out, size_t size, const struct plan *plan);

/* The plan of `gimbal plan -o json`: apiVersion gimbal/v1, kind Plan. The text is the caller's. */
char *plan_encode(const struct plan *plan, const struct graph *graph);
/* Reads what anybody wrote. -EINVAL with the member that is wrong; plan_check says the rest. */
int plan_decode(const char *text, struct plan **out, struct error *err);
/* The same of a file; -errno when it cannot be read. The sentence has its path. */
int plan_load(const char *path, struct plan **out, struct error *err);

#endif
