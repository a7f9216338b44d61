/* onednn.c - products of bf16 by oneDNN, which uses AMX: those that amx.c does not take. It is not
 * used with AVX-512 BF16 alone: limited to that, the same Xeon reaches 115 GFLOP/s, while tiles
 * reach 130 to 180; avx512.c takes those.
 *
 * GFLOP/s of one core of an Intel Xeon with AMX, oneDNN 2.6.3, (rows x inner) (inner x columns):
 *     2048 x 384x384   384x1152   384x1536   1536x384     f32 there: 64 to 174
 *               1355       1358       1302       1121
 * The gradient of an input takes 1203, of a weight 638 to 680 (it is transposed first), attention's
 * small products 470 to 800.
 *
 * Creating a primitive takes 0.3 to 2 ms. Each thread keeps its primitives, by the shape of the
 * product, because the library's scratch memory belongs to the thread that created them. The slot
 * of a shape is given by a hash; of two shapes with the same slot, the later one replaces the
 * other. */
#include "common/base/memory.h"
#include "worker/kernels/cpu/processor.h"
#include "worker/kernels/cpu/product.h"

#include <dnnl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 1024

/* Everything that a primitive depends on, besides addresses. */
enum { ROWS, COLUMNS, INNER, A_STRIDE, B_STRIDE, STRIDE, WAY, THREADS, FIGURES };

enum { A, B, BIAS, C, MATRICES };

struct slot {
    int64_t shape[FIGURES];
    dnnl_primitive_t primitive; /* NULL: empty, or the library cannot create it */
    dnnl_memory_t memory[MATRICES];
};

/* What one thread keeps. */
struct primitives {
    dnnl_stream_t stream;
    struct slot slots[SLOTS];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;    /* thread's struct primitives */
static dnnl_engine_t engine; /* NULL: the machine has no AMX */

static void onednn_empty_slot(struct slot *slot)
{
    dnnl_primitive_destroy(slot->primitive);
    for (int i = 0; i < MATRICES; i++)
        dnnl_memory_destroy(slot->memory[i]);
    *slot = (struct slot){0};
}

static void onednn_forget(void *context)
{
    struct primitives *primitives = context;
    for (int i = 0; i < SLOTS; i++)
        onednn_empty_slot(&primitives->slots[i]);
    dnnl_stream_destroy(primitives->stream);
    free(primitives);
}

static void onednn_begin(void)
{
    bool multiplies = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
                      dnnl_cpu_isa_avx512_core_amx;
    if (!multiplies || pthread_key_create(&key, onednn_forget) != 0)
        return;
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

/* The calling thread's; NULL: it cannot be created. */
static struct primitives *onednn_find(void)
{
    struct primitives *primitives = pthread_getspecific(key);
    if (primitives)
        return primitives;
    primitives = xcalloc(1, sizeof *primitives);
    if (dnnl_stream_create(&primitives->stream, engine, dnnl_stream_default_flags) !=
            dnnl_success ||
        pthread_setspecific(key, primitives) != 0) {
        dnnl_stream_destroy(primitives->stream);
        free(primitives);
        return NULL;
    }
    return primitives;
}

static void shape_of(const struct product *p, int64_t shape[FIGURES])
{
    const int64_t figures[FIGURES] = {
        [ROWS] = p->rows,
        [COLUMNS] = p->columns,
        [INNER] = p->inner,
        [A_STRIDE] = p->a.stride,
        [B_STRIDE] = p->b.stride,
        [STRIDE] = p->stride,
        [WAY] = p->a.transposed | p->b.transposed << 1 | p->add << 2 | (p->bias != NULL) << 3 |
                (p->result == ELEMENT_F32) << 4,
        [THREADS] = parallel_threads(),
    };
    memcpy(shape, figures, sizeof figures);
}

static struct slot *slot_of(struct primitives *primitives, const int64_t shape[FIGURES])
{
    uint64_t hash = 0;
    for (int i = 0; i < FIGURES; i++)
        hash = (hash ^ (uint64_t)shape[i]) * 0x9e3779b97f4a7c15u;
    return &primitives->slots[(hash >> 32) % SLOTS];
}

#if DNNL_VERSION_MAJOR < 3

static bool onednn_describe(struct slot *slot, int matrix, const dnnl_dims_t dims,
                            const dnnl_dims_t strides, dnnl_data_type_t type)
{
    dnnl_memory_desc_t md;
    return dnnl_memory_desc_init_by_strides(&md, 2, dims, type, strides) == dnnl_success &&
           dnnl_memory_create(&slot->memory[matrix], &md, engine, NULL) == dnnl_success;
}

static const dnnl_memory_desc_t *description(const struct slot *slot, int matrix)
{
    const dnnl_memory_desc_t *md = NULL;
    if (slot->memory[matrix])
        dnnl_memory_get_memory_desc(slot->memory[matrix], &md);
    return md;
}

static bool onednn_make(const struct slot *slot, const_dnnl_primitive_attr_t attributes,
                        dnnl_primitive_desc_t *out)
{
    dnnl_matmul_desc_t matmul;
    return dnnl_matmul_desc_init(&matmul, description(slot, A), description(slot, B),
                                 description(slot, BIAS), description(slot, C)) == dnnl_success &&
           dnnl_primitive_desc_create(out, &matmul, attributes, engine, NULL) == dnnl_success;
}

static bool append_sum(dnnl_post_ops_t steps)
{
    return dnnl_post_ops_append_sum(steps, 1) == dnnl_success;
}

#else

static bool onednn_describe(struct slot *slot, int matrix, const dnnl_dims_t dims,
                            const dnnl_dims_t strides, dnnl_data_type_t type)
{
    dnnl_memory_desc_t md = NULL;
    bool done = dnnl_memory_desc_create_with_strides(&md, 2, dims, type, strides) == dnnl_success &&
                dnnl_memory_create(&slot->memory[matrix], md, engine, NULL) == dnnl_success;
    dnnl_memory_desc_destroy(md);
    return done;
}

static const_dnnl_memory_desc_t description(const struct slot *slot, int matrix)
{
    const_dnnl_memory_desc_t md = NULL;
    if (slot->memory[matrix])
        dnnl_memory_get_memory_desc(slot->memory[matrix], &md);
    return md;
}

static bool onednn_make(const struct slot *slot, const_dnnl_primitive_attr_t attributes,
                        dnnl_primitive_desc_t *out)
{
    return dnnl_matmul_primitive_desc_create(out, engine, description(slot, A),
                                             description(slot, B), description(slot, BIAS),
                                             description(slot, C), attributes) == dnnl_success;
}

static bool append_sum(dnnl_post_ops_t steps)
{
    return dnnl_post_ops_append_sum(steps, 1, 0, dnnl_data_type_undef) == dnnl_success;
}

#endif

static bool describe_matrix(struct slot *slot, int which, int64_t rows, int64_t columns,
                            int64_t stride, bool transposed, dnnl_data_type_t type)
{
    const dnnl_dims_t dims = {rows, columns};
    const dnnl_dims_t strides = {transposed ? 1 : stride, transposed ? stride : 1};
    return onednn_describe(slot, which, dims, strides, type);
}

static bool describe_all(struct slot *slot, const struct product *p)
{
    return describe_matrix(slot, A, p->rows, p->inner, p->a.stride, p->a.transposed, dnnl_bf16) &&
           describe_matrix(slot, B, p->inner, p->columns, p->b.stride, p->b.transposed,
                           dnnl_bf16) &&
           (!p->bias || describe_matrix(slot, BIAS, 1, p->columns, p->columns, false, dnnl_bf16)) &&
           describe_matrix(slot, C, p->rows, p->columns, p->stride, false,
                           p->result == ELEMENT_F32 ? dnnl_f32 : dnnl_bf16);
}

/* Fill an empty slot. It stays empty if the library cannot do this product. */
static void fill_slot(struct slot *slot, const struct product *product)
{
    dnnl_primitive_attr_t attributes = NULL;
    dnnl_post_ops_t steps = NULL;
    dnnl_primitive_desc_t description = NULL;
    bool made =
        describe_all(slot, product) && dnnl_primitive_attr_create(&attributes) == dnnl_success &&
        dnnl_post_ops_create(&steps) == dnnl_success && (!product->add || append_sum(steps)) &&
        dnnl_primitive_attr_set_post_ops(attributes, steps) == dnnl_success &&
        onednn_make(slot, attributes, &description) &&
        dnnl_primitive_create(&slot->primitive, description) == dnnl_success;
    dnnl_primitive_desc_destroy(description);
    dnnl_post_ops_destroy(steps);
    dnnl_primitive_attr_destroy(attributes);
    if (!made)
        onednn_empty_slot(slot);
}

static bool execute(const struct primitives *primitives, const struct slot *slot,
                    const struct product *p)
{
    static const int arguments[MATRICES] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS,
                                            DNNL_ARG_DST};
    const void *const data[MATRICES] = {p->a.data, p->b.data, p->bias, p->c};
    dnnl_exec_arg_t given[MATRICES];
    int count = 0;
    for (int i = 0; i < MATRICES; i++) {
        if (!slot->memory[i])
            continue;
        /* Nothing but c is written to. */
        if (dnnl_memory_set_data_handle(slot->memory[i], (void *)data[i]) != dnnl_success)
            return false;
        given[count++] = (dnnl_exec_arg_t){arguments[i], slot->memory[i]};
    }
    return dnnl_primitive_execute(slot->primitive, primitives->stream, count, given) ==
           dnnl_success;
}

bool product_by_onednn(const struct product *product)
{
    pthread_once(&once, onednn_begin);
    struct primitives *primitives = engine ? onednn_find() : NULL;
    if (!primitives)
        return false;
    int64_t shape[FIGURES];
    shape_of(product, shape);
    struct slot *slot = slot_of(primitives, shape);
    if (!slot->primitive || memcmp(slot->shape, shape, sizeof shape) != 0) {
        onednn_empty_slot(slot);
        fill_slot(slot, product);
        memcpy(slot->shape, shape, sizeof shape);
    }
    return slot->primitive && execute(primitives, slot, product);
}
