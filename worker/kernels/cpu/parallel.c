/* parallel.c - ranges on the OpenMP pool of the calling thread. */
#include "worker/kernels/cpu/parallel.h"

#include <omp.h>

int parallel_threads(void)
{
    return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void parallel_set_threads(int count)
{
    omp_set_num_threads(count > 0 ? count : 1);
}

void parallel(int64_t count, int64_t grain, range_fn *body, const void *context)
{
    int64_t grains = (count + grain - 1) / grain;
    int threads = parallel_threads();
    if (threads > grains)
        threads = (int)grains;
    if (threads <= 1) {
        if (count > 0)
            body(context, 0, count);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int i = 0; i < threads; i++) {
        /* Libraries ask for this thread's number, and would start threads of their own. */
        omp_set_num_threads(1);
        int64_t first = grains * i / threads * grain, end = grains * (i + 1) / threads * grain;
        body(context, first, end < count ? end : count);
    }
}
