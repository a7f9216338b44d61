/* cpu.h - the members of device_cpu. */
#ifndef WORKER_KERNELS_CPU_CPU_H
#define WORKER_KERNELS_CPU_CPU_H

#include "worker/kernels/call.h"

extern const struct kernel cpu_add, cpu_attention, cpu_embed, cpu_gelu, cpu_linear, cpu_loss,
    cpu_norm, cpu_position, cpu_rmsnorm, cpu_rotary, cpu_swiglu;

/* out = a + b, for as many elements as b's box has. out has a's element, and may be the memory of a
 * or b. */
void cpu_add_views(const struct view *a, const struct view *b, const struct view *out);

/* As call_pass(), with the threads of the rank. */
void cpu_pass(const struct kernel_call *call, int i);

#endif
