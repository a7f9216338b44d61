/* house.h - ranks as processes of gimbal-executor, and the test where the worker and the
 * coordinator stand: it assigns, keeps the epoch's keys, says go, and lists what is staged. */
#ifndef TESTS_CLUSTER_HOUSE_H
#define TESTS_CLUSTER_HOUSE_H

#include "tests/support/executors.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOUSE_PAUSES 3
#define HOUSE_RANKS_MAX 8
#define HOUSE_KEYS_MAX 1024

struct house_entry {
    char *key;
    uint8_t *value;
    size_t size;
};

/* A rank that waits for a key. */
struct house_waiting {
    int rank;
    uint64_t id;
    char *key;
};

struct house {
    struct executor executors[HOUSE_RANKS_MAX];
    bool open[HOUSE_RANKS_MAX];
    int count;
    const char *folder, *start; /* where checkpoints go, and the one to begin from; NULL: none */
    int start_step;
    int epoch;
    struct house_entry entries[HOUSE_KEYS_MAX];
    struct house_waiting waiting[HOUSE_KEYS_MAX];
    size_t entry_count, waiting_count;
    struct executor_seen seen;
    int victim, after; /* the rank to kill, once there are so many steps; -1: none */
    int looked;        /* behind which step each executor's memory is looked at; 0: none */
    uint64_t resident_bytes[HOUSE_RANKS_MAX];
    bool to_pause, pausing; /* to pause: a few times */
    int asked, paused;      /* pauses; ranks that are in the newest of them */
    uint64_t paused_step;
};

/* Start an executor for each rank of the plan; their programs are said to have another hash by so
 * much. */
void house_assign(struct house *house, const struct executor_job *job, const struct plan *plan,
                  uint64_t hash_offset);
/* Serve all channels until every executor has ended; kill rank `victim` after that many steps
 * (-1: nobody). */
void house_serve(struct house *house, int victim, int after);
/* Clean: all have left with 0. */
void house_finish(struct house *house, bool clean);

/* The losses of one rank, as threads of one process have them. */
struct executor_seen house_alone(const struct executor_job *job);

#endif
