/* tape.h - recordings of work that is issued repeatedly, played back as a whole. Contracts:
 * record(), play() and tape_destroy() of struct accelerator. */
#ifndef WORKER_KERNELS_CUDA_TAPE_H
#define WORKER_KERNELS_CUDA_TAPE_H

extern "C" {
#include "worker/kernels/accelerator.h"
}

int tape_record(void (*issue)(void *context), void *context, struct tape **out, struct error *err);
void tape_play(struct tape *tape);
void tape_destroy(struct tape *tape);

#endif
