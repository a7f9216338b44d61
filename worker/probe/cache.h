/* cache.h - keeps measurements of cores, and finds them again: builds the question that
 * common/profile/cache.h wants, as seen by this process. */
#ifndef WORKER_PROBE_CACHE_H
#define WORKER_PROBE_CACHE_H

#include "common/profile/cache.h"

#include <stdint.h>

/* A hash that is equal in all processes that have loaded the same builds of the program and of
 * libraries, on the same kernel, and with the same environment variables that affect computing
 * (threads, and the processor's instructions that may be used). The order and addresses of loading
 * do not matter. */
uint64_t loaded_hash(void);

struct probe_cache {
    const char *folder;
    struct profile_question question; /* points to the texts below, and to those it was given */
    char host[256], processor[256], programs[17];
};

/* Build the question for these sets of cores, given as Linux writes them. All texts are lent. */
void probe_cache_ask(struct probe_cache *cache, const char *folder, const char *device,
                     const char *cpusets, const char *fabric, double crowd);
/* As profile_cache_find, with the current time. */
int probe_cache_find(const struct probe_cache *cache, struct profile_answer *out,
                     struct error *err);
/* As profile_cache_keep; the profiles are lent. */
int probe_cache_store(const struct probe_cache *cache, const struct profile_answer *answer,
                      struct error *err);

#endif
