/* memo.h - results of measurements, kept for later processes: values by key, in a text file with
 * one line for each. Needs neither a device nor the CUDA toolkit. Used by one thread at a time;
 * processes may share the file. */
#ifndef WORKER_KERNELS_CUDA_MEMO_H
#define WORKER_KERNELS_CUDA_MEMO_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MEMO_KEY_SIZE 128
#define MEMO_VALUE_SIZE 64

struct memo;

/* Create a memo with the values of the file, if there is one. The first line of the file is the
 * title, which names what all values depend on. path NULL: nothing is kept. A memo is created even
 * on failure, and is then empty. -EINVAL: the file is damaged or has another title; the first value
 * that is added replaces it. Another -errno: it cannot be read. */
int memo_open(const char *path, const char *title, struct memo **out, struct error *err);
void memo_close(struct memo *memo); /* accepts NULL */

/* Copy the MEMO_VALUE_SIZE bytes of a key to value. False: the key is not known. */
bool memo_find(const struct memo *memo, const char *key, void *value);
/* Add a value of MEMO_VALUE_SIZE bytes; a key that is known keeps its value. The key is shorter
 * than MEMO_KEY_SIZE and contains no newline. A value that cannot be written is kept in this
 * process only. */
void memo_add(struct memo *memo, const char *key, const void *value);

#ifdef __cplusplus
}
#endif

#endif
