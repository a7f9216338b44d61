/* rendezvous.h - where the ranks of an epoch find each other: a key-value store for each.
 *
 * A value is put once and read often; all of it is forgotten when its epoch ends. Pure: who waits
 * for a key that is not there yet is the caller's to remember. */
#ifndef COORDINATOR_RENDEZVOUS_RENDEZVOUS_H
#define COORDINATOR_RENDEZVOUS_RENDEZVOUS_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RENDEZVOUS_KEY_SIZE 256                 /* with its final NUL */
#define RENDEZVOUS_KEPT "kept/"                 /* keys of values that outlive the process */
#define RENDEZVOUS_BYTES_MAX ((size_t)64 << 20) /* keys and values of one epoch */

struct rendezvous;

struct rendezvous *rendezvous_create(void);
/* Accepts NULL. */
void rendezvous_destroy(struct rendezvous *rendezvous);

/* Keep a copy of the value. Putting the same again is harmless.
 * -EEXIST: the key has another value. -EINVAL: the key is empty or too long.
 * -ENOSPC: the epoch keeps RENDEZVOUS_BYTES_MAX already. */
int rendezvous_put(struct rendezvous *rendezvous, const char *job, uint64_t epoch, const char *key,
                   const void *value, size_t size, struct error *err);
/* False when nobody has put it; *value is lent until the next call that is not const. */
bool rendezvous_get(const struct rendezvous *rendezvous, const char *job, uint64_t epoch,
                    const char *key, const void **value, size_t *size);
/* Forget all epochs of the job. */
void rendezvous_forget(struct rendezvous *rendezvous, const char *job);
/* Forget what is under keys that begin so. */
void rendezvous_forget_prefix(struct rendezvous *rendezvous, const char *job, const char *prefix);
/* How many epochs have anything. */
size_t rendezvous_count(const struct rendezvous *rendezvous);

#endif
