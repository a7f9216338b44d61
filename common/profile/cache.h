/* cache.h - keeps measured profiles of cores on disk for later starts: a folder with one file per
 * question, where a question is everything that determines the answer.
 *
 * Any number of processes may use the same folder: files are written elsewhere and renamed, so a
 * file is either complete or missing, and of two answers to one question the later stays. Folder
 * and files are accessible to their owner only. Times are milliseconds since 1970. */
#ifndef COMMON_PROFILE_CACHE_H
#define COMMON_PROFILE_CACHE_H

#include "common/profile/profile.h"

#include <jansson.h>

/* How long an answer is valid. It expires because a question does not cover changes of memory
 * modules or firmware settings, and sooner if it was measured while others used the cores. */
#define PROFILE_CACHE_AGE_MS (7ull * 24 * 3600 * 1000)
#define PROFILE_CACHE_BUSY_AGE_MS (3600ull * 1000)
/* The size of an answer's name, including the NUL. */
#define PROFILE_CACHE_NAME_SIZE 17

/* Everything that determines a measurement. The texts are borrowed. Host and processor are both
 * part of it: different machines may share a home folder, and a machine's name and disk may move to
 * another processor. */
struct profile_question {
    const char *host;
    const char *processor;
    const char *programs; /* hash of the builds of the executor and its libraries */
    const char *device;   /* the kernels: "cpu" */
    /* The sets of cores, "0-1;2-3": measured together, because they share caches and memory. */
    const char *cpusets;
    const char *fabric; /* the library by which the links between them are measured */
    double crowd;       /* number of devices that share a core, and compete while measured */
};

struct profile_answer {
    uint64_t measured_unix_ms;
    bool busy;    /* others used the cores while it was measured */
    size_t count; /* number of profiles: one for each set of cores */
    struct profile *profiles;
};

/* Free what the answer owns. Accepts a zeroed one. */
void profile_answer_finish(struct profile_answer *answer);

/* Returns 1 with *out, owned by the caller, when there is an answer that has not expired; 0 when
 * there is none. -EINVAL or another negative errno, with the path, when the file cannot be read, is
 * damaged, or answers another question. */
int profile_cache_find(const char *folder, const struct profile_question *question,
                       uint64_t now_unix_ms, struct profile_answer *out, struct error *err);
/* Store an answer in place of an earlier one, and delete all expired answers (files of this module
 * only). Makes the folder if needed. Negative errno; -EINVAL when a text of the question is not
 * UTF-8. */
int profile_cache_keep(const char *folder, const struct profile_question *question,
                       const struct profile_answer *answer, struct error *err);

/* An answer found in a folder, with its question, whose texts are borrowed from `file`. */
struct profile_kept {
    char name[PROFILE_CACHE_NAME_SIZE]; /* hash of the question: 16 hexadecimal digits */
    json_t *file;                       /* NULL: the file is damaged, */
    struct error why;                   /* and this says how */
    struct profile_question question;
    struct profile_answer answer;
};

/* List all answers that have not expired, newest first, then damaged files. Without a folder the
 * list is empty. To be freed with profile_cache_free(). Negative errno. */
int profile_cache_list(const char *folder, uint64_t now_unix_ms, struct profile_kept **out,
                       size_t *count, struct error *err);
void profile_cache_free(struct profile_kept *kept, size_t count);

#endif
