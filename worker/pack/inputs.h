/* inputs.h - the texts that are packed, in order: files, the files of folders, standard input.
 *
 * They are what the job's data.text would read, and besides whatever has an end: pipes too. */
#ifndef WORKER_PACK_INPUTS_H
#define WORKER_PACK_INPUTS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct input {
    char *path;
    int standard; /* descriptor of standard input; -1: it is opened by its path */
};

struct inputs {
    struct input *items;
    size_t count, capacity;
    uint64_t bytes; /* of all together; 0: not known before they are read */
};

/* List what the names stand for; "-" is standard input, open as `standard`. A folder
 * stands for the files that data.text reads of it. Reads nothing but folders. -errno with the name
 * of one that is not there; the caller finishes *out in either case. */
int inputs_list(const char *const *names, size_t count, int standard, struct inputs *out,
                struct error *err);
void inputs_finish(struct inputs *inputs);

/* As in "'a.txt'", or "standard input"; returns out. */
char *input_print(const struct input *input, char *out, size_t size);
/* Open it to be polled and read: opening a pipe does not wait for its writer. Returns a descriptor
 * for input_close(), or -errno. */
int input_open(const struct input *input, struct error *err);
void input_close(const struct input *input, int descriptor);

#endif
