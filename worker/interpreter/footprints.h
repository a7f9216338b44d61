/* footprints.h - records in a rank's trail which call each of its queues is in.
 *
 * The worker reads the trail (worker/trail) to tell where a rank that no longer moves is stuck.
 * Every function accepts NULL and then does nothing. */
#ifndef WORKER_INTERPRETER_FOOTPRINTS_H
#define WORKER_INTERPRETER_FOOTPRINTS_H

#include "common/program/program.h"
#include "worker/trail/trail.h"

struct footprints;

/* Lends program and trail until destroy. Returns NULL if trail is NULL. */
struct footprints *footprints_create(const struct program *program, struct trail *trail);
void footprints_destroy(struct footprints *footprints);

/* Called by the queue's own thread, with times in seconds of CLOCK_MONOTONIC: the queue begins
 * instruction `index`, which has completed `runs` times before (begin); it starts to wait for
 * another track of the trail (await); or its current call has ended (end). */
void footprints_begin(struct footprints *footprints, int index, uint64_t step, uint64_t runs,
                      double now_s);
void footprints_await(struct footprints *footprints, enum queue queue, unsigned awaited,
                      uint64_t step, double now_s);
void footprints_end(struct footprints *footprints, enum queue queue, double now_s);

#endif
