/* cuda_runtime.h - the part of the CUDA runtime that the kernels use, emulated on the host. The
 * same sources are compiled as C++, and run on machines without a device.
 *
 * The threads of a block are fibres of one host thread. Each runs until it has to wait for others;
 * they run in ascending order in one launch and in descending order in the next, so that a
 * dependence on the order shows. If threads diverge at a barrier, the process ends with a message.
 *
 * Streams are as late as they may be: work is done only when somebody waits for it, and of other
 * streams only what events require. So a result that is read too early, or work that does not wait
 * for its inputs, is wrong every time. Device memory initially holds signalling NaNs, and is
 * accessible only while work of streams runs. Copies, and memory that is passed to libraries, are
 * checked to lie within one reservation. */
#ifndef TESTS_WORKER_KERNELS_EMULATED_CUDA_RUNTIME_H
#define TESTS_WORKER_KERNELS_EMULATED_CUDA_RUNTIME_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __shared__ static thread_local /* a host thread runs one block after the other */

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

/* ---- in kernels ---- */

struct __attribute__((may_alias, aligned(16))) uint4 {
    unsigned x, y, z, w;
};

extern constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

/* A barrier of all threads of the block; returns whether the predicate held for any of them. */
bool emulated_meet_block(bool predicate);
/* A barrier of all lanes of the warp: each gives a value, and gets that of lane `from`. */
void emulated_meet_warp(const void *mine, size_t size, unsigned from, void *out);
unsigned emulated_lane(void);

inline void __syncthreads(void)
{
    emulated_meet_block(false);
}

inline int __syncthreads_or(int predicate)
{
    return emulated_meet_block(predicate != 0);
}

inline void __syncwarp(void)
{
    int nothing = 0;
    emulated_meet_warp(&nothing, sizeof nothing, emulated_lane(), &nothing);
}

template <typename Value> Value __shfl_sync(unsigned, Value value, int from)
{
    Value out;
    emulated_meet_warp(&value, sizeof value, (unsigned)from % 32, &out);
    return out;
}

template <typename Value> Value __shfl_xor_sync(unsigned mask, Value value, int apart)
{
    return __shfl_sync(mask, value, (int)(emulated_lane() ^ (unsigned)apart));
}

inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    unsigned votes = 0;
    for (int lane = 0; lane < 32; lane++)
        votes |= (unsigned)(__shfl_sync(mask, predicate != 0, lane) ? 1 : 0) << lane;
    return votes;
}

/* Less exact on a device. */
inline float __expf(float x)
{
    return expf(x);
}

inline float __fdividef(float x, float y)
{
    return x / y;
}

inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* ---- on the host ---- */

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorNotSupported = 801,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorUnknown = 999,
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
#define cudaStreamNonBlocking 1
#define cudaEventDefault 0
#define cudaEventDisableTiming 2

typedef struct emulated_stream *cudaStream_t;
typedef struct emulated_event *cudaEvent_t;

struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
};

/* There are EMULATED_DEVICES devices, or one if the variable is not set. CUDA_VISIBLE_DEVICES
 * names some of them, separated by commas; the list ends at the first that does not exist. It is
 * checked that streams and communicators are used on the device that they belong to; memory is
 * common to all devices. */
struct cudaUUID_t {
    char bytes[16];
};
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    int pciDomainID, pciBusID, pciDeviceID;
};
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetLastError(void);
const char *cudaGetErrorName(cudaError_t status);
const char *cudaGetErrorString(cudaError_t status);

/* Bytes of device memory: the variable EMULATED_MEMORY, otherwise 4 GiB; tests may change it. */
extern uint64_t emulated_limit;
cudaError_t cudaMalloc(void **out, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream);
cudaError_t cudaMallocHost(void **out, size_t bytes);
cudaError_t cudaFreeHost(void *memory);
constexpr unsigned cudaHostRegisterDefault = 0;
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void *memory);
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *whole_bytes);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
/* Emulated time: the sum of what emulated_spend() was told between the events. */
cudaError_t cudaEventElapsedTime(float *time_ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

/* Work that is issued to a stream while it captures is recorded, and not done. Calls that are not
 * allowed then make the capture fail: waiting, allocating, freeing, copies from or to the host, and
 * events. The next emulated_spoiled captures fail in any case. */
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
typedef struct emulated_graph *cudaGraph_t, *cudaGraphExec_t;
extern int emulated_spoiled;
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

/* Issue work to the stream; it is done when somebody waits for it. */
void emulated_issue(cudaStream_t stream, std::function<void()> work);
/* The device of the stream: the current one of the thread that created it. */
int emulated_device(cudaStream_t stream);
/* Called by work in the stream: it takes this much emulated time. */
void emulated_spend(cudaStream_t stream, float time_ms);
/* Called by work: let other threads run until this holds. Whoever changes what it depends on has to
 * call emulated_notify(). */
void emulated_await(const std::function<bool()> &holds);
void emulated_notify();
/* Do what was issued to the stream so far as soon as possible, in a thread of its own, because
 * others wait for it in ways that the emulation does not see. */
void emulated_hasten(cudaStream_t stream);
/* Called from outside of work: make such a change, under the lock, and notify. */
void emulated_change(const std::function<void()> &change);
/* Run a grid at once, on the calling thread. */
void emulated_run_grid(dim3 grid, dim3 block, const std::function<void()> &kernel);

/* Launches of kernels and graphs since the process began, without the kernels within graphs. */
extern int emulated_launches;
void emulated_count(cudaStream_t stream); /* count one, unless the stream captures */

/* Whether a device would accept such a launch from the calling thread; else the error. */
cudaError_t emulated_admit(const cudaLaunchConfig_t &config);
/* End the process if a word of the argument looks like the address of mapped memory that is neither
 * the device's nor pinned. */
void emulated_check_argument(const void *argument, size_t bytes);
/* Padding is cleared first, because it may contain parts of addresses by chance. */
template <typename Argument> void emulated_check(Argument argument)
{
    __builtin_clear_padding(&argument);
    emulated_check_argument(&argument, sizeof argument);
}
/* Whether the memory lies within one reservation. */
bool emulated_has(const void *memory, size_t bytes);

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                               Arguments &&...arguments)
{
    dim3 grid = config->gridDim, block = config->blockDim;
    cudaError_t status = emulated_admit(*config);
    if (status != cudaSuccess)
        return status;
    const std::tuple<Parameters...> given{Parameters(arguments)...};
    std::apply([](const auto &...each) { (emulated_check(each), ...); }, given);
    emulated_count(config->stream);
    emulated_issue(config->stream, [=] {
        emulated_run_grid(grid, block, [=] { kernel(Parameters(arguments)...); });
    });
    return cudaSuccess;
}

#endif
