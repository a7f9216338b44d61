/* cpu.h - the members of device_cpu that are faster than plain C. */
#ifndef WORKER_KERNELS_CPU_CPU_H
#define WORKER_KERNELS_CPU_CPU_H

#include "worker/kernels/call.h"

extern const struct kernel cpu_add, cpu_attend, cpu_core, cpu_embed, cpu_gelu, cpu_grouped,
    cpu_linear, cpu_loss, cpu_norm, cpu_position, cpu_rmsnorm, cpu_rotary, cpu_swiglu;

kernel_fn cpu_core_backward;

void cpu_clear(void *data, size_t bytes);
/* out = a + b, as many as there are in b's box; out, of a's element, may be one of them. */
void cpu_add_views(const struct view *a, const struct view *b, const struct view *out);
void cpu_copy(const struct view *destination, const struct view *source, const struct box *part);
void cpu_sum(const struct view *destination, const struct view *source);
void cpu_square_sum(const float *data, size_t count, float *sum);
void cpu_update(const struct update_call *call);

/* As call_pass(). */
void cpu_pass(const struct kernel_call *call, int i);

#endif
