/* subnormal.h - treats subnormal numbers as zero. */
#ifndef WORKER_KERNELS_CPU_SUBNORMAL_H
#define WORKER_KERNELS_CPU_SUBNORMAL_H

/* Flush subnormals to zero in this thread and in those that it starts later. Processors take a
 * hundred times as long for numbers below 1e-38, and the moments of weights that get no gradient
 * (an embedding's rows of rare tokens) would stay there for good. */
void subnormal_flush(void);

#endif
