/* internal.h - what running and preparing share; nobody else includes it. */
#ifndef WORKER_INTERPRETER_INTERNAL_H
#define WORKER_INTERPRETER_INTERNAL_H

#include "worker/interpreter/footprints.h"
#include "worker/interpreter/interpreter.h"
#include "worker/interpreter/lanes.h"
#include "worker/interpreter/queues.h"
#include "worker/interpreter/tapes.h"
#include "worker/interpreter/update.h"

/* The last send of one (peer, tag). */
struct sending {
    int peer;
    uint32_t tag;
    struct fabric_request *request;
};

/* Which way messages of a tag go. */
struct message_ends {
    int from, to;
    uint32_t tag;
};

struct interpreter {
    const struct program *program;
    struct interpreter_config config;
    struct holding *holding; /* of the state, or of what its image is; NULL: it is in the arena */
    bool published;          /* the holding is the state's */
    bool timed;              /* instructions of a lane are waited for, one by one */
    struct arena *arena;
    struct fabric_group **groups;
    size_t *counts;                /* the program's, as the fabric wants them */
    const struct kernel **kernels; /* per node */
    struct sending *sendings;
    size_t sending_count;
    struct lanes *lanes;
    struct tapes *tapes;
    struct queues *queues;
    struct footprints *footprints; /* NULL: nobody reads them */
    double *seconds, *waited;
    uint64_t *runs, *passed; /* runs: of those passed, the ones that were timed */
    struct stamp *stamps;
    size_t stamp_count;
    /* Of the step at hand. */
    enum program_kind kind;
    uint64_t step;
    double targets;
    bool wishes_pause, wishes_stop, wished, armed, measured;
    struct step_result result;
    struct update_step update;
    struct update_slice *slices; /* that wait for the last one */
    size_t slice_count;
};

/* The entry of a message's (peer, tag): made when the program was prepared. */
struct sending *interpreter_sending(struct interpreter *in, const struct instruction *instruction);

/* One instruction, on the thread of its queue. */
int interpreter_execute(struct interpreter *in, const struct program_cursor *cursor,
                        struct error *err);
/* What the kernel of an instruction is called with. */
struct kernel_call interpreter_call(const struct interpreter *in,
                                    const struct instruction *instruction, int slot);
/* pairs.c: the instruction at the cursor and those behind it, of `left` in this queue, that the
 * device computes at once: how many they are, or 0: none, and nothing was done. */
int interpreter_run_pair(const struct interpreter *in, const struct program_cursor *cursor,
                         int left);
/* join.c: once, before any step. */
int interpreter_join(struct interpreter *in, struct error *err);
/* exchange.c: one that needs other ranks. */
int interpreter_meet(struct interpreter *in, const struct instruction *instruction, int slot,
                     struct error *err);
int interpreter_message(struct interpreter *in, const struct instruction *instruction, int slot,
                        struct error *err);
/* The queue of computing comes to this instruction. Errors of what was issued before. */
int interpreter_reach(struct interpreter *in, int index, struct error *err);

/* What was waited for has come through from the other ranks. */
int interpreter_check(const struct interpreter *in, struct error *err);

/* The state goes its way with the steps: keeping.c. */
void interpreter_arm(struct interpreter *in);
void interpreter_begin_update(struct interpreter *in, const float *metrics);
void interpreter_end_update(struct interpreter *in);

/* A piece of an instruction in a slot: the device's memory. */
struct view interpreter_view(const struct interpreter *in, const struct instruction *instruction,
                             int index, int slot);

#endif
