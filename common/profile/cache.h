/* cache.h - what cores were measured to do, kept on disk for the next time: a folder with a file
 * per question, which is all that decides the answer.
 *
 * Any number of processes may read and write one folder: a file is written beside its place and
 * renamed, so it is there as a whole or not at all, and of two that answer one question at once the
 * later one stays. Folder and files are their owner's alone. Times are milliseconds since 1970. */
#ifndef COMMON_PROFILE_CACHE_H
#define COMMON_PROFILE_CACHE_H

#include "common/profile/profile.h"

#include <jansson.h>

/* How long an answer is believed: no question tells that a memory module or a setting of the
 * firmware was changed; and what was measured beside other work is the worse for it. */
#define PROFILE_CACHE_AGE_MS (7ull * 24 * 3600 * 1000)
#define PROFILE_CACHE_BUSY_AGE_MS (3600ull * 1000)
/* Of the name of an answer, with its final NUL. */
#define PROFILE_CACHE_NAME_SIZE 17

/* Lent texts. */
struct profile_question {
    const char *host;      /* a home folder may be shared by machines that differ, */
    const char *processor; /* and a machine's name and disk may move to another processor */
    const char *programs;  /* hash of what computes: the executor's build and its libraries' */
    const char *device;    /* "cpu": which kernels */
    const char *cpusets;   /* "0-1;2-3": all are measured at once, for they share caches, memory */
    const char *fabric;    /* by which library the links among them were measured */
    double crowd;          /* how many devices share a core: each is so many times slower */
};

struct profile_answer {
    uint64_t measured_unix_ms;
    bool busy;    /* others had the cores, too, while it was measured */
    size_t count; /* of profiles: one for each set of cores */
    struct profile *profiles;
};

/* Accepts a zeroed one. */
void profile_answer_finish(struct profile_answer *answer);

/* 1: there is an answer that is not too old, *out is yours; 0: there is none. A file that cannot be
 * read, is damaged, or answers another question: -EINVAL or -errno, with its path. */
int profile_cache_find(const char *folder, const struct profile_question *question,
                       uint64_t now_unix_ms, struct profile_answer *out, struct error *err);
/* Keep it in the place of what was kept, and take away what is too old by then, whatever it
 * answers: files of this module alone. Makes the folder. -errno; -EINVAL: a text of the question is
 * no UTF-8. */
int profile_cache_keep(const char *folder, const struct profile_question *question,
                       const struct profile_answer *answer, struct error *err);

/* An answer of a folder, with its question, which is lent by `file`. */
struct profile_kept {
    char name[PROFILE_CACHE_NAME_SIZE]; /* of the question, 16 hexadecimal digits */
    json_t *file;                       /* NULL: it is damaged, */
    struct error why;                   /* in words */
    struct profile_question question;
    struct profile_answer answer;
};

/* All answers of the folder that are not too old, the newest first, and files that are damaged
 * behind them; none where there is no folder. *out is yours, for profile_cache_free(). -errno. */
int profile_cache_list(const char *folder, uint64_t now_unix_ms, struct profile_kept **out,
                       size_t *count, struct error *err);
void profile_cache_free(struct profile_kept *kept, size_t count);

#endif
