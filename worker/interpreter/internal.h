/* internal.h - the state of an interpreter, shared by the files of this folder only. */
#ifndef WORKER_INTERPRETER_INTERNAL_H
#define WORKER_INTERPRETER_INTERNAL_H

#include "worker/interpreter/footprints.h"
#include "worker/interpreter/interpreter.h"
#include "worker/interpreter/issue.h"
#include "worker/interpreter/optimizer.h"

struct queues;

/* The outstanding send to a (peer, tag); request is NULL when there is none. */
struct sending {
    int peer;
    uint32_t tag;
    struct fabric_request *request;
};

/* Sender, receiver and tag of a message. */
struct message_ends {
    int from, to;
    uint32_t tag;
};

struct interpreter {
    const struct program *program;
    struct interpreter_config config;
    /* Where the state lies or, with an accelerator, its image; NULL: in the arena. */
    struct holding *holding;
    bool published; /* holding_publish has been called on the holding */
    bool timed;     /* with streams: wait for every instruction, so that its time is known */
    struct arena *arena;
    struct fabric_group **groups;
    size_t *counts;                /* the program's counts, as size_t */
    const struct kernel **kernels; /* per node */
    struct sending *sendings;
    size_t sending_count;
    struct streams *streams;
    struct recordings *recordings;
    struct queues *queues;
    struct footprints *footprints; /* NULL: nobody reads them */
    /* Per instruction: seconds spent in it, and waiting for the other queue before it. */
    double *seconds, *waited;
    /* Per instruction: how often it has been executed (passed), and how often while timed
     * (runs). */
    uint64_t *runs, *passed;
    struct stamp *stamps;
    size_t stamp_count;
    /* Of the current step. */
    enum program_kind kind;
    uint64_t step;
    double targets;
    struct step_wishes wishes;
    bool wished, armed, measured;
    struct step_result result;
    struct update_step update;
    struct update_slice *slices; /* with streams: updates collected for one call */
    size_t slice_count;
};

/* The entry for a message's (peer, tag), created when the program was prepared; NULL if none. */
struct sending *interpreter_sending(struct interpreter *in, const struct instruction *instruction);

/* Execute one instruction on the thread of its queue. */
int interpreter_execute(struct interpreter *in, const struct program_cursor *cursor,
                        struct error *err);
/* The arguments with which an instruction's kernel is called in a slot. */
struct kernel_call interpreter_call(const struct interpreter *in,
                                    const struct instruction *instruction, int slot);
/* Where the norm of the gradient is summed up. */
float *interpreter_square_sum(const struct interpreter *in);
/* Called before the compute queue executes instruction `index`: publishes wishes and reads the
 * metrics when the step reaches those sections. *held becomes true if it waited for what config's
 * commits_cb waits for. Returns an error of that, or of work issued earlier, if that fails. */
int interpreter_reach(struct interpreter *in, int index, bool *held, struct error *err);

/* Ask the collectives whether what was issued to other ranks has failed; 0 if they cannot tell. */
int interpreter_check(const struct interpreter *in, struct error *err);

/* The device memory that piece `index` of an instruction names in a slot. */
struct view interpreter_view(const struct interpreter *in, const struct instruction *instruction,
                             int index, int slot);

/* queues.c: runs the queues of a step, computation on the calling thread, communication on a thread
 * of its own.
 *
 * Each queue executes its instructions in the order of the step, and sleeps when the next one needs
 * something that the other queue has not done yet. */

/* Start the thread of the second queue, if the program has one. It inherits the caller's CPU
 * affinity. The interpreter is lent and must be prepared in every other respect. Fails if there is
 * no thread. */
int queues_start(struct interpreter *interpreter, struct queues **out, struct error *err);
/* Stop that thread and free the queues; not during a run. Accepts NULL. */
void queues_stop(struct queues *queues);
/* Run one step; when this returns, both queues are idle. The error is that of the instruction that
 * failed first. */
int queues_run(struct queues *queues, enum program_kind kind, struct error *err);

#endif
