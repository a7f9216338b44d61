/* sgemm.c - chooses between our own code, oneDNN and OpenBLAS for f32.
 *
 * GFLOP/s of one core for (rows x inner) (inner x columns), forward:
 *                          2048 x  384x384  384x1152  384x1536  1536x384
 * AMD Zen 4, oneDNN 2.6             114       112       113       112
 *            OpenBLAS 0.3.21        100       104       105       101    (peak 118)
 *                          4096 x  768x768       768x3072     3072x768
 * Intel AMX, oneDNN                 174            64           167
 *            OpenBLAS               122           166           146
 * For gradients, on the AMD: oneDNN 103-112 (of the input), 113 (of the weight), OpenBLAS 98-103,
 * our own 91-111, also for attention's small products, where oneDNN has 72-109; of the weight on
 * the Intel: oneDNN 138 (1536x384) to 213 (3072x768), OpenBLAS 187 to 201.
 *
 * On a newer Intel, which OpenBLAS 0.3.21 does not know, it uses its code for a Prescott: 10 to 17.
 * So OpenBLAS is used only if oneDNN is not available or refuses, and on Intel's processors with
 * AVX-512 products are our own (avx512.c). There, the best of many alternating runs, while the
 * core's other hyperthread was busy, with OPENBLAS_CORETYPE=SkylakeX (peak of such a core 179):
 *                          2048 x  384x384  384x1152  384x1536  1536x384   of the weights:
 *            our own               158       154       147       148       146  129  144  150
 *            oneDNN 2.6.3          167       155       143       157       162  117  137  118
 *            OpenBLAS              155       153       136       145       146  136  150  145
 * and our own includes the bias. bench/kernels prints these. The choice is fixed, not timed, so
 * that replicas on equal machines sum in the same order.
 *
 * Several ranks' threads may call this at once: oneDNN keeps no state, OpenBLAS (its OpenMP build)
 * only buffers under a lock, and both use the caller's OpenMP pool. */
#include "worker/kernels/cpu/sgemm.h"
#include "worker/kernels/cpu/processor.h"

#include <cblas.h>
#if defined(HAVE_ONEDNN) && defined(__x86_64__) /* elsewhere OpenBLAS is faster */
#define BY_ONEDNN
#include <dnnl.h>

/* Returns false if oneDNN refuses, for lack of memory for packed copies; OpenBLAS has its buffers
 * already. */
static bool by_onednn(int64_t rows, int64_t columns, int64_t inner, struct matrix a,
                      struct matrix b, float beta, float *c, int64_t stride)
{
    return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', rows, columns, inner, 1,
                      a.data, a.stride, b.data, b.stride, beta, c, stride) == dnnl_success;
}
#endif

void sgemm(int64_t rows, int64_t columns, int64_t inner, struct matrix a, struct matrix b,
           float beta, float *c, int64_t stride)
{
    if (processor_is_intel() && product_by_avx512(&(struct product){.rows = rows,
                                                                    .columns = columns,
                                                                    .inner = inner,
                                                                    .a = a,
                                                                    .b = b,
                                                                    .add = beta != 0,
                                                                    .c = c,
                                                                    .stride = stride}))
        return;
#ifdef BY_ONEDNN
    if (by_onednn(rows, columns, inner, a, b, beta, c, stride))
        return;
#endif
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
                b.transposed ? CblasTrans : CblasNoTrans, (int)rows, (int)columns, (int)inner, 1,
                a.data, (int)a.stride, b.data, (int)b.stride, beta, c, (int)stride);
}
