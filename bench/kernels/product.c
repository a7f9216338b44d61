/* product.c - both libraries' matrix products, on which the rule in cpu/sgemm.c rests. */
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"

#include <cblas.h>
#ifdef HAVE_ONEDNN
#include <dnnl.h>
#endif
#include <stdio.h>
#include <stdlib.h>

struct product {
    int rows, inner, columns;
    char form; /* f: x w, i: dy w', w: x' dy */
    size_t library;
    float *x, *w, *y;
};

static void by_openblas(const struct product *p)
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
static void by_onednn(const struct product *p)
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

static const struct {
    const char *name;
    void (*run)(const struct product *product);
} libraries[] = {
#ifdef HAVE_ONEDNN
    {"onednn", by_onednn},
#endif
    {"openblas", by_openblas},
};

static void multiply(void *context)
{
    const struct product *p = context;
    libraries[p->library].run(p);
}

double bench_product(int rows, int inner, int columns)
{
    double best = 0;
    struct product p = {.rows = rows, .inner = inner, .columns = columns};
    p.x = measure_draw((size_t)rows * (size_t)inner, 0);
    p.w = measure_draw((size_t)inner * (size_t)columns, 1);
    p.y = measure_draw((size_t)rows * (size_t)columns, 2);
    for (size_t library = 0; library < sizeof libraries / sizeof *libraries; library++)
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
