/* room.c - a block per thread, under a thread-specific key whose destructor frees it. */
#include "worker/kernels/cpu/room.h"

#include "common/base/memory.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE 64

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* the block in which the room lies */

static void begin(void)
{
    if (pthread_key_create(&key, free) != 0) {
        fputs("kernels: no key of threads is left\n", stderr);
        abort();
    }
}

void *room_find(void)
{
    pthread_once(&once, begin);
    char *block = pthread_getspecific(key);
    if (!block) {
        block = xcalloc(1, ROOM_BYTES + LINE);
        if (pthread_setspecific(key, block) != 0)
            abort();
    }
    return block + (LINE - (uintptr_t)block % LINE) % LINE;
}
