/* lowering.h - what the parts of lowering share; nobody else includes it.
 *
 * emit.c appends buffers and instructions, move.c inserts redistribution and sends, blocks.c
 * runs a block forward and backward.c backward, joints.c brings tensors from block to block and
 * from stage to stage, weights.c brings weights to their users and gradients.c gradients to the
 * optimizer, arena.c lays the buffers out, waits.c finds what the queues need of each other, and
 * lower.c calls them in order. */
#ifndef COMMON_PROGRAM_LOWERING_H
#define COMMON_PROGRAM_LOWERING_H

#include "common/placement/redistribute.h"
#include "common/program/lower.h"

/* A tensor, or a version of it, as this rank holds it. */
struct held {
    int tensor;
    struct placement placement;
    struct piece piece;
};

struct held_list {
    struct held *items;
    size_t count, capacity;
};

/* Where a node's input was fetched from in forward. */
struct fetched {
    struct placement placement;
    struct piece piece;
    bool again; /* backward gathers it anew from the smaller piece that is saved */
};

/* A way between placements on this rank's mesh: searched once, taken in every block. */
struct route {
    const char *dims;
    bool uneven;
    struct placement from, to;
    struct step steps[STEPS_MAX];
    int count;
};

/* One way in which a stage uses a weight; several nodes may share it. */
struct weight_use {
    int tensor, stage, node;
    struct placement compute, leaving; /* of the weight; of its gradient */
    struct piece weight, gradient;     /* on this rank, if the stage is its own */
    struct piece shard;                /* scattered gradients: their sum, in storage placement */
    int bucket;                        /* -1: reduced by itself */
    int next;                          /* use of the same weight; -1: none */
};

/* Gradients of a block that one all-reduce finishes. */
struct bucket {
    int block;
    unsigned axes;
    int buffer;
    int64_t count;
};

struct lowering {
    const struct graph *graph;
    const struct plan *plan;
    struct program *program;
    int stage, inside; /* of this rank */
    const struct mesh *mesh;
    int section, block, room;
    enum queue queue;        /* of the instructions to come */
    bool joins;              /* the last instruction takes further parts, */
    int joins_room;          /* and was made in this room */
    const struct part *part; /* all that is lowered; NULL: the whole */
    int found, forward_room; /* of a part: the buffer it finds, the room of its forward; or -1 */
    uint64_t *room_bytes;    /* of a part: transients of every room */
    struct signature *signatures; /* per node, in its block's roles */
    struct held *homes; /* per tensor: as it was made, or as it came; tensor -1: not here */
    struct fetched (*fetched)[OPERANDS_MAX];    /* per node */
    struct piece (*statistics)[STATISTICS_MAX]; /* per node, of forward */
    struct route *routes;
    struct ways *ways; /* (optional) those of many parts, in place of routes */
    size_t route_count, route_capacity;
    struct held_list versions; /* redistributed copies inside the open block */
    struct held_list arriving; /* gradients of tensors, by placement */
    int *shares;               /* per buffer: how many arriving gradients it holds */
    size_t shares_capacity;
    struct weight_use *uses;
    size_t use_count, use_capacity;
    struct placement *storage; /* per weight tensor */
    int *owner;                /* per weight tensor: its first use */
    struct bucket *buckets;
    size_t bucket_count, bucket_capacity;
    struct error *err;
};

/* What a message carries: with the tensor or the use of a weight, its tag. */
enum purpose { PURPOSE_ACTIVATION, PURPOSE_GRADIENT, PURPOSE_WEIGHT, PURPOSES };

/* emit.c */
int emit_buffer(struct lowering *l, enum region region, int64_t count, int tensor);
struct instruction *emit(struct lowering *l, enum instruction_kind kind);
/* Append a piece to the last instruction. */
void emit_piece(struct lowering *l, int operand, const struct piece *piece);
/* The last instruction touches this buffer too; -1: none. */
void emit_use(struct lowering *l, int buffer);
/* Scratch of a kernel, or -1. */
int emit_workspace(struct lowering *l, const struct operation *operation, const struct box *boxes,
                   enum direction direction);
/* A new buffer that holds exactly this box. */
struct piece emit_new(struct lowering *l, enum region region, int tensor, const struct box *box);
void emit_copy(struct lowering *l, const struct piece *from, const struct piece *to,
               const struct box *part);
void emit_add(struct lowering *l, const struct piece *from, const struct piece *to);
void emit_clear(struct lowering *l, int buffer, int64_t count);
void emit_section(struct lowering *l, enum section section);
/* What comes is not wanted at once: if the plan says so it goes beside computing, on the queue of
 * communication and in buffers that the next room leaves alone. */
void emit_beside(struct lowering *l);
/* What comes is in computing's way. */
void emit_at_once(struct lowering *l);
/* Begin a room: what comes is for this block. */
void emit_room(struct lowering *l, int block);
/* An exchange of the piece with all members, counts: where its chunks begin. One that follows
 * another of its kind, group and room becomes part of that, unless they are told apart: where some
 * members of the group have something to do between the two, and others have not. */
void emit_collective(struct lowering *l, enum collective kind, int group, int counts,
                     const struct piece *source, const struct piece *destination);
void emit_apart(struct lowering *l);
int emit_group(struct lowering *l, unsigned axes); /* of this rank's mesh */
int emit_group_all(struct lowering *l);
void emit_all_reduce(struct lowering *l, int group, enum reduction reduction,
                     const struct piece *piece);
const struct mesh *stage_mesh(const struct lowering *l, int stage);
struct shape tensor_shape(const struct lowering *l, int tensor);
/* What this rank holds of a tensor. What tells ranks apart, here and in does_for_all(), is noted in
 * the program. */
struct box own_slice(const struct lowering *l, const struct shape *shape,
                     const struct placement *placement);
/* Is this rank at coordinate 0 of all these axes? */
bool at_first_of(const struct lowering *l, unsigned axes);
/* Then it alone does, for all along these axes, what is to be done once: it has more to do. */
bool does_for_all(const struct lowering *l, unsigned axes);

/* ways.c: redistribute_path(), remembered; *steps are lent as long as the ways are. */
int ways_find(struct ways *ways, const struct mesh *mesh, const struct shape *shape,
              const struct placement *from, const struct placement *to, const struct step **steps,
              struct error *err);

/* signature_make(), remembered. */
int ways_signature(struct ways *ways, const struct operation *operation,
                   const struct role *const *vector, int axes, struct signature *out,
                   struct error *err);

/* An empty program with the arrays of the one that was given back last; gives one back. */
struct program *ways_program(struct ways *ways);
void ways_give_back(struct ways *ways, struct program *program);

/* move.c: redistribute_path() for a tensor on this rank's mesh; *steps are lent until the next
 * call. */
int move_route(struct lowering *l, int tensor, const struct placement *from,
               const struct placement *to, const struct step **steps);
/* Redistribute a piece on this rank's mesh. A first all-reduce works in place, so the
 * source must be of no other use. */
int move_within(struct lowering *l, const struct shape *shape, int tensor,
                const struct placement *from, const struct placement *to, struct piece *piece);
/* across.c: between stages, by the intersection of slices; replicas take turns in sending. `piece`
 * is read on the sending stage and made on the receiving one. use: of a weight; 0 for an
 * activation. */
void move_across(struct lowering *l, const struct shape *shape, int tensor, enum purpose purpose,
                 int use, int from_stage, const struct placement *from, int to_stage,
                 const struct placement *to, struct piece *piece);

/* weights.c */
int weights_find(struct lowering *l);
void weights_buffers(struct lowering *l);
int weights_travel(struct lowering *l);
void weights_update(struct lowering *l);
struct weight_use *weights_use(struct lowering *l, int node, int operand);
/* The use whose stage keeps the weight, and that one's zero; is a use of this rank's stage? */
const struct weight_use *weights_owner(const struct lowering *l, int tensor);
int weights_zero(const struct lowering *l, const struct weight_use *owner);
bool weights_here(const struct lowering *l, const struct weight_use *use);
/* Is the weight gathered for every block that uses it, not once per step? (zero 3) */
bool weights_gathered(const struct lowering *l, const struct weight_use *use);
/* A new buffer between steps; one that a move made, to be kept like that. */
struct piece weights_state(struct lowering *l, int tensor, const struct placement *placement);
void weights_keep(struct lowering *l, const struct piece *piece);

/* gradients.c */
void gradients_place(struct lowering *l, struct weight_use *use);
void gradients_clear(struct lowering *l);
int gradients_reduce(struct lowering *l);
/* Gradients of zero 2 and 3 live in one block's backward: made at its beginning, reduced and
 * added to their shard at its end. */
void gradients_open_block(struct lowering *l, int block);
int gradients_close_block(struct lowering *l, int block);

/* blocks.c, backward.c: one block, which finds its input in its entry placement, and the
 * gradient of its output in the placement in which it wants it. */
int forward_node(struct lowering *l, int node);
int block_forward(struct lowering *l, int block);
int block_backward(struct lowering *l, int block);
/* A tensor in this placement, redistributed if it is not there yet. */
int blocks_fetch(struct lowering *l, int tensor, const struct placement *placement,
                 struct piece *out);
/* It is in this placement, too, until the block is left. */
void blocks_add(struct lowering *l, int tensor, const struct placement *placement,
                const struct piece *piece);
/* A weight that is gathered for every block that uses it: beside what comes before. */
int blocks_gather(struct lowering *l, const struct weight_use *use, struct piece *out);
/* All of them that a block's operations use, or those that need theirs, in few calls. */
int blocks_gather_all(struct lowering *l, int block, bool (*needs)(const struct operation *));
/* Boxes of a node's operands on this rank. */
void node_boxes(const struct lowering *l, int node, struct box *boxes);
/* A gradient has come that nobody has to be asked for again. */
void backward_arrive(struct lowering *l, int tensor, const struct placement *placement,
                     const struct piece *piece);
/* Gradients of the tensor have arrived, and are another part's to take. */
void backward_pass(struct lowering *l, int tensor);
/* The whole gradient of a tensor in the placement `wanted`: every contribution redistributed,
 * then summed. *any: is there one? */
int backward_collect(struct lowering *l, int tensor, const struct placement *wanted, bool *any,
                     struct piece *out);

/* joints.c: the walk over a stage's blocks, forward and backward. */
int joints_forward(struct lowering *l);
int joints_backward(struct lowering *l);
/* The tensor that a block reads of the one before it, or -1. */
int joint_tensor(const struct lowering *l, int block);
/* Where a block finds its input: as its first user wants it. */
struct placement joint_entry(const struct lowering *l, int block);
/* How a block wants the gradient of its output. */
const struct placement *joint_wanted(const struct lowering *l, int block);
int joint_forward(struct lowering *l, int block);
int joint_backward(struct lowering *l, int block);
int joint_leave(struct lowering *l, int stage);
int joint_return(struct lowering *l, int stage);

/* recompute.c: before a block's backward, run again what its forward did not save. */
int recompute_block(struct lowering *l, int block);

/* lower.c */
void lowering_init(struct lowering *l, const struct graph *graph, const struct plan *plan, int rank,
                   struct ways *ways, struct error *err);
int lowering_signatures(struct lowering *l);
int lowering_build(struct lowering *l);
void lowering_finish(struct lowering *l);

/* part.c: are this block's weights lowered here; its placements asked for; and the sections of
 * a micro-batch for one part. */
bool part_has_weights(const struct lowering *l, int block);
bool part_concerns(const struct lowering *l, int block);
int part_events(struct lowering *l);

/* waits.c: what each instruction waits for; buffers lie where they will. */
void waits_find(struct program *program);

/* arena.c */
uint64_t arena_align(uint64_t bytes);
void arena_layout(struct lowering *l);

#endif
