/* probe_kept.h - what cores were measured to do before, found again or kept: the question that
 * common/profile/cache.h wants, as this process sees it. */
#ifndef WORKER_EXECUTOR_PROBE_KEPT_H
#define WORKER_EXECUTOR_PROBE_KEPT_H

#include "common/profile/cache.h"

struct probe_kept {
    const char *folder;
    struct profile_question question; /* lends the texts below, and those that it was given */
    char host[256], processor[256], programs[17];
};

/* What is asked of these sets of cores, as Linux writes them; all texts are lent. */
void probe_kept_ask(struct probe_kept *kept, const char *folder, const char *device,
                    const char *cpusets, const char *fabric, double crowd);
/* As profile_cache_find, of now. */
int probe_kept_find(const struct probe_kept *kept, struct profile_answer *out, struct error *err);
/* As profile_cache_keep; the profiles are lent. */
int probe_kept_store(const struct probe_kept *kept, const struct profile_answer *answer,
                     struct error *err);

#endif
