/* tape.h - recordings of work that is issued repeatedly, played back as a whole. Contracts:
 * record(), play() and recording_destroy() of struct accelerator. */
#ifndef WORKER_KERNELS_CUDA_TAPE_H
#define WORKER_KERNELS_CUDA_TAPE_H

extern "C" {
#include "worker/kernels/accelerator.h"
}

int recording_record(void (*issue)(void *context), void *context, struct device_recording **out,
                     struct error *err);
void recording_play(struct device_recording *recording);
void recording_destroy(struct device_recording *recording);

#endif
