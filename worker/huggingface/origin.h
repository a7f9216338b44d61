/* origin.h - the folder that a model once came from (model.weights), when it is exported: what says
 * how it is used belongs to it, however it was trained since. */
#ifndef WORKER_HUGGINGFACE_ORIGIN_H
#define WORKER_HUGGINGFACE_ORIGIN_H

#include "common/config/job.h"
#include "common/graph/graph.h"
#include "worker/tokenizer/tokenizer.h"

#include <jansson.h>

struct origin {
    const char *folder; /* lent by the job; NULL: it came from none */
    json_t *config;     /* its config.json; NULL: it is not that of the model any more */
    /* Its tokens are those of the data, as far as is known: what it says of them holds. */
    bool same_tokens;
};

/* Look into the folder of a job whose model has this graph; the tokenizer is that of the data, NULL
 * if nobody knows it. The caller finishes *out. */
void origin_open(const struct job_config *job, const struct graph *graph,
                 const struct tokenizer *tokenizer, struct origin *out);
void origin_finish(struct origin *origin);

/* Set what a config.json has from there: which tokens begin and end texts, the length that the
 * model was made for, and its windows, which samples were too short for. */
void origin_keep(const struct origin *origin, json_t *config);
#define ORIGIN_TOKENIZER "tokenizer.json"
#define ORIGIN_SETTINGS "tokenizer_config.json"

/* Copy what is said there of chats, of generating texts and of the tokenizer to a folder; and if
 * nobody knows that of the data, the `tokenizer` itself. Errors of reading and writing. */
int origin_copy(const struct origin *origin, bool tokenizer, const char *folder, struct error *err);

#endif
