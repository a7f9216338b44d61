/* rooms.cc - what a device's memory holds before anybody has written there: a signalling NaN, of
 * which every copy would be told.
 *
 * Much is reserved and little of it used. So a large room is mapped from one file that holds the
 * word, over and over: a page of it costs something when it is first touched. */
#include "tests/worker/kernels/emulated/runtime.h"

#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

namespace
{

constexpr uint32_t nothing = 0x7fa57fa5u; /* as f32 a signalling NaN, and its halves as bf16 */
constexpr size_t piece_bytes = size_t{1} << 20;

size_t whole_pieces(size_t bytes)
{
    return (bytes + piece_bytes - 1) / piece_bytes * piece_bytes;
}

void fill(void *memory, size_t bytes)
{
    for (size_t i = 0; i + sizeof nothing <= bytes; i += sizeof nothing)
        memcpy((char *)memory + i, &nothing, sizeof nothing);
}

/* Before a test forks, so that all its cases have the same one. -1: there is none. */
int make_piece()
{
    int file = memfd_create("emulated device", MFD_CLOEXEC);
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, piece_bytes) == 0)
        memory = mmap(nullptr, piece_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return -1;
    fill(memory, piece_bytes);
    munmap(memory, piece_bytes);
    return file;
}

const int piece = make_piece();

} // namespace

void *emulated_room_take(size_t bytes)
{
    if (bytes < piece_bytes) {
        void *memory;
        if (posix_memalign(&memory, 256, bytes) != 0)
            return nullptr;
        fill(memory, bytes);
        return memory;
    }
    size_t whole = whole_pieces(bytes);
    void *memory =
        mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (size_t at = 0; memory != MAP_FAILED && at < whole; at += piece_bytes)
        if (mmap((char *)memory + at, piece_bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, piece, 0) == MAP_FAILED) {
            munmap(memory, whole);
            memory = MAP_FAILED;
        }
    return memory == MAP_FAILED ? nullptr : memory;
}

void emulated_room_give(void *memory, size_t bytes)
{
    if (bytes < piece_bytes)
        free(memory);
    else
        munmap(memory, whole_pieces(bytes));
}
