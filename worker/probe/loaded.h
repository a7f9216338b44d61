/* loaded.h - identifies the program and the libraries that this process consists of. */
#ifndef WORKER_PROBE_LOADED_H
#define WORKER_PROBE_LOADED_H

#include <stdint.h>

/* A hash that is equal in all processes with the same builds of them, loaded in any order and at
 * any address, on the same kernel, and with the same environment variables that affect what
 * computes. */
uint64_t loaded_hash(void);

#endif
