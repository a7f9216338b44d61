/* packing.h - the executor that packs texts, as a child, and what it reports. */
#ifndef COORDINATOR_CLI_COMMANDS_DATA_PACKING_H
#define COORDINATOR_CLI_COMMANDS_DATA_PACKING_H

#include "common/base/error.h"
#include "proto/executor.pb-c.h"

#include <stdbool.h>

struct packing_options {
    const char *out;
    const char *tokenizer; /* NULL: bytes are tokens */
    char *const *texts;    /* "-": standard input, at most once */
    int text_count;
    bool end_of_text, force;
    bool quiet;
};

/* Pack, showing progress on stderr. The caller frees *out with message_free(), which is set on
 * success only. An enum exit_code. */
int packing_run(const struct packing_options *options, Gimbal__ExecutorPacked **out,
                struct error *err);

#endif
