/* subnormal.h - numbers that are nearly zero are zero. */
#ifndef WORKER_KERNELS_CPU_SUBNORMAL_H
#define WORKER_KERNELS_CPU_SUBNORMAL_H

/* In this thread and in those that it starts from now on. Processors take a hundred times as long
 * for a number below 1e-38, and the moments of weights that get no gradient stay there for good: an
 * embedding's rows of rare tokens. */
void subnormal_flush(void);

#endif
