/* memory.cc - device memory, pinned host memory, and copies between them, which are checked to name
 * memory of the kind that they say. */
#include "tests/worker/kernels/emulated/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

/* Bytes; a process may be told that others have taken most of it. */
static uint64_t begin_limit()
{
    const char *left = getenv("EMULATED_MEMORY");
    return left ? strtoull(left, nullptr, 10) : UINT64_C(1) << 32;
}

uint64_t emulated_limit = begin_limit();

namespace
{

std::map<uintptr_t, size_t> reservations, pinned;
uint64_t reserved;

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

/* Would the process find something there? Where programs, stacks and mappings of Linux lie. */
bool is_address(uintptr_t word)
{
    static const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char there;
    return word >= UINT64_C(0x500000000000) && word < UINT64_C(0x800000000000) &&
           mincore((void *)(word / page * page), 1, &there) == 0;
}

} // namespace

bool emulated_has(const void *memory, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    return inside(reservations, memory, bytes);
}

void emulated_check_argument(const void *argument, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    for (size_t i = 0; i + sizeof(uintptr_t) <= bytes; i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, (const char *)argument + i, sizeof word);
        if (is_address(word) && !inside(reservations, (void *)word, 0) &&
            !inside(pinned, (void *)word, 0))
            die("a kernel is given an address that is neither the device's nor pinned");
    }
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    if (reserved + bytes > emulated_limit)
        return cudaErrorMemoryAllocation;
    void *memory = emulated_map(bytes);
    if (!memory)
        return cudaErrorMemoryAllocation;
    reservations[(uintptr_t)memory] = bytes;
    reserved += bytes;
    *out = memory;
    return cudaSuccess;
}

static void release(void *memory)
{
    auto found = reservations.find((uintptr_t)memory);
    if (found == reservations.end())
        die("what is freed is no reservation");
    reserved -= found->second;
    reservations.erase(found);
    emulated_unmap(memory);
}

/* Waits for the device, as the real one does; of nothing, for nothing. */
cudaError_t cudaFree(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    if (!memory)
        return cudaSuccess;
    emulated_finish_all();
    release(memory);
    return cudaSuccess;
}

/* There at once: a stream that uses it has nothing to wait for. */
cudaError_t cudaMallocAsync(void **out, size_t bytes, cudaStream_t)
{
    return cudaMalloc(out, bytes);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    emulated_issue(stream, [memory] { release(memory); });
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    *out = malloc(bytes);
    pinned[(uintptr_t)*out] = bytes;
    return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    pinned.erase((uintptr_t)memory);
    free(memory);
    return cudaSuccess;
}

/* It has to be mapped: the real one takes hold of every page. */
cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    if (bytes == 0)
        return cudaErrorInvalidValue;
    if (!pinned.emplace((uintptr_t)memory, bytes).second)
        die("memory of the host is registered twice");
    for (size_t i = 0; i < bytes; i += 4096)
        ((volatile char *)memory)[i] = ((volatile char *)memory)[i];
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    auto found = pinned.find((uintptr_t)memory);
    if (found == pinned.end())
        die("what is unregistered is no registered memory of the host");
    for (size_t i = 0; i < found->second; i += 4096)
        ((volatile char *)memory)[i] = ((volatile char *)memory)[i]; /* still mapped */
    pinned.erase(found);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *whole_bytes)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    *whole_bytes = emulated_limit;
    *free_bytes = emulated_limit - reserved;
    return cudaSuccess;
}

/* Pinned memory is read when the work is done. Other memory of the host is read at once; what is
 * written to it is waited for. */
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (!inside(reservations, to, bytes))
        die("what is set is no memory of the device, or leaves its reservation");
    emulated_issue(stream, [=] { memset(to, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    std::lock_guard<std::recursive_mutex> guard(emulated_lock);
    if (inside(reservations, to, bytes) != (kind != cudaMemcpyDeviceToHost) ||
        inside(reservations, from, bytes) != (kind != cudaMemcpyHostToDevice))
        die("a copy names memory of the host as the device's, or the other way round, or leaves "
            "its reservation");
    if (kind != cudaMemcpyDeviceToDevice && emulated_spoils())
        return cudaErrorStreamCaptureUnsupported;
    if (kind == cudaMemcpyHostToDevice && !inside(pinned, from, bytes)) {
        std::vector<char> taken((const char *)from, (const char *)from + bytes);
        emulated_issue(stream, [=] { memcpy(to, taken.data(), bytes); });
        return cudaSuccess;
    }
    emulated_issue(stream, [=] { memcpy(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToHost && !inside(pinned, to, bytes))
        emulated_finish(stream);
    return cudaSuccess;
}
