/* sample.h - text from the trained model: rank 0 gathers the parameters and generates. */
#ifndef WORKER_TRAINER_SAMPLE_H
#define WORKER_TRAINER_SAMPLE_H

#include "worker/trainer/trainer.h"

/* All ranks call it. Only for byte-level models (vocab 256 or more); others have no text. */
int sample_run(const struct trainer_config *config, struct interpreter *in, struct error *err);

#endif
