/* memo.h - what was found out by measuring, kept for the next process: values by key, in a text
 * file of one line each. It needs neither device nor toolkit. */
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

/* The file begins with the title, which names what all values depend on; processes may share it.
 * path NULL: nothing is kept. Makes a memo in any case; -EINVAL: what the file has is damaged or of
 * another title, and is written over with the first value to come; -errno: it cannot be read. */
int memo_open(const char *path, const char *title, struct memo **out, struct error *err);
void memo_close(struct memo *memo); /* accepts NULL */

/* MEMO_VALUE_SIZE bytes; false: nothing is known. */
bool memo_find(const struct memo *memo, const char *key, void *value);
/* The key is less than MEMO_KEY_SIZE characters, none of them a line's end; a key that is there
 * keeps its value. What cannot be written is lost with the process. */
void memo_add(struct memo *memo, const char *key, const void *value);

#ifdef __cplusplus
}
#endif

#endif
