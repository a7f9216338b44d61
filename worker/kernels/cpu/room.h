/* room.h - memory in which a thread packs matrices, kept until it ends. */
#ifndef WORKER_KERNELS_CPU_ROOM_H
#define WORKER_KERNELS_CPU_ROOM_H

#define ROOM_BYTES 1572864 /* 1.5 MiB: fits in the second cache of what has AVX-512 */

/* The calling thread's ROOM_BYTES, at a cache line: whatever they hold. */
void *room_find(void);

#endif
