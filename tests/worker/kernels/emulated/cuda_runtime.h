/* cuda_runtime.h - as much of the CUDA runtime as the kernels need, on the host: the same sources
 * are compiled as C++, and run where there is no device.
 *
 * A block's threads are fibres of one thread. They run one after the other until they have to wait
 * for each other, in one order in one launch and in the other in the next, so that what depends
 * on an order shows. Threads that part at a barrier end the process in words.
 *
 * Streams are as late as they may be: what is issued is done when somebody waits for it, and of
 * other streams only what events say has to be done before. So what is read too early, or does not
 * wait for what it needs, is wrong every time. Memory of the device holds signalling NaN at first,
 * and is there for kernels only; copies to it, and what libraries are given of it, are checked to
 * begin and end inside of one reservation. */
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
#define __shared__ static thread_local /* blocks run one after the other */

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z)
    {
    }
};

/* ---- of a thread ---- */

extern constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

/* All threads of the block; returns whether the predicate held for any of them. */
bool emulated_meet_block(bool predicate);
/* All lanes of the warp: each leaves a value and takes that of another. */
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

inline int __popc(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* ---- of the host ---- */

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

/* As many devices as EMULATED_DEVICES says, else one, of which CUDA_VISIBLE_DEVICES may name some,
 * with commas between them: those behind one that is not there are not seen. What a stream and a
 * communicator belong to is checked; memory is one for all. */
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

/* As much memory as a test says: emulated_limit. */
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
/* Of the time that work says it takes: emulated_spend. */
cudaError_t cudaEventElapsedTime(float *time_ms, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);

/* What a stream is given while it captures is kept, not done. What may not be then, spoils it: to
 * wait, to reserve, to free, to copy from or to the host, events. The next `emulated_spoiled`
 * captures are spoiled in any case. */
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

/* Work for the stream, done when somebody waits for it. */
void emulated_issue(cudaStream_t stream, std::function<void()> work);
/* The one that was the calling thread's when it made the stream. */
int emulated_device(cudaStream_t stream);
/* By the work at hand. */
void emulated_spend(cudaStream_t stream, float time_ms);
/* From such work: let others run until this holds; who changes what it looks at, notifies. */
void emulated_await(const std::function<bool()> &holds);
void emulated_notify();
/* What was issued to the stream so far is done as soon as it can be: others wait for it of whom
 * this process does not know. */
void emulated_hasten(cudaStream_t stream);
/* From elsewhere: change it. */
void emulated_change(const std::function<void()> &change);
/* Now, on the calling thread. */
void emulated_run_grid(dim3 grid, dim3 block, const std::function<void()> &kernel);

/* Of kernels and of graphs, since the process began; those that a graph launches are not counted.
 */
extern int emulated_launches;
void emulated_count(cudaStream_t stream);

/* Whether a device would take such a launch from the calling thread. */
cudaError_t emulated_admit(const cudaLaunchConfig_t &config);
/* What looks like an address has to be one of the device's, or of pinned memory. */
void emulated_check_argument(const void *argument, size_t bytes);
/* Padding may hold the half of one by chance. */
template <typename Argument> void emulated_check(Argument argument)
{
    __builtin_clear_padding(&argument);
    emulated_check_argument(&argument, sizeof argument);
}
/* Is all of it in one reservation? */
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
