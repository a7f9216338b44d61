/* runtime.cc - memory, streams and events: what is issued waits until it has to be done. */
#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

uint64_t emulated_limit = UINT64_C(1) << 32;

/* A place in a stream: so much of what was issued to it. */
struct emulated_event {
    emulated_stream *stream;
    uint64_t place;
    bool timed;
    float time_ms; /* of the stream, where it was recorded */
};

struct emulated_stream {
    std::deque<std::function<void()>> work;
    uint64_t done, issued;
    float spent_ms;
};

namespace
{

/* One thread of the host at a time is in here; kernels run under it. */
std::recursive_mutex lock;
std::map<uintptr_t, size_t> reservations, pinned;
std::set<emulated_stream *> streams;
uint64_t reserved;

void run_until(emulated_stream *stream, uint64_t place)
{
    while (stream->done < place) {
        std::function<void()> work = std::move(stream->work.front());
        stream->work.pop_front();
        stream->done++;
        work();
    }
}

[[noreturn]] void die(const char *words)
{
    fprintf(stderr, "emulated device: %s\n", words);
    abort();
}

bool inside(const std::map<uintptr_t, size_t> &all, const void *memory, size_t bytes)
{
    auto after = all.upper_bound((uintptr_t)memory);
    if (after == all.begin())
        return false;
    auto found = std::prev(after);
    return (uintptr_t)memory + bytes <= found->first + found->second;
}

} // namespace

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    *properties = {"emulated"};
    return cudaSuccess;
}

cudaError_t cudaPeekAtLastError(void)
{
    return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorName(cudaError_t status)
{
    return status == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorUnknown";
}

const char *cudaGetErrorString(cudaError_t)
{
    return "an error of the emulated device";
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    if (reserved + bytes > emulated_limit)
        return cudaErrorMemoryAllocation;
    if (posix_memalign(out, 256, bytes) != 0)
        return cudaErrorMemoryAllocation;
    const uint32_t nothing = 0x7fa57fa5u; /* as f32 a signalling NaN, and its halves as bf16 */
    for (size_t i = 0; i + sizeof nothing <= bytes; i += sizeof nothing)
        memcpy((char *)*out + i, &nothing, sizeof nothing);
    reservations[(uintptr_t)*out] = bytes;
    reserved += bytes;
    return cudaSuccess;
}

/* Waits for the device, as the real one does. */
cudaError_t cudaFree(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    for (emulated_stream *stream : streams)
        run_until(stream, stream->issued);
    if (!memory)
        return cudaSuccess;
    auto found = reservations.find((uintptr_t)memory);
    if (found == reservations.end())
        die("cudaFree of what is no reservation");
    reserved -= found->second;
    reservations.erase(found);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    *out = malloc(bytes);
    pinned[(uintptr_t)*out] = bytes;
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    pinned.erase((uintptr_t)memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *whole_bytes)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    *whole_bytes = emulated_limit;
    *free_bytes = emulated_limit - reserved;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    *out = new emulated_stream();
    streams.insert(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    run_until(stream, stream->issued);
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    run_until(stream, stream->issued);
    return cudaSuccess;
}

void emulated_issue(cudaStream_t stream, std::function<void()> work)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    stream->work.push_back(std::move(work));
    stream->issued++;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    *out = new emulated_event();
    (*out)->timed = flags == cudaEventDefault;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    if (event->timed)
        emulated_issue(stream, [=] { event->time_ms = stream->spent_ms; });
    event->stream = stream;
    event->place = stream->issued;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    run_until(event->stream, event->place);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *time_ms, cudaEvent_t begin, cudaEvent_t end)
{
    *time_ms = end->time_ms - begin->time_ms;
    return cudaSuccess;
}

void emulated_spend(cudaStream_t stream, float time_ms)
{
    stream->spent_ms += time_ms;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    emulated_event now = *event; /* what is recorded later is not waited for */
    if (now.stream)
        emulated_issue(stream, [now] {
            if (streams.count(now.stream))
                run_until(now.stream, now.place);
        });
    return cudaSuccess;
}

/* Pinned memory is read when the work is done. Other memory of the host is read at once; what is
 * written to it is waited for. */
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    if (!inside(reservations, to, bytes))
        die("what is set is no memory of the device, or leaves its reservation");
    emulated_issue(stream, [=] { memset(to, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    if (inside(reservations, to, bytes) != (kind != cudaMemcpyDeviceToHost) ||
        inside(reservations, from, bytes) != (kind != cudaMemcpyHostToDevice))
        die("a copy names memory of the host as the device's, or the other way round, or leaves "
            "its reservation");
    if (kind == cudaMemcpyHostToDevice && !inside(pinned, from, bytes)) {
        std::vector<char> taken((const char *)from, (const char *)from + bytes);
        emulated_issue(stream, [=] { memcpy(to, taken.data(), bytes); });
        return cudaSuccess;
    }
    emulated_issue(stream, [=] { memcpy(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToHost && !inside(pinned, to, bytes))
        run_until(stream, stream->issued);
    return cudaSuccess;
}
