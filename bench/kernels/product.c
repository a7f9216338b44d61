/* product.c - measures matrix products by our own kernels and by the libraries. The rules in
 * cpu/product.c, which chooses between them, rest on these figures. */
#include "worker/kernels/cpu/product.h"
#include "bench/kernels/measure.h"
#include "bench/kernels/parts.h"
#include "common/base/memory.h"

#include <cblas.h>
#ifdef HAVE_ONEDNN
#include <dnnl.h>
#endif
#include <stdio.h>
#include <stdlib.h>

/* False: there is no such way on this machine. */
typedef bool way_fn(const struct product *product);

static bool by_openblas(const struct product *p)
{
    cblas_sgemm(CblasRowMajor, p->a.transposed ? CblasTrans : CblasNoTrans,
                p->b.transposed ? CblasTrans : CblasNoTrans, (int)p->rows, (int)p->columns,
                (int)p->inner, 1, p->a.data, (int)p->a.stride, p->b.data, (int)p->b.stride, 0, p->c,
                (int)p->stride);
    return true;
}

#ifdef HAVE_ONEDNN
static bool by_onednn(const struct product *p)
{
    return dnnl_sgemm(p->a.transposed ? 'T' : 'N', p->b.transposed ? 'T' : 'N', p->rows, p->columns,
                      p->inner, 1, p->a.data, p->a.stride, p->b.data, p->b.stride, 0, p->c,
                      p->stride) == dnnl_success;
}
#endif

static bool by_own(const struct product *p)
{
    return product_by_amx(p) || product_by_avx512(p);
}

static bool by_tiles(const struct product *p)
{
    product_by_tiles(p);
    return true;
}

static const struct {
    const char *name;
    way_fn *run[ELEMENTS]; /* NULL: none for such numbers */
} ways[] = {
#ifdef HAVE_ONEDNN
    {"onednn", {by_onednn, product_by_onednn}},
#endif
    {"openblas", {by_openblas, NULL}},
    {"tiles", {NULL, by_tiles}},
    {"own", {by_own, by_own}},
};

#define WAYS (sizeof ways / sizeof *ways)

/* Of a linear layer: x (rows, inner), w (inner, columns), y (rows, columns). */
struct layer {
    int rows, inner, columns;
    void *x, *w, *y, *dw;
};

enum form { FORWARD_FORM, INPUT_FORM, WEIGHT_FORM, FORMS };

static struct product product_of(const struct layer *l, enum form form, enum element element)
{
    struct matrix x = {l->x, l->inner, false}, w = {l->w, l->columns, false};
    struct matrix dy = {l->y, l->columns, false};
    struct product product = {.rows = l->rows, .columns = l->columns, .inner = l->inner};
    product.element = product.result = element;
    product.stride = l->columns;
    product.a = x;
    product.b = w;
    product.c = l->y;
    if (form == INPUT_FORM) {
        product.columns = product.stride = l->inner;
        product.inner = l->columns;
        product.a = dy;
        product.b = w;
        product.b.transposed = true;
        product.c = l->x;
    } else if (form == WEIGHT_FORM) {
        product.rows = l->inner;
        product.inner = l->rows;
        product.a = x;
        product.a.transposed = true;
        product.b = dy;
        product.c = l->dw;
        product.result = ELEMENT_F32; /* gradients are summed in it */
    }
    return product;
}

struct work {
    way_fn *run;
    struct product product;
};

static void multiply(void *context)
{
    const struct work *work = context;
    work->run(&work->product);
}

static void print_rate(const struct layer *l, enum element element, enum form form, size_t way,
                       double rate)
{
    static const char *const forms[FORMS] = {"forward", "input", "weight"};
    char name[96];
    snprintf(name, sizeof name, "%s%s_%s_%dx%dx%d", ways[way].name,
             element == ELEMENT_F32 ? "" : "_bf16", forms[form], l->rows, l->inner, l->columns);
    measure_print(name, rate, "GFLOP/s");
}

/* The rate of each way, in turns; returns the best. */
static double compare(const struct layer *l, enum element element, enum form form)
{
    struct work works[WAYS];
    void *contexts[WAYS];
    double seconds[WAYS], best = 0;
    size_t which[WAYS], count = 0;
    for (size_t way = 0; way < WAYS; way++) {
        struct work work = {ways[way].run[element], product_of(l, form, element)};
        if (!work.run || !work.run(&work.product))
            continue;
        works[count] = work;
        contexts[count] = &works[count];
        which[count++] = way;
    }
    measure_in_turns(multiply, contexts, count, seconds);
    for (size_t i = 0; i < count; i++) {
        double rate = 2e-9 * l->rows * l->inner * l->columns / seconds[i];
        print_rate(l, element, form, which[i], rate);
        best = rate > best ? rate : best;
    }
    return best;
}

double bench_product(int rows, int inner, int columns, enum element element)
{
    struct layer l = {.rows = rows, .inner = inner, .columns = columns};
    l.x = measure_draw((size_t)rows * (size_t)inner, element, 0);
    l.w = measure_draw((size_t)inner * (size_t)columns, element, 1);
    l.y = measure_draw((size_t)rows * (size_t)columns, element, 2);
    l.dw = measure_draw((size_t)inner * (size_t)columns, ELEMENT_F32, 3);
    double best = 0;
    for (enum form form = 0; form < FORMS; form++) {
        double rate = compare(&l, element, form);
        best = rate > best ? rate : best;
    }
    free(l.x);
    free(l.w);
    free(l.y);
    free(l.dw);
    return best;
}
