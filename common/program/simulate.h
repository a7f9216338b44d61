/* simulate.h - all ranks' programs as discrete events: the predicted timeline.
 *
 * Every queue of a rank runs its instructions in order, and waits for the other where these say
 * so. A collective is a barrier of its group; a message
 * is a rendezvous: it is transferred when the receiver is there, and until then its buffer is
 * the sender's no more. Programs that do not finish here would not finish anywhere: a deadlock
 * is found when they are lowered, and said with the ranks that wait for each other. */
#ifndef COMMON_PROGRAM_SIMULATE_H
#define COMMON_PROGRAM_SIMULATE_H

#include "common/program/program.h"

/* Seconds that an instruction takes on its rank once it can begin. Times of one collective may
 * differ from member to member; the longest counts. */
struct timing {
    const void *context;
    double (*seconds)(const void *context, const struct program *program,
                      const struct instruction *instruction);
    /* How many times as long an instruction takes while another one runs on the other queue of
     * its rank: at least 1. (optional: 1) */
    double (*slowdown)(const void *context, const struct program *program,
                       const struct instruction *instruction, const struct instruction *beside);
};

/* Called for every instruction as it is done. (optional) */
struct simulation_trace {
    void *context;
    void (*done)(void *context, int rank, const struct program_cursor *cursor, double begin,
                 double end);
};

struct simulation {
    double step_s;
    double busy_s;    /* computing: kernels, copies and the optimizer; mean over the ranks */
    double exposed_s; /* of the step what is left: waiting, and moving data meanwhile */
};

/* One step of all ranks (programs[rank]). The program may be that of another rank, which is there
 * too: then both do the same at the same time, as those of one stage may (see program_like), and
 * send each other nothing; one of them is led through it. -EDEADLK: it does not finish, or two
 * members of a group, or sender and receiver, do not agree on what they exchange, or a message is
 * overwritten on its way; the sentence names the ranks and their instructions. */
int simulate(const struct program *const *programs, int count, enum program_kind kind,
             const struct timing *timing, const struct simulation_trace *trace,
             struct simulation *out, struct error *err);

#endif
