/* stream.cu - struct accelerator over the CUDA runtime: device memory, streams and events. */
#include "worker/kernels/cuda/stream.h"

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

struct device_event {
    cudaEvent_t event;
};

static thread_local device_stream *entered;

device_stream *stream_here(void)
{
    assert(entered);
    return entered;
}

void stream_note(cudaError_t status, const char *what)
{
    if (status == cudaSuccess || entered->status)
        return;
    entered->status = (int)status;
    entered->what = what;
}

/* The runtime's error is preferred, because it says more than the status of cuBLAS, which has a
 * single one for all failed launches. */
void stream_note(cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return;
    cudaError_t cause = cudaPeekAtLastError();
    stream_note(cause != cudaSuccess                    ? cause
                : status == CUBLAS_STATUS_ALLOC_FAILED  ? cudaErrorMemoryAllocation
                : status == CUBLAS_STATUS_NOT_SUPPORTED ? cudaErrorNotSupported
                                                        : cudaErrorUnknown,
                what);
}

int stream_words(struct error *err, cudaError_t status, const char *what)
{
    return words_set(err, (int)status, cudaGetErrorName(status), cudaGetErrorString(status), what);
}

static int bind_thread(int index, struct error *err)
{
    cudaError_t status = cudaSetDevice(index); /* from CUDA 12 on this creates the context */
    return status == cudaSuccess ? 0 : stream_words(err, status, "taking one of several devices");
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
        return stream_words(err, status, "reserving memory");
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
    return status == cudaSuccess ? 0 : stream_words(err, status, "asking for the free memory");
}

static int pinned(cudaError_t status, uint64_t bytes, struct error *err)
{
    char size[32];
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return error_set(err, -ENOBUFS, "no %s of the host's memory can be pinned",
                         units_print_bytes(size, sizeof size, (double)bytes));
    }
    return status == cudaSuccess ? 0 : stream_words(err, status, "pinning memory of the host");
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

static void stream_close(struct device_stream *stream)
{
    if (!stream)
        return;
    if (stream->cuda)
        cudaStreamSynchronize(stream->cuda);
    products_destroy(stream->products);
    flash_close(stream->flash);
    if (stream->handle)
        cublasLtDestroy(stream->handle);
    cudaFree(stream->scratch);
    cudaFree(stream->workspace);
    if (stream->cuda)
        cudaStreamDestroy(stream->cuda);
    delete stream;
}

/* The size of the workspace of libraries; 0 on failure. */
static int workspace(uint64_t *bytes, struct error *err)
{
    size_t free_bytes = 0, whole_bytes = 0;
    cudaError_t status = cudaMemGetInfo(&free_bytes, &whole_bytes);
    uint64_t share = whole_bytes / WORKSPACE_SHARE;
    *bytes = share < WORKSPACE_BYTES_MAX ? share : WORKSPACE_BYTES_MAX;
    return status == cudaSuccess ? 0 : stream_words(err, status, "asking for the memory");
}

static int libraries(uint64_t *bytes, struct error *err)
{
    int rc = workspace(bytes, err);
    *bytes += SCRATCH_BYTES;
    return rc;
}

/* What a computing stream needs: scratch, and a workspace and a handle for libraries. */
static int equip(struct device_stream *stream, struct error *err)
{
    void *scratch = NULL;
    int rc = reserve(SCRATCH_BYTES, &scratch, err);
    stream->scratch = (float *)scratch;
    if (rc == 0)
        rc = workspace(&stream->workspace_bytes, err);
    if (rc == 0)
        rc = reserve(stream->workspace_bytes, &stream->workspace, err);
    if (rc < 0)
        return error_prefix(err, rc, "memory for libraries");
    if (cublasLtCreate(&stream->handle) != CUBLAS_STATUS_SUCCESS)
        rc = error_set(err, -EIO, "cuBLASLt cannot be initialised");
    return rc;
}

static int stream_open(struct device_stream **out, bool computes, struct error *err)
{
    struct device_stream *stream = new struct device_stream();
    int rc = 0;
    cudaError_t status = cudaStreamCreateWithFlags(&stream->cuda, cudaStreamNonBlocking);
    if (status != cudaSuccess)
        rc = stream_words(err, status, "making a stream");
    if (rc == 0 && computes)
        rc = equip(stream, err);
    if (rc < 0) {
        stream_close(stream);
        return rc;
    }
    *out = stream;
    return 0;
}

static void enter(struct device_stream *stream)
{
    entered = stream;
}

static struct device_stream *inside(void)
{
    return entered;
}

static void *native(void)
{
    return entered->cuda;
}

static void upload(void *device, const void *host, uint64_t bytes)
{
    if (bytes > 0)
        stream_note(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, entered->cuda),
                    "copying to the device");
}

static void download(void *host, const void *device, uint64_t bytes)
{
    if (bytes > 0)
        stream_note(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, entered->cuda),
                    "copying from the device");
}

static void move(void *destination, const void *source, uint64_t bytes)
{
    if (bytes > 0)
        stream_note(
            cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, entered->cuda),
            "copying inside the device");
}

static int finish(struct error *err)
{
    stream_note(cudaStreamSynchronize(entered->cuda), "work that was issued before");
    if (!entered->status)
        return 0;
    return stream_words(err, (cudaError_t)entered->status, entered->what);
}

static int event_create(struct device_event **out, struct error *err)
{
    struct device_event *event = new struct device_event();
    cudaError_t status = cudaEventCreateWithFlags(&event->event, cudaEventDisableTiming);
    if (status != cudaSuccess) {
        delete event;
        return stream_words(err, status, "making an event");
    }
    *out = event;
    return 0;
}

static void event_destroy(struct device_event *event)
{
    if (!event)
        return;
    cudaEventDestroy(event->event);
    delete event;
}

static void event_set(struct device_event *event)
{
    stream_note(cudaEventRecord(event->event, entered->cuda), "setting an event");
}

static void event_await(struct device_event *event)
{
    stream_note(cudaStreamWaitEvent(entered->cuda, event->event, 0), "waiting for an event");
}

static bool event_passed(const struct device_event *event)
{
    if (cudaEventQuery(event->event) != cudaErrorNotReady)
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
    .stream_open = stream_open,
    .stream_close = stream_close,
    .enter = enter,
    .inside = inside,
    .native = native,
    .upload = upload,
    .download = download,
    .move = move,
    .reduce = cuda_reduce,
    .record = recording_record,
    .play = recording_play,
    .recording_destroy = recording_destroy,
    .finish = finish,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_set = event_set,
    .event_await = event_await,
    .event_passed = event_passed,
};
