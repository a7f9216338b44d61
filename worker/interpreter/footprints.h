/* footprints.h - what a rank leaves in its trail: the call that each of its queues is in. */
#ifndef WORKER_INTERPRETER_FOOTPRINTS_H
#define WORKER_INTERPRETER_FOOTPRINTS_H

#include "common/program/program.h"
#include "worker/trail/trail.h"

struct footprints;

/* Program and trail are lent; without a trail it is NULL, and the rest harmless. */
struct footprints *footprints_create(const struct program *program, struct trail *trail);
/* Accepts NULL. */
void footprints_destroy(struct footprints *footprints);

/* By the thread of the queue: it begins an instruction that has ended `runs` times before, or to
 * wait for the other queue; and it has ended. Seconds of CLOCK_MONOTONIC. */
void footprints_begin(struct footprints *footprints, int index, uint64_t step, uint64_t runs,
                      double now_s);
void footprints_await(struct footprints *footprints, enum queue queue, uint64_t step, double now_s);
void footprints_end(struct footprints *footprints, enum queue queue, double now_s);

#endif
