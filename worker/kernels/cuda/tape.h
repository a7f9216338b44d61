/* tape.h - work that is issued again and again, issued as one: see struct accelerator. */
#ifndef WORKER_KERNELS_CUDA_TAPE_H
#define WORKER_KERNELS_CUDA_TAPE_H

extern "C" {
#include "worker/kernels/accelerator.h"
}

int tape_record(void (*issue)(void *context), void *context, struct tape **out, struct error *err);
void tape_play(struct tape *tape);
void tape_destroy(struct tape *tape);

#endif
