/* lane.cu - struct accelerator over the CUDA runtime: device memory, streams and events. */
#include "worker/kernels/cuda/lane.h"

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/flash.h"
#include "worker/kernels/cuda/product.h"
#include "worker/kernels/cuda/tape.h"
#include "worker/kernels/cuda/words.h"

extern "C" {
#include "common/base/units.h"
}

#include <cassert>
#include <cerrno>

struct mark {
    cudaEvent_t event;
};

static thread_local lane *entered;

lane *lane_here(void)
{
    assert(entered);
    return entered;
}

void lane_note(cudaError_t status, const char *what)
{
    if (status == cudaSuccess || entered->status)
        return;
    entered->status = (int)status;
    entered->what = what;
}

/* The runtime's error is preferred, because it says more than the status of cuBLAS, which has a
 * single one for all failed launches. */
void lane_note(cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    cudaError_t cause = cudaPeekAtLastError();
    lane_note(cause != cudaSuccess                    ? cause
              : status == CUBLAS_STATUS_ALLOC_FAILED  ? cudaErrorMemoryAllocation
              : status == CUBLAS_STATUS_NOT_SUPPORTED ? cudaErrorNotSupported
                                                      : cudaErrorUnknown,
              what);
}

int lane_words(struct error *err, cudaError_t status, const char *what)
{
    return words_set(err, (int)status, cudaGetErrorName(status), cudaGetErrorString(status), what);
}

static int bind_thread(int index, struct error *err)
{
    cudaError_t status = cudaSetDevice(index); /* from CUDA 12 on this creates the context */
    return status == cudaSuccess ? 0 : lane_words(err, status, "taking one of several devices");
}

static int bound(void)
{
    int index = 0;
    (void)cudaGetDevice(&index); /* an error here recurs in every other call, which reports it */
    return index;
}

static int reserve(uint64_t bytes, void **out, struct error *err)
{
    cudaError_t status = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (status == cudaSuccess)
        return 0;
    size_t free_bytes = 0, whole_bytes = 0;
    (void)cudaGetLastError(); /* a failed allocation leaves the device usable */
    if (status != cudaErrorMemoryAllocation || cudaMemGetInfo(&free_bytes, &whole_bytes))
        return lane_words(err, status, "reserving memory");
    return words_set_memory(err, bytes, free_bytes, whole_bytes);
}

static void release(void *memory)
{
    cudaFree(memory);
}

static int room(uint64_t *bytes, struct error *err)
{
    size_t free_bytes = 0, whole_bytes = 0;
    cudaError_t status = cudaMemGetInfo(&free_bytes, &whole_bytes);
    *bytes = free_bytes;
    return status == cudaSuccess ? 0 : lane_words(err, status, "asking for the free memory");
}

static int pinned(cudaError_t status, uint64_t bytes, struct error *err)
{
    char size[32];
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return error_set(err, -ENOBUFS, "no %s of the host's memory can be pinned",
                         units_print_bytes(size, sizeof size, (double)bytes));
    }
    return status == cudaSuccess ? 0 : lane_words(err, status, "pinning memory of the host");
}

static int pin(uint64_t bytes, void **out, struct error *err)
{
    return pinned(cudaMallocHost(out, bytes > 0 ? bytes : 1), bytes, err);
}

static void unpin(void *memory)
{
    cudaFreeHost(memory);
}

static int host_register(void *memory, uint64_t bytes, struct error *err)
{
    return pinned(cudaHostRegister(memory, bytes, cudaHostRegisterDefault), bytes, err);
}

static void host_unregister(void *memory)
{
    cudaHostUnregister(memory);
}

static void lane_close(struct lane *lane)
{
    if (!lane)
        return;
    if (lane->stream)
        cudaStreamSynchronize(lane->stream);
    products_destroy(lane->products);
    flash_close(lane->flash);
    if (lane->handle)
        cublasLtDestroy(lane->handle);
    cudaFree(lane->scratch);
    cudaFree(lane->workspace);
    if (lane->stream)
        cudaStreamDestroy(lane->stream);
    delete lane;
}

/* The size of the workspace of libraries; 0 on failure. */
static int workspace(uint64_t *bytes, struct error *err)
{
    size_t free_bytes = 0, whole_bytes = 0;
    cudaError_t status = cudaMemGetInfo(&free_bytes, &whole_bytes);
    uint64_t share = whole_bytes / WORKSPACE_SHARE;
    *bytes = share < WORKSPACE_BYTES_MAX ? share : WORKSPACE_BYTES_MAX;
    return status == cudaSuccess ? 0 : lane_words(err, status, "asking for the memory");
}

static int libraries(uint64_t *bytes, struct error *err)
{
    int rc = workspace(bytes, err);
    *bytes += SCRATCH_BYTES;
    return rc;
}

/* What a computing lane needs: scratch, and a workspace and a handle for libraries. */
static int equip(struct lane *lane, struct error *err)
{
    void *scratch = NULL;
    int rc = reserve(SCRATCH_BYTES, &scratch, err);
    lane->scratch = (float *)scratch;
    if (rc == 0)
        rc = workspace(&lane->workspace_bytes, err);
    if (rc == 0)
        rc = reserve(lane->workspace_bytes, &lane->workspace, err);
    if (rc < 0)
        return error_prefix(err, rc, "memory for libraries");
    if (cublasLtCreate(&lane->handle) != CUBLAS_STATUS_SUCCESS)
        rc = error_set(err, -EIO, "cuBLASLt cannot be initialised");
    return rc;
}

static int lane_open(struct lane **out, bool computes, struct error *err)
{
    struct lane *lane = new struct lane();
    int rc = 0;
    cudaError_t status = cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking);
    if (status != cudaSuccess)
        rc = lane_words(err, status, "making a stream");
    if (rc == 0 && computes)
        rc = equip(lane, err);
    if (rc < 0) {
        lane_close(lane);
        return rc;
    }
    *out = lane;
    return 0;
}

static void enter(struct lane *lane)
{
    entered = lane;
}

static struct lane *inside(void)
{
    return entered;
}

static void *native(void)
{
    return entered->stream;
}

static void upload(void *device, const void *host, uint64_t bytes)
{
    if (bytes > 0)
        lane_note(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, entered->stream),
                  "copying to the device");
}

static void download(void *host, const void *device, uint64_t bytes)
{
    if (bytes > 0)
        lane_note(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, entered->stream),
                  "copying from the device");
}

static void move(void *destination, const void *source, uint64_t bytes)
{
    if (bytes > 0)
        lane_note(
            cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, entered->stream),
            "copying inside the device");
}

static int finish(struct error *err)
{
    lane_note(cudaStreamSynchronize(entered->stream), "work that was issued before");
    if (!entered->status)
        return 0;
    return lane_words(err, (cudaError_t)entered->status, entered->what);
}

static int mark_create(struct mark **out, struct error *err)
{
    struct mark *mark = new struct mark();
    cudaError_t status = cudaEventCreateWithFlags(&mark->event, cudaEventDisableTiming);
    if (status != cudaSuccess) {
        delete mark;
        return lane_words(err, status, "making an event");
    }
    *out = mark;
    return 0;
}

static void mark_destroy(struct mark *mark)
{
    if (!mark)
        return;
    cudaEventDestroy(mark->event);
    delete mark;
}

static void mark_set(struct mark *mark)
{
    lane_note(cudaEventRecord(mark->event, entered->stream), "setting a mark");
}

static void mark_await(struct mark *mark)
{
    lane_note(cudaStreamWaitEvent(entered->stream, mark->event, 0), "waiting for a mark");
}

static bool mark_passed(const struct mark *mark)
{
    if (cudaEventQuery(mark->event) != cudaErrorNotReady)
        return true;
    (void)cudaGetLastError(); /* it is kept like an error, but is none */
    return false;
}

const struct accelerator cuda_accelerator = {
    .bind = bind_thread,
    .bound = bound,
    .reserve = reserve,
    .release = release,
    .room = room,
    .libraries = libraries,
    .pin = pin,
    .unpin = unpin,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .lane_open = lane_open,
    .lane_close = lane_close,
    .enter = enter,
    .inside = inside,
    .native = native,
    .upload = upload,
    .download = download,
    .move = move,
    .reduce = cuda_reduce,
    .record = tape_record,
    .play = tape_play,
    .tape_destroy = tape_destroy,
    .finish = finish,
    .mark_create = mark_create,
    .mark_destroy = mark_destroy,
    .mark_set = mark_set,
    .mark_await = mark_await,
    .mark_passed = mark_passed,
};
