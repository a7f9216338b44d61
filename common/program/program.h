/* program.h - what one rank does in a step: a flat list of instructions over an arena.
 *
 * This one object is costed (instruction times under a profile), simulated (all ranks' programs
 * as discrete events) and executed. Buffers are named by index and lie at fixed offsets in four
 * regions; pieces say which part of a tensor a buffer holds. All data is f32 or int32, 4 bytes an
 * element, but for what a graph computes with in fewer.
 *
 * A step runs the sections of its kind in order; between them the events of the schedule: the
 * forward or the backward section for one micro-batch, in one slot of the saved region.
 *
 * Two queues run at the same time, each its own instructions in the order of the step. What one
 * needs of the other its instructions say: they wait for the latest run so far of others. These
 * are always earlier in the step, so a step that ends on one queue ends on two. */
#ifndef COMMON_PROGRAM_PROGRAM_H
#define COMMON_PROGRAM_PROGRAM_H

#include "common/graph/graph.h"
#include "common/placement/placement.h"
#include "common/plan/plan.h"

#include <stdio.h>

#define ELEMENT_BYTES 4 /* of what is kept and summed up */

enum region {
    REGION_STATE,         /* parameters, gradients, moments: between steps */
    REGION_SAVED,         /* from a micro-batch's forward to its backward: one copy per slot */
    REGION_TRANSIENT,     /* inside one room, or from one room to the next */
    REGION_COMMUNICATION, /* what is on its way, between stages or beside computing */
    REGIONS,
};

enum queue {
    QUEUE_COMPUTE,
    QUEUE_COMMUNICATION, /* what has time: it runs beside computing */
    QUEUES,
};

static inline enum queue program_other_queue(enum queue queue)
{
    return queue == QUEUE_COMPUTE ? QUEUE_COMMUNICATION : QUEUE_COMPUTE;
}

struct buffer {
    enum region region;
    uint64_t offset, bytes; /* saved: inside a slot */
    int element_bytes;
    int tensor; /* what for, or -1 */
    int block;
    int first, last; /* instructions that touch it */
    /* A room is one block's forward or backward, what joins two blocks, or a section outside of
     * the blocks; rooms are counted in order. Here the buffer is made, there touched last. */
    int room_first, room_last;
    bool beside; /* of one room, but the next one may begin meanwhile: see arena.c */
};

/* Elements [offset, ...) of a buffer hold the box of a tensor, row-major. */
struct piece {
    int buffer;      /* -1: only the box is told */
    uint8_t operand; /* of a kernel: operand i, or VIEWS_MAX + i for gradient i */
    int64_t offset;
    struct box box;
};

enum instruction_kind {
    INSTRUCTION_LOAD,       /* piece 0 from the data source */
    INSTRUCTION_KERNEL,     /* one phase of an operation */
    INSTRUCTION_COPY,       /* the box `part` of piece 0 into piece 1 */
    INSTRUCTION_ADD,        /* piece 1 += piece 0 */
    INSTRUCTION_CLEAR,      /* piece 0 = 0 */
    INSTRUCTION_COLLECTIVE, /* pieces 2i -> 2i + 1 over a group; all-reduce: piece 0 in place */
    INSTRUCTION_SEND,       /* piece 0 to a peer; goes on at once */
    INSTRUCTION_WAIT,       /* until the last send with this tag has been taken */
    INSTRUCTION_RECEIVE,    /* piece 0 from a peer */
    INSTRUCTION_SQUARE_SUM, /* of a parameter's gradient, added to the metrics */
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
    int wait_first, wait_count; /* in waits: of each its latest run in this step, if there is one */
    union {
        struct {
            int node, phase;
            enum direction direction;
            unsigned accumulate; /* bit i: gradient i is added to */
            bool once;
            int workspace; /* buffer, or -1 */
        } kernel;
        struct box part; /* copy */
        struct {
            enum collective kind;
            enum reduction reduction;
            int group;
            /* In counts: of each part in turn, per member; all-to-all: sends, then receives. */
            int counts_first;
        } collective;
        struct {
            int peer;
            uint32_t tag;
        } message;     /* send, wait, receive */
        int parameter; /* square sum, update */
    };
};

/* Tensors that one gather or scatter moves: what leaves a block's weights and gradients waiting
 * for one answer, not for one each. */
#define COLLECTIVE_PARTS_MAX 32

/* Groups of one queue are not those of the other: on each calls are made in one order. */
struct group {
    int *ranks; /* ascending */
    int count, own;
    enum queue queue;
};

/* What a rank stores of one weight: its slice, where the optimizer works. */
struct parameter {
    int tensor;
    struct placement storage;
    struct box box;
    int master, first, second; /* buffers: the parameter, its moments */
    struct piece gradient;     /* finished, in the storage placement */
    bool counted; /* this rank counts the slice in the global norm: replicas count once */
};

enum section {
    SECTION_WEIGHTS,  /* weights travel to where they are used */
    SECTION_CLEAR,    /* gradients are zeroed */
    SECTION_FORWARD,  /* one micro-batch */
    SECTION_BACKWARD, /* one micro-batch */
    SECTION_REDUCE,   /* gradients travel to where the optimizer works, and are measured */
    SECTION_METRICS,  /* loss and norm become known to all */
    SECTION_UPDATE,   /* the optimizer */
    SECTIONS,
};

/* The metrics buffer: sums over all ranks after SECTION_METRICS. What ranks wish is in it so that
 * all of them learn of it in the same step: one that stopped alone would keep the others waiting.
 */
enum metric {
    METRIC_LOSS,
    METRIC_SQUARE_SUM,
    METRIC_PAUSE, /* behind the step, to go on later */
    METRIC_STOP,  /* behind the step, for good */
    METRICS,
};

struct range {
    int first, count;
};

struct program {
    const struct graph *graph; /* lent */
    int rank, ranks;
    int stage, stage_first, stage_ranks; /* the stage's ranks are [first, first + ranks) */
    struct sizes sizes;                  /* b: the samples of a micro-batch */
    int64_t samples;                     /* of a micro-batch */
    int micro_batches;

    struct buffer *buffers;
    struct piece *pieces;
    struct instruction *instructions;
    struct group *groups;
    struct parameter *parameters;
    int64_t *counts;
    int *waits;           /* instructions of the other queue */
    struct event *events; /* of a training step; evaluation takes the forwards, all in slot 0 */
    size_t buffer_count, piece_count, instruction_count, group_count, parameter_count, counts_count,
        wait_count;
    size_t buffer_capacity, piece_capacity, instruction_capacity, group_capacity,
        parameter_capacity, counts_capacity, wait_capacity;
    int event_count, slots;
    struct range sections[SECTIONS];
    /* Which of the stage's ranks differ in what they do: those at coordinate 0 of some axes from
     * the others, who need not do it; of others any two, whose pieces are of unlike sizes. */
    unsigned first_axes, uneven_axes;

    int metrics; /* buffer */
    uint64_t slot_bytes;
    uint64_t bytes[REGIONS]; /* the reservation; saved: all slots */
    uint64_t beside_bytes;   /* of communication: what the largest room has beside computing */
};

void program_destroy(struct program *program);
/* The first of the stage's ranks whose program is that of rank `inside` of the stage but for where
 * its pieces begin and whom it meets. The program: of any of them; the mesh: without weights. */
int program_like(const struct program *program, const struct mesh *mesh, int inside);
uint64_t program_bytes(const struct program *program);
const struct piece *program_pieces(const struct program *program,
                                   const struct instruction *instruction);
/* The buffer that the forward section leaves a tensor in, on this rank, or -1. */
int program_find_output(const struct program *program, int tensor, struct box *box);

/* Of a collective: how many tensors it moves, all of them alike. */
int collective_parts(const struct instruction *instruction);
/* Words (elements) that this rank sends to others in one instruction; all-reduce as a ring. */
int64_t instruction_words(const struct program *program, const struct instruction *instruction);
/* The same in bytes. */
double instruction_sent_bytes(const struct program *program, const struct instruction *instruction);
/* Of an all-reduce those of the member that sends most: the others wait for it. */
double instruction_most_bytes(const struct program *program, const struct instruction *instruction);
/* Words of a whole training step. */
int64_t program_words(const struct program *program);
/* Floating-point operations of an instruction, and bytes it reads and writes in memory. */
double instruction_flops(const struct program *program, const struct instruction *instruction);
double instruction_bytes(const struct program *program, const struct instruction *instruction);

const char *instruction_name(const struct program *program, const struct instruction *instruction);
/* That it is in; "forward". */
enum section instruction_section(const struct program *program,
                                 const struct instruction *instruction);
const char *section_name(enum section section);
void program_print(const struct program *program, FILE *out);
/* A fingerprint of all that is executed. */
uint64_t program_hash(const struct program *program);

/* One element of a walk over a step. */
struct program_cursor {
    const struct instruction *instruction;
    int micro_batch, slot;
    int section, event, index; /* where the walk is; start from zeroes */
};
enum program_kind { PROGRAM_TRAIN, PROGRAM_EVALUATE };
/* Advance to the next instruction of a step; false at its end. */
bool program_next(const struct program *program, enum program_kind kind,
                  struct program_cursor *cursor);
/* Are there instructions of the second queue? */
bool program_overlaps(const struct program *program);

/* A place in memory that an instruction touches: bytes of a region, of saved inside a slot. */
struct access {
    enum region region;
    uint64_t low, high;
    bool writes;
};
#define ACCESSES_MAX (2 * COLLECTIVE_PARTS_MAX)
_Static_assert(ACCESSES_MAX > 2 * VIEWS_MAX, "a kernel's views and its workspace");
/* Returns how many there are. What may be written counts as written. */
int instruction_accesses(const struct program *program, const struct instruction *instruction,
                         struct access *out);
/* Instructions of such a step, each as often as it runs. */
size_t program_step_count(const struct program *program, enum program_kind kind);

#endif
