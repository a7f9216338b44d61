/* staged.h - shared by the files of the staged library: host memory through which data passes. */
#ifndef WORKER_COLLECTIVES_STAGED_H
#define WORKER_COLLECTIVES_STAGED_H

#include "worker/collectives/collective.h"

#include <pthread.h>

/* Pinned host memory, which grows as needed. */
struct stage {
    char *memory; /* pinned */
    size_t bytes;
};

struct fabric_request {
    struct fabric_request *next; /* in the list of all requests */
    bool taken;
    struct stage stage;
    struct fabric_request *inner;
};

struct fabric_group {
    struct fabric_group *next;
    struct fabric *fabric;
    struct fabric_group *inner;
    int count, me;
    struct stage stage;
    struct collective_part *parts; /* of a call: the parts as they lie in the stage */
    size_t part_count, part_capacity;
};

struct fabric {
    const struct accelerator *accelerator;
    const struct collectives *host;
    struct fabric *inner;
    int rank;
    struct fabric_group *groups;
    pthread_mutex_t lock; /* for the requests, because threads may send concurrently */
    struct fabric_request *requests;
};

/* Make room for `bytes`; earlier contents are lost. Errors of the accelerator. */
int staged_reserve(const struct fabric *fabric, struct stage *stage, size_t bytes,
                   struct error *err);
/* Copy from the device to the stage (fetch, which waits for the lane), or from host memory to the
 * device (store, which is only issued). */
int staged_fetch(const struct fabric *fabric, const struct stage *stage, const void *source,
                 size_t bytes, struct error *err);
void staged_store(const struct fabric *fabric, void *destination, const void *source, size_t bytes);

/* staged_message.c */
int staged_send(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                const void *source, size_t count, struct fabric_request **out, struct error *err);
int staged_wait(struct fabric *fabric, struct fabric_request *request, struct error *err);
int staged_receive(struct fabric *fabric, int peer, uint32_t tag, enum element element,
                   void *destination, size_t count, struct error *err);

#endif
