/* streams.cc - streams and events: issued work is queued until somebody waits for it. */
#include "tests/worker/kernels/emulated/runtime.h"

#include <deque>
#include <set>
#include <thread>

int emulated_launches;
std::recursive_mutex emulated_lock;

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
    int device;
    bool running; /* some thread is at its first work, and may have let others go on */
};

namespace
{

std::condition_variable_any changed;
std::set<emulated_stream *> streams;

struct working {
    working()
    {
        emulated_begin_work();
    }
    ~working()
    {
        emulated_end_work();
    }
};

void run_until(emulated_stream *stream, uint64_t place)
{
    if (stream->done >= place)
        return;
    working here;
    while (stream->done < place) {
        if (stream->running) {
            emulated_wait(changed);
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

} // namespace

void emulated_finish(cudaStream_t stream)
{
    run_until(stream, stream->issued);
}

void emulated_finish_all()
{
    std::set<emulated_stream *> all = streams; /* others come and go meanwhile */
    for (emulated_stream *stream : all)
        if (streams.count(stream))
            run_until(stream, stream->issued);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    *out = new emulated_stream();
    cudaGetDevice(&(*out)->device);
    streams.insert(*out);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    run_until(stream, stream->issued);
    while (stream->hasteners > 0)
        emulated_wait(changed);
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    run_until(stream, stream->issued);
    return cudaSuccess;
}

void emulated_count(cudaStream_t stream)
{
    if (!emulated_captures(stream))
        __atomic_fetch_add(&emulated_launches, 1, __ATOMIC_RELAXED);
}

cudaError_t emulated_admit(const cudaLaunchConfig_t &config)
{
    const dim3 &grid = config.gridDim, &block = config.blockDim;
    int current = 0;
    cudaGetDevice(&current);
    if (config.stream->device != current)
        return cudaErrorInvalidResourceHandle;
    bool launches = grid.x > 0 && grid.x <= 0x7fffffffu && grid.y > 0 && grid.y <= 65535 &&
                    grid.z == 1 && block.x > 0 && block.x <= 1024 && block.y == 1 && block.z == 1;
    return launches ? cudaSuccess : cudaErrorInvalidConfiguration;
}

void emulated_issue(cudaStream_t stream, std::function<void()> work)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_keep(stream, work))
        return;
    stream->work.push_back(std::move(work));
    stream->issued++;
}

void emulated_await(const std::function<bool()> &holds)
{
    while (!holds())
        emulated_wait(changed);
}

void emulated_hasten(cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    uint64_t place = stream->issued;
    stream->hasteners++;
    std::thread([=] {
        std::lock_guard<std::recursive_mutex> inside(emulated_lock);
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
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
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
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    if (event->timed)
        emulated_issue(stream, [=] { event->time_ms = stream->spent_ms; });
    event->stream = stream;
    event->place = stream->issued;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    run_until(event->stream, event->place);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *time_ms, cudaEvent_t begin, cudaEvent_t end)
{
    *time_ms = end->time_ms - begin->time_ms;
    return cudaSuccess;
}

int emulated_device(cudaStream_t stream)
{
    return stream->device;
}

void emulated_spend(cudaStream_t stream, float time_ms)
{
    stream->spent_ms += time_ms;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    bool under_way =
        event->stream && streams.count(event->stream) && event->stream->done < event->place;
    return under_way ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    emulated_event now = *event; /* what is recorded later is not waited for */
    if (now.stream)
        emulated_issue(stream, [now] {
            if (streams.count(now.stream))
                run_until(now.stream, now.place);
        });
    return cudaSuccess;
}
