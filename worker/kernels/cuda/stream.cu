/* stream.cu - struct accelerator over the CUDA runtime: device memory, streams and events; and
 * recordings as CUDA graphs, captured from a stream once, launched as a whole. */
#include "worker/kernels/cuda/stream.h"

#include "worker/kernels/cuda/cuda.h"
#include "worker/kernels/cuda/errors.h"

extern "C" {
#include "common/base/units.h"
}

#include <cassert>
#include <cerrno>
#include <utility>

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
    return errors_set(err, (int)status, cudaGetErrorName(status), cudaGetErrorString(status), what);
}

static int device_bind(int index, struct error *err)
{
    cudaError_t status = cudaSetDevice(index); /* from CUDA 12 on this creates the context */
    return status == cudaSuccess ? 0 : stream_words(err, status, "taking one of several devices");
}

static int device_bound(void)
{
    int index = 0;
    (void)cudaGetDevice(&index); /* an error here recurs in every other call, which reports it */
    return index;
}

static int memory_reserve(uint64_t bytes, void **out, struct error *err)
{
    cudaError_t status = cudaMalloc(out, bytes > 0 ? bytes : 1);
    if (status == cudaSuccess)
        return 0;
    size_t free_bytes = 0, whole_bytes = 0;
    (void)cudaGetLastError(); /* a failed allocation leaves the device usable */
    if (status != cudaErrorMemoryAllocation || cudaMemGetInfo(&free_bytes, &whole_bytes))
        return stream_words(err, status, "reserving memory");
    return errors_set_memory(err, bytes, free_bytes, whole_bytes);
}

static void memory_release(void *memory)
{
    cudaFree(memory);
}

static int memory_free(uint64_t *bytes, struct error *err)
{
    size_t free_bytes = 0, whole_bytes = 0;
    cudaError_t status = cudaMemGetInfo(&free_bytes, &whole_bytes);
    *bytes = free_bytes;
    return status == cudaSuccess ? 0 : stream_words(err, status, "asking for the free memory");
}

static int memory_pinned(cudaError_t status, uint64_t bytes, struct error *err)
{
    char size[32];
    if (status == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        return error_set(err, -ENOBUFS, "no %s of the host's memory can be pinned",
                         units_print_bytes(size, sizeof size, (double)bytes));
    }
    return status == cudaSuccess ? 0 : stream_words(err, status, "pinning memory of the host");
}

static int memory_pin(uint64_t bytes, void **out, struct error *err)
{
    return memory_pinned(cudaMallocHost(out, bytes > 0 ? bytes : 1), bytes, err);
}

static void memory_unpin(void *memory)
{
    cudaFreeHost(memory);
}

static int memory_register(void *memory, uint64_t bytes, struct error *err)
{
    return memory_pinned(cudaHostRegister(memory, bytes, cudaHostRegisterDefault), bytes, err);
}

static void memory_unregister(void *memory)
{
    cudaHostUnregister(memory);
}

static void stream_close_library(struct stream_library *library)
{
    if (library->close)
        library->close(library->state);
}

static void stream_close(struct device_stream *stream)
{
    if (!stream)
        return;
    if (stream->cuda)
        cudaStreamSynchronize(stream->cuda);
    stream_close_library(&stream->products);
    stream_close_library(&stream->attention);
    if (stream->handle)
        cublasLtDestroy(stream->handle);
    cudaFree(stream->scratch);
    cudaFree(stream->workspace);
    if (stream->cuda)
        cudaStreamDestroy(stream->cuda);
    delete stream;
}

/* The size of the workspace of libraries; 0 on failure. */
static int workspace_size(uint64_t *bytes, struct error *err)
{
    size_t free_bytes = 0, whole_bytes = 0;
    cudaError_t status = cudaMemGetInfo(&free_bytes, &whole_bytes);
    uint64_t share = whole_bytes / WORKSPACE_SHARE;
    *bytes = share < WORKSPACE_BYTES_MAX ? share : WORKSPACE_BYTES_MAX;
    return status == cudaSuccess ? 0 : stream_words(err, status, "asking for the memory");
}

static int libraries_size(uint64_t *bytes, struct error *err)
{
    int rc = workspace_size(bytes, err);
    *bytes += SCRATCH_BYTES;
    return rc;
}

/* What a computing stream needs: scratch, and a workspace and a handle for libraries. */
static int stream_equip(struct device_stream *stream, struct error *err)
{
    void *scratch = NULL;
    int rc = memory_reserve(SCRATCH_BYTES, &scratch, err);
    stream->scratch = (float *)scratch;
    if (rc == 0)
        rc = workspace_size(&stream->workspace_bytes, err);
    if (rc == 0)
        rc = memory_reserve(stream->workspace_bytes, &stream->workspace, err);
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
        rc = stream_equip(stream, err);
    if (rc < 0) {
        stream_close(stream);
        return rc;
    }
    *out = stream;
    return 0;
}

static void stream_enter(struct device_stream *stream)
{
    entered = stream;
}

static struct device_stream *stream_inside(void)
{
    return entered;
}

static void *stream_native(void)
{
    return entered->cuda;
}

static void stream_upload(void *device, const void *host, uint64_t bytes)
{
    if (bytes > 0)
        stream_note(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, entered->cuda),
                    "copying to the device");
}

static void stream_download(void *host, const void *device, uint64_t bytes)
{
    if (bytes > 0)
        stream_note(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, entered->cuda),
                    "copying from the device");
}

static void stream_move(void *destination, const void *source, uint64_t bytes)
{
    if (bytes > 0)
        stream_note(
            cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDeviceToDevice, entered->cuda),
            "copying inside the device");
}

static int stream_finish(struct error *err)
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

/* ---- recordings ---- */

struct device_recording {
    cudaGraphExec_t graph;
};

static cudaGraphExec_t recording_capture(struct device_stream *stream, void (*issue)(void *context),
                                         void *context)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t made = NULL;
    stream_note(cudaStreamBeginCapture(stream->cuda, cudaStreamCaptureModeThreadLocal),
                "beginning to record");
    if (stream->status)
        return NULL;
    issue(context);
    stream_note(cudaStreamEndCapture(stream->cuda, &graph), "recording");
    if (!stream->status)
        stream_note(cudaGraphInstantiateWithFlags(&made, graph, 0), "what was recorded");
    if (graph)
        cudaGraphDestroy(graph);
    return made;
}

/* Capturing does none of the work, so an error in it leaves the status of the stream as it was. */
static int recording_record(void (*issue)(void *context), void *context,
                            struct device_recording **out, struct error *err)
{
    struct device_stream *stream = stream_here();
    int status_before = std::exchange(stream->status, 0);
    const char *what_before = stream->what;
    cudaGraphExec_t graph = recording_capture(stream, issue, context);
    int status = std::exchange(stream->status, status_before);
    const char *what = std::exchange(stream->what, what_before);
    if (status) {
        (void)cudaGetLastError();
        return stream_words(err, (cudaError_t)status, what);
    }
    *out = new device_recording{graph};
    return 0;
}

static void recording_play(struct device_recording *recording)
{
    stream_note(cudaGraphLaunch(recording->graph, stream_here()->cuda), "work that was recorded");
}

static void recording_destroy(struct device_recording *recording)
{
    if (!recording)
        return;
    cudaGraphExecDestroy(recording->graph);
    delete recording;
}

const struct accelerator cuda_accelerator = {
    .bind = device_bind,
    .bound = device_bound,
    .reserve = memory_reserve,
    .release = memory_release,
    .free_bytes = memory_free,
    .libraries = libraries_size,
    .pin = memory_pin,
    .unpin = memory_unpin,
    .host_register = memory_register,
    .host_unregister = memory_unregister,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .enter = stream_enter,
    .inside = stream_inside,
    .native = stream_native,
    .upload = stream_upload,
    .download = stream_download,
    .move = stream_move,
    .reduce = cuda_reduce,
    .record = recording_record,
    .play = recording_play,
    .recording_destroy = recording_destroy,
    .finish = stream_finish,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_set = event_set,
    .event_await = event_await,
    .event_passed = event_passed,
};
