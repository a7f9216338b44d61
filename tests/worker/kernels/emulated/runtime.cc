/* runtime.cc - memory, streams and events: what is issued waits until it has to be done. */
#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

uint64_t emulated_limit = UINT64_C(1) << 32;
int emulated_launches;

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
    int hasteners;
    bool running; /* some thread is at its first work, and may have let others go on */
};

namespace
{

/* One thread of the host at a time is in here; kernels run under it, once each. */
std::recursive_mutex lock;
std::condition_variable_any changed;
std::map<uintptr_t, size_t> reservations, pinned;
std::set<emulated_stream *> streams;
uint64_t reserved;

void run_until(emulated_stream *stream, uint64_t place)
{
    while (stream->done < place) {
        if (stream->running) {
            changed.wait(lock);
            continue;
        }
        std::function<void()> work = std::move(stream->work.front());
        stream->work.pop_front();
        stream->running = true;
        work();
        stream->running = false;
        stream->done++;
        changed.notify_all();
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

/* Device i has the UUID GPU-0000..i. */
static int last_digit(const char *uuid)
{
    size_t length = strlen(uuid);
    return length > 0 ? uuid[length - 1] - '0' : -1;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    const char *all = getenv("EMULATED_DEVICES"), *visible = getenv("CUDA_VISIBLE_DEVICES");
    *count = all ? atoi(all) : 1;
    if (visible)
        *count = last_digit(visible) >= 0 && last_digit(visible) < *count;
    return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int device)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    int index = visible ? last_digit(visible) : device;
    *out = cudaDeviceProp{};
    snprintf(out->name, sizeof out->name, "emulated device");
    out->uuid.bytes[15] = (char)index;
    out->pciBusID = 16 + index;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = 0;
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
    std::set<emulated_stream *> all = streams; /* others come and go meanwhile */
    for (emulated_stream *stream : all)
        if (streams.count(stream))
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
    while (stream->hasteners > 0)
        changed.wait(lock);
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

void emulated_await(const std::function<bool()> &holds)
{
    while (!holds())
        changed.wait(lock);
}

void emulated_hasten(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    uint64_t place = stream->issued;
    stream->hasteners++;
    std::thread([=] {
        std::lock_guard<std::recursive_mutex> inside(lock);
        run_until(stream, place);
        stream->hasteners--;
        changed.notify_all();
    }).detach();
}

void emulated_notify()
{
    changed.notify_all();
}

void emulated_change(const std::function<void()> &change)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    change();
    changed.notify_all();
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

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> guard(lock);
    bool under_way =
        event->stream && streams.count(event->stream) && event->stream->done < event->place;
    return under_way ? cudaErrorNotReady : cudaSuccess;
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
