/* loaded.h - of which program and which libraries this process is made. */
#ifndef WORKER_PROBE_LOADED_H
#define WORKER_PROBE_LOADED_H

#include <stdint.h>

/* The same in every process with the same builds of them, in any order and at any address, on the
 * same kernel, and with the same words in its environment to what computes. */
uint64_t loaded_hash(void);

#endif
