/* showing.h - the executor that reads files of tokens, as a child, and what it tells of them. */
#ifndef COORDINATOR_CLI_COMMANDS_DATA_SHOWING_H
#define COORDINATOR_CLI_COMMANDS_DATA_SHOWING_H

#include "common/base/error.h"
#include "proto/executor.pb-c.h"

#include <stddef.h>

struct showing_options {
    const char *format;
    const char *tokenizer; /* NULL: what tokens stand for is not known */
    char *const *files;
    int file_count;
};

/* Called for each file, in their order; lent. */
typedef void showing_cb(void *data, const Gimbal__ExecutorShown *shown);

/* Look at all files, up to one that cannot be read. An enum exit_code. */
int showing_run(const struct showing_options *options, showing_cb *cb, void *data,
                struct error *err);

#endif
