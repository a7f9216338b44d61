/* cublasLt.cc - a textbook matrix product, as strict about its arguments as the library. */
#include "tests/worker/kernels/emulated/cublasLt.h"

#include "tests/worker/kernels/emulated/runtime.h"

extern "C" {
#include "common/base/element.h"
}

#include <set>
#include <tuple>

#define WORKSPACE 4096 /* bytes that are overwritten, to show if anything else uses them */

struct emulated_product {
    bool turn_a, turn_b, biased;
    const void *bias;
};

struct emulated_matrix {
    cudaDataType_t type;
    uint64_t rows, columns;
    int64_t apart;
};

struct emulated_preference {
    uint64_t workspace;
    uint32_t alignment;
};

struct emulated_handle {
};

int emulated_products, emulated_choices, emulated_loads;
bool emulated_refuses_bias;

size_t cublasLtGetVersion(void)
{
    return 1;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = new emulated_handle();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t,
                                        cudaDataType_t)
{
    *out = new emulated_product();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t product)
{
    delete product;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    bool address = attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER;
    uint32_t number = 0;
    if (size != (address ? sizeof(void *) : sizeof number))
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(address ? (void *)&product->bias : (void *)&number, value, size);
    if (attribute == CUBLASLT_MATMUL_DESC_TRANSA)
        product->turn_a = number == CUBLAS_OP_T;
    else if (attribute == CUBLASLT_MATMUL_DESC_TRANSB)
        product->turn_b = number == CUBLAS_OP_T;
    else if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE)
        product->biased = number == CUBLASLT_EPILOGUE_BIAS;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t columns, int64_t apart)
{
    *out = new emulated_matrix{type, rows, columns, apart};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t matrix)
{
    delete matrix;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = new emulated_preference{0, 256}; /* addresses count as aligned unless told otherwise */
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
{
    bool workspace = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (size != (workspace ? sizeof preference->workspace : sizeof preference->alignment))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return CUBLAS_STATUS_SUCCESS; /* sums are taken in double */
    if (workspace)
        memcpy(&preference->workspace, value, size);
    else
        memcpy(&preference->alignment, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* Whether the dims and types of the matrices fit together. */
static bool fits(const emulated_product *product, const emulated_matrix *a,
                 const emulated_matrix *b, const emulated_matrix *d)
{
    uint64_t rows = product->turn_a ? a->columns : a->rows;
    uint64_t inner = product->turn_a ? a->rows : a->columns;
    uint64_t b_inner = product->turn_b ? b->columns : b->rows;
    uint64_t columns = product->turn_b ? b->rows : b->columns;
    return rows == d->rows && columns == d->columns && inner == b_inner && rows && inner &&
           columns && a->type == b->type && (d->type == a->type || d->type == CUDA_R_32F) &&
           a->apart >= (int64_t)a->rows && b->apart >= (int64_t)b->rows &&
           d->apart >= (int64_t)d->rows;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int asked,
                                              cublasLtMatmulHeuristicResult_t *results, int *found)
{
    if (asked < 1 || !fits(product, a, b, d))
        return CUBLAS_STATUS_INVALID_VALUE;
    __atomic_fetch_add(&emulated_choices, 1, __ATOMIC_RELAXED);
    if (product->biased && emulated_refuses_bias)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *found = asked < EMULATED_WAYS ? asked : EMULATED_WAYS;
    for (int i = 0; i < *found; i++)
        results[i] = {{preference->alignment, (uint64_t)i, {}}, 0, CUBLAS_STATUS_SUCCESS};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t *algo,
                                       cublasLtMatmulHeuristicResult_t *result)
{
    if (!fits(product, a, b, d) || algo->way >= EMULATED_WAYS)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *result = {*algo, 0, CUBLAS_STATUS_SUCCESS};
    return CUBLAS_STATUS_SUCCESS;
}

static double number(const void *data, const emulated_matrix &matrix, uint64_t at)
{
    if (matrix.type == CUDA_R_16BF)
        return bf16_widen(((const uint16_t *)data)[at]);
    return ((const float *)data)[at];
}

static double element(const void *data, const emulated_matrix &matrix, bool turn, uint64_t row,
                      uint64_t column)
{
    return number(data, matrix,
                  turn ? column + row * (uint64_t)matrix.apart
                       : row + column * (uint64_t)matrix.apart);
}

static void leave(void *data, const emulated_matrix &matrix, uint64_t at, float value)
{
    if (matrix.type == CUDA_R_16BF)
        ((uint16_t *)data)[at] = bf16_narrow(value);
    else
        ((float *)data)[at] = value;
}

/* The bias of a row, which has d's type; its kernels load 16 bytes of it at once. */
static bool is_bias_there(const emulated_product *product, const emulated_matrix *d)
{
    return !product->biased ||
           ((uintptr_t)product->bias % 16 == 0 &&
            emulated_has(product->bias, d->rows * (d->type == CUDA_R_16BF ? 2 : 4)));
}

/* Whether all of the matrix, from its first to its last element, is in one reservation. */
static bool is_there(const void *data, const emulated_matrix *matrix)
{
    uint64_t last = (matrix->columns - 1) * (uint64_t)matrix->apart + matrix->rows;
    return emulated_has(data, last * (matrix->type == CUDA_R_16BF ? 2 : 4));
}

/* Code is loaded when it is first run, which waits for the device, as with the real library. Here
 * every product of other dims is other code, and so is adding to the result. */
static void load(uint64_t way, bool adds, const emulated_product &product, const emulated_matrix &a,
                 const emulated_matrix &d)
{
    static std::set<std::tuple<uint64_t, bool, bool, bool, bool, cudaDataType_t, cudaDataType_t,
                               uint64_t, uint64_t, uint64_t>>
        loaded;
    uint64_t inner = product.turn_a ? a.rows : a.columns;
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (!loaded
             .insert({way, adds, product.turn_a, product.turn_b, product.biased, a.type, d.type,
                      d.rows, inner, d.columns})
             .second)
        return;
    emulated_finish_all();
    emulated_loads++;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t workspace_bytes, cudaStream_t stream)
{
    size_t used = workspace_bytes < WORKSPACE ? workspace_bytes : WORKSPACE;
    uint64_t mask = algo->alignment - 1;
    if (!fits(product, a_layout, b_layout, d_layout) || ((uintptr_t)a & mask) ||
        ((uintptr_t)b & mask) || ((uintptr_t)d & mask) || !is_there(a, a_layout) ||
        !is_there(b, b_layout) || !is_there(d, d_layout) || !is_bias_there(product, d_layout) ||
        (uintptr_t)workspace % 256 != 0 || !emulated_has(workspace, workspace_bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    emulated_product p = *product;
    emulated_matrix am = *a_layout, bm = *b_layout, dm = *d_layout;
    float scale = *(const float *)alpha, keep = *(const float *)beta;
    uint64_t way = algo->way;
    load(way, keep != 0, p, am, dm);
    __atomic_fetch_add(&emulated_products, 1, __ATOMIC_RELAXED);
    emulated_issue(stream, [=] {
        emulated_spend(stream, (float)(EMULATED_WAYS - way));
        memset(workspace, 0xff, used);
        uint64_t inner = p.turn_a ? am.rows : am.columns;
        for (uint64_t column = 0; column < dm.columns; column++)
            for (uint64_t row = 0; row < dm.rows; row++) {
                double sum = way == EMULATED_ORDERLESS ? 0x1p30 : 0;
                for (uint64_t i = 0; i < inner; i++)
                    sum += element(a, am, p.turn_a, row, i) * element(b, bm, p.turn_b, i, column);
                sum -= way == EMULATED_ORDERLESS ? 0x1p30 : 0;
                uint64_t at = row + column * (uint64_t)dm.apart;
                double before = keep != 0 ? keep * number(c, dm, at) : 0;
                double bias = p.biased ? number(p.bias, dm, row) : 0;
                leave(d, dm, at, (float)(scale * sum + before + bias));
            }
    });
    return CUBLAS_STATUS_SUCCESS;
}
