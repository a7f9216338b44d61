/* lowering.h - the internal interface between the files of lowering; nobody else includes it.
 *
 * emit.c appends buffers and instructions. lower_cache.c has what many lowerings share. move.c
 * redistributes tensors inside a stage and between stages. weights.c brings weights to their users
 * and gradients to the optimizer. block.c lowers a block's forward, what runs again, and its
 * backward. joints.c brings tensors from block to block and from stage to stage. arena.c assigns
 * offsets to buffers, waits.c finds what the two queues have to wait for, and lower.c calls all of
 * them in order, for a whole program or a part of one.
 *
 * A room is a stretch of the program in which transient buffers live: one block's forward or
 * backward, the joint between two blocks, or a section outside of the blocks. Functions that return
 * int return 0 or a negative errno with the text in lowering.err, unless noted. */
#ifndef COMMON_PROGRAM_LOWERING_H
#define COMMON_PROGRAM_LOWERING_H

#include "common/placement/redistribute.h"
#include "common/program/lower.h"

/* A tensor, or a redistributed version of it, as this rank holds it. */
struct held {
    int tensor;
    struct placement placement;
    struct piece piece;
};

struct held_list {
    struct held *items;
    size_t count, capacity;
};

/* The piece that a node read as one of its operands in forward. */
struct fetched {
    struct placement placement;
    struct piece piece;
    bool again; /* not saved: backward gathers it again from the smaller piece that is */
};

/* One way in which a stage uses a weight: a stage, a placement of the weight and one of its
 * gradient. Nodes that agree in all three share a use. */
struct weight_use {
    int tensor, stage, node;
    struct placement compute, leaving; /* of the weight in kernels; of the gradient they produce */
    struct piece weight, gradient;     /* on this rank, if it belongs to the stage */
    struct piece shard;                /* ZeRO 2, 3: the gradient's sum, in storage placement */
    int bucket;                        /* that holds the gradient; -1: it is reduced by itself */
    int next;                          /* the next use of the same weight; -1: none */
};

/* Gradients of a block that lie side by side, so that a single all-reduce completes them. */
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
    int stage, inside;        /* of this rank, and its rank inside the stage */
    const struct mesh *mesh;  /* of the stage */
    int section, block, room; /* being emitted */
    enum queue queue;         /* of the instructions to come */
    bool joins;               /* the last instruction is a collective that can take further parts */
    int joins_room;           /* the room in which that one was emitted */
    const struct part *part;  /* the only part to lower; NULL: the whole program */
    int found, forward_room;  /* part: the buffer it finds, the room of its forward; or -1 */
    uint64_t *room_bytes;     /* part: transients of every room */
    struct signature *signatures; /* per node, under its block's roles */
    struct held *homes; /* per tensor: as it was made or arrived; tensor -1: not on this rank */
    struct fetched (*fetched)[OPERANDS_MAX];    /* per node */
    struct piece (*statistics)[STATISTICS_MAX]; /* per node, of forward */
    struct lower_cache *cache;                  /* shared with other programs */
    struct held_list versions;                  /* redistributed copies inside the open block */
    struct held_list arriving; /* gradients of tensors that nobody has collected yet */
    int *shares;               /* per buffer: how many of `arriving` it holds */
    size_t shares_capacity;
    struct weight_use *uses;
    size_t use_count, use_capacity;
    struct placement *storage; /* per weight tensor: where the optimizer keeps it */
    int *owner;                /* per weight tensor: its first use; -1: none */
    struct bucket *buckets;
    size_t bucket_count, bucket_capacity;
    struct error *err;
};

/* What a message carries. Together with the tensor or weight use it makes the message's tag. */
enum purpose { PURPOSE_ACTIVATION, PURPOSE_GRADIENT, PURPOSE_WEIGHT, PURPOSES };

/* emit.c */

/* Add a buffer for `count` elements in the current room; returns its number. */
int emit_buffer(struct lowering *l, enum region region, int64_t count, int tensor);
/* Append an instruction to the current section; the pointer is valid until the next one. */
struct instruction *emit(struct lowering *l, enum instruction_kind kind);
/* Append a piece to the last instruction. */
void emit_piece(struct lowering *l, int operand, const struct piece *piece);
/* Note that the last instruction touches this buffer, too; -1: none. */
void emit_use(struct lowering *l, int buffer);
/* Add a kernel's scratch buffer; -1 if it needs none. */
int emit_workspace(struct lowering *l, const struct operation *operation, const struct box *boxes,
                   enum direction direction);
/* Add a buffer that holds exactly this box. */
struct piece emit_new(struct lowering *l, enum region region, int tensor, const struct box *box);
/* Copy the box `part`, which lies in both pieces. */
void emit_copy(struct lowering *l, const struct piece *from, const struct piece *to,
               const struct box *part);
/* to += from. */
void emit_add(struct lowering *l, const struct piece *from, const struct piece *to);
void emit_clear(struct lowering *l, int buffer, int64_t count);
/* Begin a section, and with it a room. */
void emit_section(struct lowering *l, enum section section);
/* The results of the instructions to come are not needed at once. If the plan overlaps, put them on
 * the communication queue, and their transient buffers where the next room leaves them alone. */
void emit_beside(struct lowering *l);
/* The instructions to come go on the compute queue again. */
void emit_at_once(struct lowering *l);
/* Begin a room of this block. */
void emit_room(struct lowering *l, int block);
/* Emit an exchange between all members of a group; `counts` is the index in program.counts where
 * the lengths of its chunks begin. A gather or scatter that directly follows another of the same
 * kind, group and room becomes a further part of that one, so that both cost one call. */
void emit_collective(struct lowering *l, enum collective kind, int group, int counts,
                     const struct piece *source, const struct piece *destination);
/* Keep the collectives before and after from being joined. Needed wherever only some members of a
 * group emit instructions in between, because all of them have to join or none. */
void emit_apart(struct lowering *l);
/* The number of the group of this rank along these axes of its mesh, on the current queue. */
int emit_group(struct lowering *l, unsigned axes);
/* The number of the group of all ranks. */
int emit_group_all(struct lowering *l);
/* Reduce a piece in place; nothing if the group has one member. */
void emit_all_reduce(struct lowering *l, int group, enum reduction reduction,
                     const struct piece *piece);
const struct mesh *stage_mesh(const struct lowering *l, int stage);
struct shape tensor_shape(const struct lowering *l, int tensor);
/* The box that this rank holds of a tensor. This and does_for_all() note in the program along which
 * axes ranks differ (uneven_axes, first_axes). */
struct box own_slice(const struct lowering *l, const struct shape *shape,
                     const struct placement *placement);
/* Is this rank at coordinate 0 of all these axes? */
bool at_first_of(const struct lowering *l, unsigned axes);
/* Does this rank do what only one of the ranks along these axes is to do? The one at coordinate 0
 * does. */
bool does_for_all(const struct lowering *l, unsigned axes);

/* Does what is lowered include this block's weights? Always true without a part. */
bool part_has_weights(const struct lowering *l, int block);
/* Are this block's signatures needed? Always true without a part. */
bool part_concerns(const struct lowering *l, int block);

/* lower_cache.c */

/* redistribute_path() with a cache; *steps are valid as long as that. */
int lower_cache_path(struct lower_cache *cache, const struct mesh *mesh, const struct shape *shape,
                     const struct placement *from, const struct placement *to,
                     const struct step **steps, struct error *err);
/* signature_make() with a cache. */
struct signature lower_cache_signature(struct lower_cache *cache, const struct node *node,
                                       const struct role *const *vector, int axes);
/* An empty program that reuses the arrays of the one returned last. */
struct program *lower_cache_program(struct lower_cache *cache);
/* Return a program for reuse. */
void lower_cache_return(struct lower_cache *cache, struct program *program);

/* move.c */

/* The path of a tensor between two placements on this rank's mesh; returns the number of steps.
 * *steps are valid as long as the cache. */
int move_route(struct lowering *l, int tensor, const struct placement *from,
               const struct placement *to, const struct step **steps);
/* Redistribute a piece on this rank's mesh; *piece becomes the result. An all-reduce in the path
 * works in place, so nobody else may still need the source. */
int move_within(struct lowering *l, const struct shape *shape, int tensor,
                const struct placement *from, const struct placement *to, struct piece *piece);

/* Send a tensor from one stage to another, by the intersections of the ranks' slices; replicas take
 * turns in sending. On the sending stage *piece is read, on the receiving one it becomes the
 * result. `use` is the number of the weight use, 0 for an activation. */
void move_across(struct lowering *l, const struct shape *shape, int tensor, enum purpose purpose,
                 int use, int from_stage, const struct placement *from, int to_stage,
                 const struct placement *to, struct piece *piece);

/* weights.c */

/* Find all uses of weights, their owners and storage placements. */
int weights_find(struct lowering *l);
/* Add the buffers that live between steps: metrics, parameters, moments and gradients. */
void weights_buffers(struct lowering *l);
/* Emit SECTION_WEIGHTS: bring weights from their owners to their users. */
int weights_travel(struct lowering *l);
/* Emit SECTION_METRICS and SECTION_UPDATE. */
void weights_update(struct lowering *l);
/* The use to which a node's weight operand belongs. */
struct weight_use *weights_use(struct lowering *l, int node, int operand);
/* The use whose stage keeps the weight. */
const struct weight_use *weights_owner(const struct lowering *l, int tensor);
/* Is the weight gathered for every block that uses it, rather than once per step (ZeRO 3)? */
bool weights_gathered(const struct lowering *l, const struct weight_use *use);
/* Emit SECTION_CLEAR. */
void gradients_clear(struct lowering *l);
/* Emit SECTION_REDUCE: bring gradients to the optimizer and add up their squares. */
int gradients_reduce(struct lowering *l);
/* Under ZeRO 2 and 3 gradients live only during one block's backward: they are made at its
 * beginning, and reduced and added to their shard at its end. */
void gradients_open_block(struct lowering *l, int block);
int gradients_close_block(struct lowering *l, int block);

/* block.c: lower one block, which finds its input in its entry placement and the
 * gradient of its output in the placement that it wants. */

int block_forward(struct lowering *l, int block);
int block_backward(struct lowering *l, int block);
/* Get a tensor in this placement, redistributing it unless a version is at hand. */
int blocks_fetch(struct lowering *l, int tensor, const struct placement *placement,
                 struct piece *out);
/* Note that a contribution to the tensor's gradient has been computed or received. */
void backward_arrive(struct lowering *l, int tensor, const struct placement *placement,
                     const struct piece *piece);
/* Keep the tensor's gradient contributions alive up to here: another part collects them. */
void backward_pass(struct lowering *l, int tensor);
/* Collect the whole gradient of a tensor in the placement `wanted`: redistribute every contribution
 * and sum them. *any says whether there was one. */
int backward_collect(struct lowering *l, int tensor, const struct placement *wanted, bool *any,
                     struct piece *out);

/* joints.c */

/* Emit SECTION_FORWARD and SECTION_BACKWARD: all blocks of the stage and what joins them. */
int joints_forward(struct lowering *l);
int joints_backward(struct lowering *l);
/* The output of the block before, which this block reads; -1 for the first block. */
int joint_tensor(const struct lowering *l, int block);
/* The placement in which a block finds its input: the one its first user wants. */
struct placement joint_entry(const struct lowering *l, int block);
/* The placement in which a block wants the gradient of its output. */
const struct placement *joint_wanted(const struct lowering *l, int block);
/* Bring the input of this block from the block before, inside a stage. */
int joint_forward(struct lowering *l, int block);
/* Bring the gradient of this block's output from the block after, inside a stage. */
int joint_backward(struct lowering *l, int block);
/* Bring a stage's output to the next stage; emits the part of this rank, on either stage. */
int joint_leave(struct lowering *l, int stage);
/* Bring the output's gradient back to the stage. */
int joint_return(struct lowering *l, int stage);

/* waits.c: find what each instruction waits for. Buffers must have their offsets. */
void waits_find(struct program *program);

/* arena.c */

/* Round up to the alignment of buffers. */
uint64_t arena_align(uint64_t bytes);
/* Assign an offset to every buffer and a size to every region. */
void arena_layout(struct lowering *l);

#endif
