/* rendezvous.h - where the ranks of an epoch find each other: one key-value store per epoch.
 *
 * A value is put once and read often; everything is forgotten when its epoch ends. Pure: the caller
 * keeps track of who waits for a missing key. */
#ifndef COORDINATOR_RENDEZVOUS_RENDEZVOUS_H
#define COORDINATOR_RENDEZVOUS_RENDEZVOUS_H

#include "common/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RENDEZVOUS_KEY_SIZE 256 /* including the final NUL */
#define RENDEZVOUS_KEPT "kept/" /* prefix of keys whose values survive the process */
#define RENDEZVOUS_BYTES_MAX ((size_t)64 << 20) /* total of keys and values of one epoch */

struct rendezvous;

struct rendezvous *rendezvous_create(void);
/* Accepts NULL. */
void rendezvous_destroy(struct rendezvous *rendezvous);

/* Store a copy of the value. Putting the same value again is harmless. -EEXIST: the key has another
 * value. -EINVAL: the key is empty or too long. -ENOSPC: the epoch would exceed
 * RENDEZVOUS_BYTES_MAX. */
int rendezvous_put(struct rendezvous *rendezvous, const char *job, uint64_t epoch, const char *key,
                   const void *value, size_t size, struct error *err);
/* False if the key is missing; *value is lent until the next non-const call. */
bool rendezvous_get(const struct rendezvous *rendezvous, const char *job, uint64_t epoch,
                    const char *key, const void **value, size_t *size);
/* Forget all epochs of the job. */
void rendezvous_forget(struct rendezvous *rendezvous, const char *job);
/* Forget the job's entries whose keys start with the prefix. */
void rendezvous_forget_prefix(struct rendezvous *rendezvous, const char *job, const char *prefix);

#endif
