/* loaded.h - identifies the builds of the program and of the libraries that this process has
 * loaded. */
#ifndef WORKER_PROBE_LOADED_H
#define WORKER_PROBE_LOADED_H

#include <stdint.h>

/* A hash that is equal in all processes with the same builds of all of these, on the same kernel,
 * and with the same environment variables that affect computing (threads, and the processor's
 * instructions that may be used). The order and addresses of loading do not matter. */
uint64_t loaded_hash(void);

#endif
