/* product.c - our own matrix products and those of both libraries, on which the rule in cpu/sgemm.c
 * rests. */
#include "worker/kernels/cpu/product.h"
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"
#include "worker/kernels/cpu/processor.h"

#include <cblas.h>
#ifdef HAVE_ONEDNN
#include <dnnl.h>
#endif
#include <stdio.h>
#include <stdlib.h>

struct shape {
    int rows, inner, columns;
    char form; /* f: x w, i: dy w', w: x' dy */
    size_t library;
    float *x, *w, *y;
};

static void by_openblas(const struct shape *p)
{
    int m = p->rows, k = p->inner, n = p->columns;
    if (p->form == 'f')
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, p->x, k, p->w, n, 0,
                    p->y, n);
    else if (p->form == 'i')
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, k, n, 1, p->y, n, p->w, n, 0, p->x,
                    k);
    else
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, k, n, m, 1, p->x, k, p->y, n, 0, p->w,
                    n);
}

#ifdef HAVE_ONEDNN
static void by_onednn(const struct shape *p)
{
    int m = p->rows, k = p->inner, n = p->columns;
    if (p->form == 'f')
        dnnl_sgemm('N', 'N', m, n, k, 1, p->x, k, p->w, n, 0, p->y, n);
    else if (p->form == 'i')
        dnnl_sgemm('N', 'T', m, k, n, 1, p->y, n, p->w, n, 0, p->x, k);
    else
        dnnl_sgemm('T', 'N', k, n, m, 1, p->x, k, p->y, n, 0, p->w, n);
}
#endif

/* Its callers know that there is AVX-512. */
static void by_own(const struct shape *p)
{
    int m = p->rows, k = p->inner, n = p->columns;
    struct product product = {.rows = m, .columns = n, .inner = k, .stride = n};
    product.a = (struct matrix){p->x, k, false};
    product.b = (struct matrix){p->w, n, false};
    product.c = p->y;
    if (p->form == 'i')
        product = (struct product){.rows = m,
                                   .columns = k,
                                   .inner = n,
                                   .a = {p->y, n, false},
                                   .b = {p->w, n, true},
                                   .c = p->x,
                                   .stride = k};
    else if (p->form == 'w')
        product = (struct product){.rows = k,
                                   .columns = n,
                                   .inner = m,
                                   .a = {p->x, k, true},
                                   .b = {p->y, n, false},
                                   .c = p->w,
                                   .stride = n};
    product_by_avx512(&product);
}

static const struct {
    const char *name;
    void (*run)(const struct shape *product);
} libraries[] = {
#ifdef HAVE_ONEDNN
    {"onednn", by_onednn},
#endif
    {"openblas", by_openblas},
    {"own", by_own},
};

static void multiply(void *context)
{
    const struct shape *p = context;
    libraries[p->library].run(p);
}

double bench_product(int rows, int inner, int columns)
{
    double best = 0;
    struct shape p = {.rows = rows, .inner = inner, .columns = columns};
    p.x = measure_draw((size_t)rows * (size_t)inner, 0);
    p.w = measure_draw((size_t)inner * (size_t)columns, 1);
    p.y = measure_draw((size_t)rows * (size_t)columns, 2);
    size_t ways = sizeof libraries / sizeof *libraries - !processor_has_avx512();
    for (size_t library = 0; library < ways; library++)
        for (const char *form = "fiw"; *form; form++) {
            char name[64];
            p.library = library;
            p.form = *form;
            double rate = 2e-9 * rows * inner * columns / measure_shortest(multiply, &p);
            snprintf(name, sizeof name, "%s_%s_%dx%dx%d", libraries[library].name,
                     p.form == 'f'   ? "forward"
                     : p.form == 'i' ? "input"
                                     : "weight",
                     rows, inner, columns);
            measure_print(name, rate, "GFLOP/s");
            best = rate > best ? rate : best;
        }
    free(p.x);
    free(p.w);
    free(p.y);
    return best;
}
