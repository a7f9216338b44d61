/* simulate.h - runs all ranks' programs as a discrete-event simulation and predicts the timeline of
 * a step.
 *
 * Every queue of a rank runs its instructions in order and waits for the other queue where they say
 * so. A collective is a barrier of its group. A message is a rendezvous: it is transferred once the
 * receiver has arrived, and until then the sender must not touch its buffer. Programs that do not
 * finish here would not finish anywhere, so deadlocks are found before anything runs, and reported
 * with the ranks that wait for each other. */
#ifndef COORDINATOR_SIMULATION_SIMULATE_H
#define COORDINATOR_SIMULATION_SIMULATE_H

#include "common/program/program.h"

/* The cost model of a simulation. */
struct timing {
    const void *context; /* passed to the functions */
    /* Seconds that an instruction takes on its rank once it can begin. Of the members of a
     * collective the longest time counts. */
    double (*seconds)(const void *context, const struct program *program,
                      const struct instruction *instruction);
    /* The factor, at least 1, by which an instruction slows down while `beside` runs on the other
     * queue of its rank. (optional: 1) */
    double (*slowdown)(const void *context, const struct program *program,
                       const struct instruction *instruction, const struct instruction *beside);
};

/* Observes a simulation. (optional) */
struct simulation_trace {
    void *context;
    /* Called for every instruction when it is done; times are seconds since the step began. */
    void (*done)(void *context, int rank, const struct program_cursor *cursor, double begin,
                 double end);
};

struct simulation {
    double step_s;
    double busy_s;    /* compute queue at work (kernels, copies, optimizer); mean over ranks */
    double exposed_s; /* the rest of the step: waiting, and communication not overlapped */
};

/* Simulate one step of all ranks. programs[rank] may be the program of another rank that is present
 * itself: then the two do the same at the same time, as ranks of one stage may (see program_like),
 * send each other nothing, and only that other rank is simulated. *out is set on success.
 *
 * -EDEADLK when the step does not finish, when members of a group or sender and receiver disagree
 * on what they exchange, or when a message is overwritten before it was taken; the text names the
 * ranks and their instructions. */
int simulate(const struct program *const *programs, int count, enum program_kind kind,
             const struct timing *timing, const struct simulation_trace *trace,
             struct simulation *out, struct error *err);

#endif
