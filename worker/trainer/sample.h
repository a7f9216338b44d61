/* sample.h - generates text from the trained model; rank 0 gathers the parameters and writes. */
#ifndef WORKER_TRAINER_SAMPLE_H
#define WORKER_TRAINER_SAMPLE_H

#include "worker/trainer/trainer.h"

/* Generate eval.sample bytes and report them. Collective. Does nothing if nobody knows what a token
 * stands for (config->tokenizer is NULL). If rank 0 lacks the memory for a whole model it logs
 * that, and the call succeeds. */
int sample_run(const struct trainer_config *config, struct interpreter *in, struct error *err);

#endif
