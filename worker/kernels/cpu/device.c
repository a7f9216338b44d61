/* device.c - the CPU: vectorised loops, and matrix products by our own code or a library; f32 and
 * bf16. */
#include "worker/kernels/cpu/cpu.h"
#include "worker/kernels/cpu/parallel.h"

static int probe(struct error *err)
{
    (void)err;
    return 0;
}

static const struct kernel *const kernels[] = {
    &cpu_add,  &cpu_attention, &cpu_embed,   &cpu_gelu,   &cpu_linear, &cpu_loss,
    &cpu_norm, &cpu_position,  &cpu_rmsnorm, &cpu_rotary, &cpu_swiglu, NULL,
};

const struct device device_cpu = {
    .name = "cpu",
    .probe = probe,
    .threads = parallel_set_threads,
    .kernels = kernels,
    .copy = cpu_copy,
    .clear = cpu_clear,
    .add = cpu_sum,
    .square_sum = cpu_square_sum,
    .update = cpu_update,
};
