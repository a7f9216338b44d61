/* kept.h - keeps measurements of cores, and finds them again: builds the question that
 * common/profile/cache.h wants, as seen by this process. */
#ifndef WORKER_PROBE_KEPT_H
#define WORKER_PROBE_KEPT_H

#include "common/profile/cache.h"

struct probe_kept {
    const char *folder;
    struct profile_question question; /* points to the texts below, and to those it was given */
    char host[256], processor[256], programs[17];
};

/* Build the question for these sets of cores, given as Linux writes them. All texts are lent. */
void probe_kept_ask(struct probe_kept *kept, const char *folder, const char *device,
                    const char *cpusets, const char *fabric, double crowd);
/* As profile_cache_find, with the current time. */
int probe_kept_find(const struct probe_kept *kept, struct profile_answer *out, struct error *err);
/* As profile_cache_keep; the profiles are lent. */
int probe_kept_store(const struct probe_kept *kept, const struct profile_answer *answer,
                     struct error *err);

#endif
