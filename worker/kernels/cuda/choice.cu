/* choice.cu - which of cuBLASLt's algorithms multiplies a shape: the fastest of those that give the
 * same bits as the library's first choice, which depends on shape and device only. So the bits of a
 * training do not depend on what was measured, where or when, and ranks need not agree on it.
 *
 * Algorithms are measured once, when a shape is prepared (product.cu), on numbers that it is given
 * for that. The result is kept for later processes in a file in $XDG_CACHE_HOME/gimbal or else
 * ~/.cache/gimbal, one for each kind of device and version of the library. The memory in which
 * results are compared is allocated beyond the program's reservation, and freed again. If there is
 * none, this process uses the first choice, and nothing is kept. */
#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/launch.h"
#include "worker/kernels/cuda/memo.h"
#include "worker/kernels/cuda/product.h"

extern "C" {
#include "common/base/file.h"
#include "common/base/hash.h"
#include "common/base/log.h"
}

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

namespace
{

#define ALGORITHMS 16
#define RUNS 4    /* measured together */
#define PARTS 512 /* blocks that compare, at most */
/* Floating-point operations; a smaller product takes no longer than a launch. */
#define WORTH (INT64_C(1) << 24)

static_assert(sizeof(cublasLtMatmulAlgo_t) == MEMO_VALUE_SIZE, "an algorithm is a memo's value");

/* ---- what earlier processes have measured ---- */

std::string memo_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        return std::string(cache) + "/gimbal";
    return home && home[0] == '/' ? std::string(home) + "/.cache/gimbal" : "";
}

/* The memo of this process, opened on first use and never closed; with memo_lock held. */
struct memo *memo_here(void)
{
    static struct memo *memo;
    struct error err = {};
    if (memo)
        return memo;
    cudaDeviceProp device = {};
    int index = 0;
    if (cudaGetDevice(&index) != cudaSuccess || cudaGetDeviceProperties(&device, index))
        (void)cudaGetLastError();
    std::string title =
        "gimbal products 3, cuBLASLt " + std::to_string(cublasLtGetVersion()) + ", " + device.name;
    std::string folder = memo_folder();
    std::string path = folder + "/products-" + std::to_string(hash_text(HASH_START, title.c_str()));
    bool kept = !folder.empty() && folder_make(folder.c_str(), &err) == 0;
    if (memo_open(kept ? path.c_str() : NULL, title.c_str(), &memo, &err) < 0)
        log_line(LOG_WARN, "products: %s", err.text);
    return memo;
}

std::mutex memo_lock;

std::string key_of(const struct shape &s)
{
    char text[MEMO_KEY_SIZE];
    snprintf(text, sizeof text, "%c%c%s %lldx%lldx%lld %lld %lld %zu>%zu %u",
             s.a_turned ? 't' : 'n', s.b_turned ? 't' : 'n', s.biased ? "+" : "", (long long)s.rows,
             (long long)s.inner, (long long)s.columns, (long long)s.a_apart, (long long)s.b_apart,
             element_size(s.from), element_size(s.to), s.aligned);
    return text;
}

/* Use the algorithm in the memo, if there is one and the library accepts it. */
bool choice_recall(const device_stream *stream, product *product)
{
    cublasLtMatmulAlgo_t algorithm;
    cublasLtMatmulHeuristicResult_t result = {};
    std::lock_guard<std::mutex> guard(memo_lock);
    if (!memo_find(memo_here(), key_of(product->shape).c_str(), &algorithm))
        return false;
    if (cublasLtMatmulAlgoCheck(stream->handle, product->operation, product->a, product->b,
                                product->d, product->d, &algorithm,
                                &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > stream_product_bytes(stream))
        return false;
    product->algorithm = algorithm;
    return true;
}

void remember(const product *product)
{
    std::lock_guard<std::mutex> guard(memo_lock);
    memo_add(memo_here(), key_of(product->shape).c_str(), &product->algorithm);
}

/* ---- measuring ---- */

/* How many 32-bit words differ between two results, and how many of the first are not 0. */
struct counts {
    float differ, told;
};

/* Writes one part for each warp of the grid. */
__global__ void compare(const uint32_t *first, const uint32_t *other, int64_t count,
                        struct counts *parts)
{
    struct counts sum = {0, 0};
    for (int64_t i = element_first(); i < count; i += element_step()) {
        sum.differ += first[i] != other[i];
        sum.told += first[i] != 0;
    }
    sum = {warp_sum(sum.differ), warp_sum(sum.told)};
    if (lane_of() == 0)
        parts[row_first()] = sum;
}

/* Memory for two results of a product, which are compared, and the events that time it. */
struct bench {
    struct device_stream *stream;
    const struct product *product;
    const void *a, *b;
    int64_t words;
    uint32_t *first, *other;
    cudaEvent_t begin, end;
};

void bench_close(struct bench *bench)
{
    for (uint32_t *memory : {bench->first, bench->other})
        if (memory && cudaFreeAsync(memory, bench->stream->cuda) != cudaSuccess)
            (void)cudaGetLastError();
    if (bench->begin)
        cudaEventDestroy(bench->begin);
    if (bench->end)
        cudaEventDestroy(bench->end);
}

/* Memory is allocated and freed in stream order. A call that waits for the whole device would also
 * wait for messages in other streams, and their receivers may be waiting in the same way. */
bool bench_open(struct bench *bench)
{
    const struct shape &s = bench->product->shape;
    size_t bytes = ((size_t)(s.rows * s.columns) * element_size(s.to) + 3) / 4 * 4;
    cudaStream_t native = bench->stream->cuda;
    bench->words = (int64_t)(bytes / 4);
    if (cudaMallocAsync((void **)&bench->first, bytes, native) == cudaSuccess &&
        cudaMallocAsync((void **)&bench->other, bytes, native) == cudaSuccess &&
        cudaEventCreateWithFlags(&bench->begin, cudaEventDefault) == cudaSuccess &&
        cudaEventCreateWithFlags(&bench->end, cudaEventDefault) == cudaSuccess &&
        cudaMemsetAsync(bench->first, 0, bytes, native) == cudaSuccess &&
        cudaMemsetAsync(bench->other, 0, bytes, native) == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* a failed reservation leaves the device well */
    return false;
}

bool run(const struct bench *bench, const cublasLtMatmulAlgo_t *algorithm, uint32_t *result)
{
    return product_run(bench->stream, bench->product, algorithm, bench->a, bench->b, result,
                       false) == CUBLAS_STATUS_SUCCESS;
}

/* Whether both results have the same bits. Zeros prove nothing: more than half of the words must
 * differ from 0. */
bool same_bits(const struct bench *bench)
{
    static thread_local struct counts parts[PARTS * WARPS];
    unsigned blocks = blocks_of(bench->words, THREADS);
    blocks = blocks < PARTS ? blocks : PARTS;
    struct counts *there = (struct counts *)(void *)bench->stream->scratch;
    launch_blocks("comparing", compare, dim3(blocks), bench->first, bench->other, bench->words,
                  there);
    stream_note(cudaMemcpyAsync(parts, there, blocks * WARPS * sizeof *parts,
                                cudaMemcpyDeviceToHost, bench->stream->cuda),
                "comparing");
    stream_note(cudaStreamSynchronize(bench->stream->cuda), "comparing");
    double differ = 0, told = 0;
    for (unsigned i = 0; i < blocks * WARPS; i++) {
        differ += parts[i].differ;
        told += parts[i].told;
    }
    return differ == 0 && told > (double)bench->words / 2;
}

/* The time of RUNS products in milliseconds; INFINITY if it cannot be measured. */
float measure(const struct bench *bench, const cublasLtMatmulAlgo_t *algorithm)
{
    float time_ms = 0;
    bool runs = cudaEventRecord(bench->begin, bench->stream->cuda) == cudaSuccess;
    for (int i = 0; i < RUNS && runs; i++)
        runs = run(bench, algorithm, bench->other);
    runs = runs && cudaEventRecord(bench->end, bench->stream->cuda) == cudaSuccess &&
           cudaEventSynchronize(bench->end) == cudaSuccess &&
           cudaEventElapsedTime(&time_ms, bench->begin, bench->end) == cudaSuccess;
    return runs ? time_ms : INFINITY;
}

/* Choose from the library's list the fastest algorithm that gives the bits of the first, and keep
 * it in the memo. */
void take_fastest(const struct bench *bench, product *product,
                  const cublasLtMatmulHeuristicResult_t *results, int count)
{
    float best = INFINITY;
    if (!run(bench, &results[0].algo, bench->first))
        return;
    for (int i = 0; i < count; i++) {
        const cublasLtMatmulAlgo_t *algorithm = &results[i].algo;
        if (results[i].state != CUBLAS_STATUS_SUCCESS || !run(bench, algorithm, bench->other) ||
            !same_bits(bench))
            continue;
        float time = measure(bench, algorithm);
        if (time < best)
            product->algorithm = *algorithm;
        best = time < best ? time : best;
    }
    if (best < INFINITY)
        remember(product);
}

/* Get the library's list of algorithms for a shape, the one that it expects to be the fastest
 * first. */
cublasStatus_t choice_ask(const device_stream *stream, const product *product,
                          cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasLtMatmulPreference_t preference;
    size_t workspace = stream_product_bytes(stream);
    /* Partial sums are added in f32, not in the type that the result is rounded to. */
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    status = cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace);
    for (cublasLtMatmulPreferenceAttributes_t alignment : alignments)
        if (status == CUBLAS_STATUS_SUCCESS)
            status = cublasLtMatmulPreferenceSetAttribute(
                preference, alignment, &product->shape.aligned, sizeof product->shape.aligned);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = cublasLtMatmulAlgoGetHeuristic(stream->handle, product->operation, product->a,
                                                product->b, product->d, product->d, preference,
                                                ALGORITHMS, results, found);
    cublasLtMatmulPreferenceDestroy(preference);
    return status == CUBLAS_STATUS_SUCCESS && *found < 1 ? CUBLAS_STATUS_NOT_SUPPORTED : status;
}

} // namespace

cublasStatus_t choice_make(device_stream *stream, product *product, const void *a, const void *b)
{
    const struct shape &s = product->shape;
    cublasLtMatmulHeuristicResult_t results[ALGORITHMS] = {};
    int found = 0;
    cublasStatus_t status = choice_ask(stream, product, results, &found);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    product->algorithm = results[0].algo;
    if (found == 1 || 2 * s.rows * s.inner * s.columns < WORTH || choice_recall(stream, product))
        return status;
    struct bench bench = {stream, product, a, b, 0, NULL, NULL, NULL, NULL};
    if (bench_open(&bench))
        take_fastest(&bench, product, results, found);
    bench_close(&bench);
    return status;
}
