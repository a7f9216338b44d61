/* device.c - the CPU: vectorised loops, matrix products by a library. In bf16 it is as slow as
 * plain C, whose kernels it has for that. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/plain/plain.h"

static int probe(struct error *err)
{
    (void)err;
    return 0;
}

static const struct kernel *const kernels[] = {
    &cpu_add,       &cpu_core,     &cpu_embed,    &cpu_gelu,     &cpu_linear,
    &cpu_loss,      &cpu_norm,     &cpu_position, &plain_attend, &plain_grouped,
    &plain_rmsnorm, &plain_rotary, &plain_swiglu, NULL,
};

const struct device device_cpu = {
    .name = "cpu",
    .probe = probe,
    .threads = parallel_set_threads,
    .kernels = kernels,
    .narrow = plain_kernels,
    .copy = plain_copy, /* runs of memory: memcpy is as fast as it gets */
    .clear = cpu_clear,
    .add = cpu_sum,
    .square_sum = cpu_square_sum,
    .update = cpu_update,
};
