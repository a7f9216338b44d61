/* interpreter.h - runs the program of one rank.
 *
 * An interpreter's life is prepare (reserve the arena, form the groups), run (one step, many
 * times), quiesce (wait until no message of it is in flight) and release. A step allocates nothing,
 * except the first few on a device that records stretches of them (issue.h).
 *
 * On a device with memory of its own the arena lies there and queues are its streams. The host then
 * waits for the streams only at the end of a step and, if there are other ranks, before the update.
 *
 * If the program has two queues, a thread runs the second one; it lives from prepare to release and
 * sleeps between runs. An aborted fabric, or the loss of a peer, ends the run on both queues. Apart
 * from that thread and interpreter_fetch_state_beside, an interpreter is used by one thread at a
 * time. */
#ifndef WORKER_INTERPRETER_INTERPRETER_H
#define WORKER_INTERPRETER_INTERPRETER_H

#include "common/program/program.h"
#include "worker/collectives/collective.h"
#include "worker/estate/estate.h"
#include "worker/interpreter/arena.h"
#include "worker/interpreter/optimizer.h"
#include "worker/kernels/kernels.h"
#include "worker/trail/trail.h"

/* The source of tokens and targets. Samples are numbered consecutively over the whole training;
 * those of evaluation are numbered separately. */
struct feed {
    const void *context;
    /* Fill `out` with this piece of a data tensor of the graph, which says its whole sizes and
     * whether it holds inputs or targets. The box's samples are relative to `first`. */
    void (*fill)(const void *context, enum program_kind kind, uint64_t first,
                 const struct tensor *tensor, const struct box *box, int32_t *out);
    /* The number of targets that count towards the loss among `samples` samples from `first` on. */
    double (*targets)(const void *context, enum program_kind kind, uint64_t first,
                      uint64_t samples);
};

struct interpreter_config {
    const struct device *device;
    const struct collectives *collectives;
    struct fabric *fabric; /* lent; NULL for a program of one rank */
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
    /* Called in every training step before this rank takes part in the exchange after which the
     * step is applied: waits until nobody reads the state any longer. An error ends the run, and
     * the state stays as it is. (optional) */
    int (*commits_cb)(void *context, struct error *err);
    void *commits_context;
};

struct step_result {
    double loss;  /* mean loss over the global batch, in nats per target */
    double norm;  /* L2 norm of the whole gradient before clipping; train only */
    bool skipped; /* loss or norm was not finite, so nothing was updated; train only */
    /* Whether any rank asked for it: the same on all ranks. */
    bool pause, stop, save;
};

/* What a rank asks all ranks to do after the next training step. */
struct step_wishes {
    bool pause, stop, save;
};

/* When an instruction began and ended, in seconds of CLOCK_MONOTONIC. */
struct stamp {
    double begin_s, end_s;
};
#define STAMPS_MAX 32768 /* per step; a longer step keeps those of its first instructions */

struct interpreter;

/* Prepare `program` to run. The program and everything that config points to are lent until
 * release. All ranks call this together, because forming groups is collective. -ENOMEM with the
 * sizes in err if memory cannot be reserved, -ENOBUFS if it is the host of an accelerator that
 * lacks it, -ENOSYS if the device has no kernel for an operation; otherwise an error of the
 * kernels, streams or fabric. */
int interpreter_prepare(const struct program *program, const struct interpreter_config *config,
                        struct interpreter **out, struct error *err);
/* Run one step. `step` counts from 0; for evaluation it is the index of the batch. On an error,
 * which comes from the fabric or the accelerator, *out is untouched and the state is as the last
 * finished instruction left it. */
int interpreter_run(struct interpreter *interpreter, enum program_kind kind, uint64_t step,
                    struct step_result *out, struct error *err);
/* -EINVAL, with the node in err, if what a position computes depends on later ones. */
int interpreter_extends(const struct graph *graph, struct error *err);
/* Evaluate positions [low, high) of the single sample of a one-rank program of a causal model, as
 * far as the logits: the loss is not computed. Calls before it have evaluated positions [0, low),
 * in any number of windows; low 0 begins a sample. No step may run in between. Not for devices with
 * memory of their own. interpreter_extends() tells of which models. */
int interpreter_extend(struct interpreter *interpreter, int64_t low, int64_t high,
                       struct error *err);
/* Whether the following steps are timed. Asynchronous devices give the time of an instruction only
 * if the host waits for it, which makes a timed step slower; steps that are not timed leave
 * seconds, runs and stamps alone. Without an accelerator every step is timed, whatever is
 * passed. */
void interpreter_time(struct interpreter *interpreter, bool timed);
/* Whether this rank asks all ranks to pause, to stop or to save after the following training steps.
 * The answer of all ranks together is in step_result. */
void interpreter_wish(struct interpreter *interpreter, const struct step_wishes *wishes);
/* Wait for the sends that are still in flight. Errors of the fabric. */
int interpreter_quiesce(struct interpreter *interpreter, struct error *err);
/* Declare the state complete and in the given standing. From here on it can outlive this process:
 * the executor's successor finds it in the estate. Only with an estate. */
void interpreter_publish(struct interpreter *interpreter, const struct standing *standing);
/* The standing of the published state; lent until the next run. */
const struct standing *interpreter_standing(const struct interpreter *interpreter);
/* Give up the state: the interpreter will not run again, and the caller owns what is returned. With
 * an accelerator the state is fetched first. NULL if it was never published or cannot be
 * fetched. */
struct holding *interpreter_leave(struct interpreter *interpreter);
/* Release everything that was prepared. Accepts NULL. */
void interpreter_release(struct interpreter *interpreter);

/* Set fresh parameters and zero moments, on the host's side. An element's value depends only on the
 * seed, its tensor and its place in the whole tensor, never on the plan. With an accelerator,
 * interpreter_store_state then takes them to the device. */
void interpreter_initialize(struct interpreter *interpreter, uint64_t seed);

/* What it was prepared with, and its arena; both lent. */
const struct program *interpreter_program(const struct interpreter *interpreter);
struct arena *interpreter_arena(struct interpreter *interpreter);
/* A buffer as the host sees it, in slot 0 if it has slots; not during a run. With an accelerator
 * this is an image, which is current once interpreter_fetch has returned; without one fetch does
 * nothing. */
void *interpreter_buffer(struct interpreter *interpreter, int buffer);
int interpreter_fetch(struct interpreter *interpreter, int buffer, struct error *err);
/* Fetch or store all parameters and their moments. After fetch the images hold what the device has;
 * after store the device holds what was written to the images. */
int interpreter_fetch_state(struct interpreter *interpreter, struct error *err);
int interpreter_store_state(struct interpreter *interpreter, struct error *err);
/* Fetch the state on another thread than the one that runs steps, from the end of a step until
 * commits_cb has returned in the next one. Only one thread at a time fetches it. */
int interpreter_fetch_state_beside(struct interpreter *interpreter, struct error *err);
/* Pin the image of the state, if it is one, because it will be fetched repeatedly. -ENOBUFS: it
 * cannot be pinned, and fetching it stays slower. Not during a run. */
int interpreter_pin_state(struct interpreter *interpreter, struct error *err);
/* Per instruction of the program, totals over all steps so far: seconds spent in it (timed steps
 * only), seconds spent before it waiting for the other queue or in commits_cb, and the number of
 * timed executions. */
const double *interpreter_seconds(const struct interpreter *interpreter);
const double *interpreter_waited(const struct interpreter *interpreter);
const uint64_t *interpreter_runs(const struct interpreter *interpreter);
/* Stamps of the newest timed training step, in the order of program_next; lent until the next
 * one. */
const struct stamp *interpreter_stamps(const struct interpreter *interpreter, size_t *count);

#endif
