/* room.h - a thread's memory for packed matrices, which is freed when the thread ends. */
#ifndef WORKER_KERNELS_CPU_ROOM_H
#define WORKER_KERNELS_CPU_ROOM_H

#define ROOM_BYTES 1572864 /* 1.5 MiB: fits in the L2 cache of processors with AVX-512 */

/* The calling thread's ROOM_BYTES, aligned to a cache line. Their contents are undefined. */
void *room_find(void);

#endif
