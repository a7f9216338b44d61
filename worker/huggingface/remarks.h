/* remarks.h - what a person should know before training starts with the weights of a folder. */
#ifndef WORKER_HUGGINGFACE_REMARKS_H
#define WORKER_HUGGINGFACE_REMARKS_H

#include "common/config/job.h"
#include "worker/tokenizer/tokenizer.h"

#define REMARKS_MAX 2

struct remarks {
    char *texts[REMARKS_MAX];
    size_t count;
};

/* Compare what the folder model.weights has with the job: its vocabulary of `vocab` tokens, and its
 * tokenizer with that of the data (NULL: nobody knows it). What differs is a sentence each, about
 * "it". The caller finishes *out. */
void remarks_make(const struct job_config *job, int64_t vocab, const struct tokenizer *tokenizer,
                  struct remarks *out);
void remarks_finish(struct remarks *remarks);

#endif
