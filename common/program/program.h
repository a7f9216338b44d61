/* program.h - what one rank does in a training step: a flat list of instructions over an arena.
 *
 * The same object is costed (instruction times from a profile), simulated (all ranks' programs as
 * discrete events) and executed. Buffers are numbered and have fixed offsets in four regions of
 * memory; pieces say which part of a tensor a buffer holds. Elements are f32 or int32, 4 bytes
 * each, except activations and compute copies of weights, which may be narrower
 * (graph.element_bytes).
 *
 * Instructions are grouped in sections. A step runs sections in a fixed order; in the middle of it
 * run the events of the schedule, each of which is the forward or backward section for one
 * micro-batch, using one slot of the saved region.
 *
 * Two queues run concurrently, each executing its own instructions in program order. Where one
 * depends on the other, an instruction lists the instructions of the other queue whose latest run
 * it waits for. Those are always earlier in the step, so the queues cannot deadlock each other. */
#ifndef COMMON_PROGRAM_PROGRAM_H
#define COMMON_PROGRAM_PROGRAM_H

#include "common/graph/graph.h"
#include "common/placement/placement.h"
#include "common/plan/plan.h"

#include <stdio.h>

#define ELEMENT_BYTES 4 /* of everything that is kept between steps or summed up */

enum region {
    REGION_STATE,         /* parameters, gradients, moments: kept between steps */
    REGION_SAVED,         /* from a micro-batch's forward to its backward: one copy per slot */
    REGION_TRANSIENT,     /* inside one room, or from one room to a later one */
    REGION_COMMUNICATION, /* messages between stages, and what moves beside computation */
    REGIONS,
};

enum queue {
    QUEUE_COMPUTE,
    QUEUE_COMMUNICATION, /* communication that is not urgent and overlaps with computation */
    QUEUES,
};

static inline enum queue program_other_queue(enum queue queue)
{
    return queue == QUEUE_COMPUTE ? QUEUE_COMMUNICATION : QUEUE_COMPUTE;
}

struct buffer {
    enum region region;
    uint64_t offset, bytes; /* in the region; in the saved region, inside a slot */
    int element_bytes;
    int tensor;      /* the tensor that it holds (part of), or -1 */
    int block;       /* of the graph, or -1 */
    int first, last; /* the first and last instruction that touch it */
    /* The rooms in which it is made and touched last. A room is one block's forward or backward,
     * the joint between two blocks, or a section outside of the blocks; rooms are numbered in the
     * order of the program. */
    int room_first, room_last;
    bool beside; /* used in one room, but possibly while the next is computed: see arena.c */
};

/* A buffer's elements from `offset` on hold the box of a tensor, row-major. */
struct piece {
    int buffer;      /* -1: no data, only the box matters */
    uint8_t operand; /* of a kernel: i for operand i, VIEWS_MAX + i for gradient i */
    int64_t offset;  /* in elements */
    struct box box;
};

enum instruction_kind {
    INSTRUCTION_LOAD,       /* read piece 0 from the data source */
    INSTRUCTION_KERNEL,     /* run one phase of an operation */
    INSTRUCTION_COPY,       /* copy the box `part` of piece 0 into piece 1 */
    INSTRUCTION_ADD,        /* piece 1 += piece 0 */
    INSTRUCTION_CLEAR,      /* piece 0 = 0 */
    INSTRUCTION_COLLECTIVE, /* pieces 2i -> 2i + 1 over a group; all-reduce: piece 0 in place */
    INSTRUCTION_SEND,       /* send piece 0 to a peer without waiting for it */
    INSTRUCTION_WAIT,       /* wait until the peer has taken the last send with this tag */
    INSTRUCTION_RECEIVE,    /* receive piece 0 from a peer */
    INSTRUCTION_SQUARE_SUM, /* add the sum of squares of a parameter's gradient to the metrics */
    INSTRUCTION_UPDATE,     /* optimizer step of a parameter */
    INSTRUCTION_KINDS,
};

enum collective {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_ALL_TO_ALL
};

struct instruction {
    enum instruction_kind kind;
    enum queue queue;
    int block; /* of the graph, or -1 */
    int piece_first, piece_count;
    int wait_first, wait_count; /* in program.waits: wait for the latest run of each in this step */
    union {
        struct {
            int node, phase;
            enum direction direction;
            unsigned accumulate; /* bit i: add to gradient i rather than overwrite it */
            bool once;           /* forward: this rank adds what only one may, operation.once */
            int workspace;       /* buffer, or -1 */
        } kernel;
        struct box part; /* copy */
        struct {
            enum collective kind;
            enum reduction reduction; /* all-reduce */
            int group;
            /* In program.counts: for each part, the elements of every member's chunk; all-to-all:
             * what is sent to each member, then what is received. */
            int counts_first;
        } collective;
        struct {
            int peer;
            uint32_t tag;
        } message;     /* send, wait, receive */
        int parameter; /* square sum, update: an index in program.parameters */
    };
};

/* The most tensors that one all-gather or reduce-scatter moves. Batching them lets a block's
 * weights and gradients pay the latency of a call once, not once each. */
#define COLLECTIVE_PARTS_MAX 32

/* The ranks that take part in a collective. Each queue has its own groups, because all members have
 * to make the calls of a group in the same order. */
struct group {
    int *ranks;     /* ascending */
    int count, own; /* own: the index of this rank */
    enum queue queue;
};

/* A rank's slice of one weight, as the optimizer keeps and updates it. */
struct parameter {
    int tensor;
    struct box box;
    int master, first, second; /* buffers: the parameter and its two moments */
    struct piece gradient;     /* fully reduced, in the storage placement */
    bool counted; /* this rank adds the slice to the global norm; of replicas only one does */
};

enum section {
    SECTION_WEIGHTS,  /* bring weights to the ranks that use them */
    SECTION_CLEAR,    /* zero the gradients */
    SECTION_FORWARD,  /* one micro-batch */
    SECTION_BACKWARD, /* one micro-batch */
    SECTION_REDUCE,   /* reduce gradients to where the optimizer works; sum their squares */
    SECTION_METRICS,  /* reduce the metrics over all ranks */
    SECTION_UPDATE,   /* run the optimizer */
    SECTIONS,
};

/* The elements of the metrics buffer, which SECTION_METRICS sums over all ranks. Requests to pause,
 * to stop or to save are among them so that all ranks learn of one in the same step; a rank that
 * stopped on its own would leave the others waiting. */
enum metric {
    METRIC_LOSS,
    METRIC_SQUARE_SUM, /* of all gradients: the square of the global norm */
    METRIC_PAUSE,      /* not 0: pause after this step, to go on later */
    METRIC_STOP,       /* not 0: stop after this step for good */
    METRIC_SAVE,       /* not 0: save this step */
    METRICS,
};

struct range {
    int first, count;
};

struct program {
    const struct graph *graph; /* borrowed */
    int rank, ranks;
    int stage, stage_first, stage_ranks; /* ranks [stage_first, + stage_ranks) form the stage */
    int64_t samples;                     /* per micro-batch, over all ranks */
    int micro_batches;

    struct buffer *buffers;
    struct piece *pieces;
    struct instruction *instructions;
    struct group *groups;
    struct parameter *parameters;
    int64_t *counts;
    int *waits;           /* numbers of instructions, see instruction.wait_first */
    struct event *events; /* of a training step; evaluation runs the forwards only, in slot 0 */
    size_t buffer_count, piece_count, instruction_count, group_count, parameter_count, counts_count,
        wait_count;
    size_t buffer_capacity, piece_capacity, instruction_capacity, group_capacity,
        parameter_capacity, counts_capacity, wait_capacity;
    int event_count, slots;
    struct range sections[SECTIONS];
    /* Axes of the stage's mesh along which ranks differ in what they do. first_axes: the rank at
     * coordinate 0 does something for all others; uneven_axes: any two ranks may differ, because
     * their pieces differ in size. */
    unsigned first_axes, uneven_axes;

    int metrics; /* the buffer of enum metric */
    uint64_t slot_bytes;
    uint64_t bytes[REGIONS]; /* what to reserve; the saved region includes all slots */
    uint64_t beside_bytes;   /* what the largest room has beside computation: see arena.c */
};

/* Accepts NULL. */
void program_destroy(struct program *program);
/* The lowest rank of the stage (inside it) whose program equals that of rank `inside`, except for
 * where its pieces begin and which peers it meets. `program` may be that of any rank of the stage;
 * the mesh must be without weights. */
int program_like(const struct program *program, const struct mesh *mesh, int inside);
/* The bytes of all regions. */
uint64_t program_bytes(const struct program *program);
/* The first piece of an instruction; its others follow. */
static inline const struct piece *program_pieces(const struct program *program,
                                                 const struct instruction *instruction)
{
    return &program->pieces[instruction->piece_first];
}
/* The buffer in which the forward section leaves a tensor on this rank, with *box its box; -1 when
 * this rank does not compute it. */
int program_find_output(const struct program *program, int tensor, struct box *box);

/* How many tensors a collective moves. */
int collective_parts(const struct instruction *instruction);
/* The words (elements) that this rank sends to others in one instruction; an all-reduce counts as a
 * ring. */
int64_t instruction_words(const struct program *program, const struct instruction *instruction);
/* The same in bytes. */
double instruction_sent_bytes(const struct program *program, const struct instruction *instruction);
/* The same, but for an all-reduce those of the member that sends most, for which all others wait.
 */
double instruction_most_bytes(const struct program *program, const struct instruction *instruction);
/* The floating-point operations of an instruction. */
double instruction_flops(const struct program *program, const struct instruction *instruction);
/* The bytes of memory that an instruction reads and writes. */
double instruction_bytes(const struct program *program, const struct instruction *instruction);

/* What it does, for people: an operation's or collective's name, "copy", "send". */
const char *instruction_name(const struct program *program, const struct instruction *instruction);
/* The section that an instruction of this program belongs to. */
enum section instruction_section(const struct program *program,
                                 const struct instruction *instruction);
const char *section_name(enum section section);
/* Print a listing for people, one line per instruction. */
void program_print(const struct program *program, FILE *out);
/* A fingerprint of everything that affects execution: equal programs have equal hashes. */
uint64_t program_hash(const struct program *program);

/* A position in a walk over all instructions of a step. Start with all zeroes. */
struct program_cursor {
    const struct instruction *instruction;
    int micro_batch, slot;     /* inside the forward and backward sections */
    int section, event, index; /* internal state of the walk */
};
enum program_kind { PROGRAM_TRAIN, PROGRAM_EVALUATE };
/* Advance to the next instruction of a step; false at its end. */
bool program_next(const struct program *program, enum program_kind kind,
                  struct program_cursor *cursor);
/* Does the program have instructions on the communication queue? */
bool program_overlaps(const struct program *program);

/* Memory that an instruction touches: bytes [low, high) of a region; in the saved region, of a
 * slot. */
struct access {
    enum region region;
    uint64_t low, high;
    bool writes;
};
#define ACCESSES_MAX (2 * COLLECTIVE_PARTS_MAX)
_Static_assert(ACCESSES_MAX > 2 * VIEWS_MAX, "a kernel's views and its workspace");
/* Fill in what an instruction touches, at most ACCESSES_MAX entries; returns how many. Memory that
 * may be written counts as written. */
int instruction_accesses(const struct program *program, const struct instruction *instruction,
                         struct access *out);
/* The number of instructions in a step, each counted as often as it runs. */
size_t program_step_count(const struct program *program, enum program_kind kind);

/* Takes one queue through a step, and says what it has to wait for. Used by the executor and the
 * simulation.
 *
 * All instructions that run in a step, on both queues, are numbered from 1 in the order of the
 * step. Because each queue runs in this order, the number of the last instruction that a queue has
 * finished tells the other all it needs to know. */
struct program_walk {
    const struct program *program;
    enum queue queue;
    enum program_kind kind;
    struct program_cursor cursor;
    uint64_t number; /* of the instruction at the cursor */
    uint64_t *runs;  /* per instruction of the other queue: number of its latest run, or 0 */
};

/* Borrows the program. */
void program_walk_init(struct program_walk *walk, const struct program *program, enum queue queue);
void program_walk_finish(struct program_walk *walk);
/* Go to the beginning of a step, before its first instruction. Allocates nothing. */
void program_walk_begin(struct program_walk *walk, enum program_kind kind);
/* Advance the cursor to this queue's next instruction; false at the end of the step. */
bool program_walk_next(struct program_walk *walk);
/* The number that the other queue must have finished before the instruction at the cursor may
 * begin; 0: none. */
uint64_t program_walk_awaits(const struct program_walk *walk);

#endif
