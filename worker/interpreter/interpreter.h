/* interpreter.h - runs the program of one rank.
 *
 * Its life is four calls: prepare (reserves the arena, forms the groups), run (one step),
 * quiesce (nothing of it is on its way any more) and release. In a step it allocates nothing, but
 * in the first ones on a device that keeps stretches of them: tapes.h.
 *
 * On a device with memory of its own the arena lies there, queues are its lanes, and the host waits
 * for them at the end of a step, and before the update where there are other ranks.
 *
 * A program of two queues has a thread for the second one, from prepare to release; between runs
 * it sleeps. A fabric that is aborted, or whose peer is gone, ends the run on both. */
#ifndef WORKER_INTERPRETER_INTERPRETER_H
#define WORKER_INTERPRETER_INTERPRETER_H

#include "common/program/program.h"
#include "worker/collectives/collective.h"
#include "worker/estate/estate.h"
#include "worker/interpreter/arena.h"
#include "worker/interpreter/optimizer.h"
#include "worker/kernels/kernels.h"
#include "worker/trail/trail.h"

/* Where tokens and targets come from. Samples are numbered through the training; those of an
 * evaluation on their own. */
struct feed {
    const void *context;
    /* Fill out with the box (samples, seq) of the samples first + ...: inputs or targets. */
    void (*fill)(const void *context, enum program_kind kind, uint64_t first, const struct box *box,
                 bool targets, int32_t *out);
    /* Targets that count among `samples` samples from first on. */
    double (*targets)(const void *context, enum program_kind kind, uint64_t first,
                      uint64_t samples);
};

struct interpreter_config {
    const struct device *device;
    const struct collectives *collectives;
    struct fabric *fabric; /* lent; NULL when the program is alone */
    const struct feed *feed;
    struct optimizer optimizer;
    struct trail *trail; /* where the rank's way is told; NULL: nowhere */
    /* Seconds, in place of CLOCK_MONOTONIC, by which the instructions of a thread are timed: what
     * others do on its cores may not count. There is no trail then. (optional) */
    double (*clock_cb)(void);
    bool one_by_one; /* no stretch of a step is given to the device as one: to compare */
    bool poison;     /* fill the arena with NaN first, so that a read before a write shows */
    struct estate
        *estate;    /* where the state lies; NULL: in memory that goes with the interpreter */
    uint64_t epoch; /* of the state, where there is an estate */
};

struct step_result {
    double loss;  /* nats per target, mean over the global batch */
    double norm;  /* of the whole gradient, before clipping; train only */
    bool skipped; /* loss or gradient not finite: nothing was updated */
    /* Some rank wished it; the same on all ranks; train only. */
    bool pause, stop;
};

/* When an instruction began and ended, in seconds of CLOCK_MONOTONIC. */
struct stamp {
    double begin_s, end_s;
};
#define STAMPS_MAX 32768 /* of a step that has more instructions, the first ones */

struct interpreter;

/* Program and what config points to are lent until release. -ENOMEM with the sizes, and
 * -ENOBUFS where it is a device's host that has no memory; errors of the fabric. All ranks prepare
 * together. */
int interpreter_prepare(const struct program *program, const struct interpreter_config *config,
                        struct interpreter **out, struct error *err);
/* Step `step` counts from 0; an evaluation's is the index of its batch. Errors are the fabric's;
 * state is then as the last finished instruction left it. */
int interpreter_run(struct interpreter *interpreter, enum program_kind kind, uint64_t step,
                    struct step_result *out, struct error *err);
/* On a device that works on while the host goes on, an instruction's time is known only where it is
 * waited for: the steps that follow are `timed`, and slower, or count as if they had not been run.
 * Elsewhere all are timed. */
void interpreter_time(struct interpreter *interpreter, bool timed);
/* Whether this rank wishes that all ranks pause, or stop, behind the training steps that follow. */
void interpreter_wish(struct interpreter *interpreter, bool pause, bool stop);
int interpreter_quiesce(struct interpreter *interpreter, struct error *err);
/* Its state is whole, and stands so: from here on a successor of this process finds it in the
 * estate. */
void interpreter_publish(struct interpreter *interpreter, const struct standing *standing);
/* How the state stands; lent until the next run. */
const struct standing *interpreter_standing(const struct interpreter *interpreter);
/* It will run no more, and leaves its state, which is yours; NULL where it was never published. */
struct holding *interpreter_leave(struct interpreter *interpreter);
/* Accepts NULL. */
void interpreter_release(struct interpreter *interpreter);

/* Fresh parameters: a function of the seed and an element's place in the whole tensor. */
void interpreter_initialize(struct interpreter *interpreter, uint64_t seed);

const struct program *interpreter_program(const struct interpreter *interpreter);
struct arena *interpreter_arena(struct interpreter *interpreter);
/* A buffer as the host sees it, in slot 0 where it has slots. That of a device with memory of its
 * own is an image, and as the device left it once it was fetched; of any other fetching does
 * nothing. Not during a run. */
void *interpreter_buffer(struct interpreter *interpreter, int buffer);
int interpreter_fetch(struct interpreter *interpreter, int buffer, struct error *err);
/* The same of all parameters and their moments; once they are stored, the device has what was
 * written to their images. */
int interpreter_fetch_state(struct interpreter *interpreter, struct error *err);
int interpreter_store_state(struct interpreter *interpreter, struct error *err);
/* It is to be fetched time and again: its image is pinned, where it is one. -ENOBUFS: it cannot be,
 * and is fetched more slowly. Not during a run. */
int interpreter_pin_state(struct interpreter *interpreter, struct error *err);
/* Seconds spent so far in each instruction of the program, and before it in waiting for the other
 * queue; and how often it ran: in steps that were timed. */
const double *interpreter_seconds(const struct interpreter *interpreter);
const double *interpreter_waited(const struct interpreter *interpreter);
const uint64_t *interpreter_runs(const struct interpreter *interpreter);
/* Of the newest training step, in the order of program_next; lent until the next one. */
const struct stamp *interpreter_stamps(const struct interpreter *interpreter, size_t *count);

#endif
