/* reservations.cc - device memory. Each reservation is a mapping of its own that ends at an
 * inaccessible page, and is itself accessible only while work of streams runs. So using a device
 * address as one of the host ends the process, with a message.
 *
 * Memory that was never written holds signalling NaNs, so that every use of it shows. Much is
 * reserved and little of it used, so it is mapped from one file full of them, over and over, and a
 * page costs something only when it is first touched. */
#include "tests/worker/kernels/emulated/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 256
#define PIECE_BYTES (size_t{8} << 20)

namespace
{

std::map<uintptr_t, size_t> mappings; /* without the page behind them */
int works; /* that the thread with the lock is in, one inside of the other */

[[noreturn]] void die(const char *words)
{
    fprintf(stderr, "emulated device: %s\n", words);
    abort();
}

/* Before a test forks, so that all its cases have the same one. -1: there is none. */
int make_piece()
{
    const uint32_t nothing = 0x7fa57fa5u; /* as f32 a signalling NaN, and its halves as bf16 */
    int file = memfd_create("emulated device", MFD_CLOEXEC);
    void *memory = MAP_FAILED;
    if (file >= 0 && ftruncate(file, PIECE_BYTES) == 0)
        memory = mmap(nullptr, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED)
        return -1;
    for (size_t i = 0; i < PIECE_BYTES; i += sizeof nothing)
        memcpy((char *)memory + i, &nothing, sizeof nothing);
    munmap(memory, PIECE_BYTES);
    return file;
}

const int piece = make_piece();

/* Of whole pages. */
bool map_nothing(char *at, size_t bytes)
{
    bool mapped = true;
    for (size_t i = 0; i < bytes && mapped; i += PIECE_BYTES)
        mapped = mmap(at + i, std::min(bytes - i, PIECE_BYTES), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, piece, 0) != MAP_FAILED;
    return mapped;
}

size_t up_to(size_t bytes, size_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

size_t page()
{
    static const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    return bytes;
}

void admit(int protection)
{
    for (const auto &mapping : mappings)
        if (mprotect((void *)mapping.first, mapping.second, protection) < 0)
            die("memory of the device cannot be shown or hidden");
}

/* Before the process ends by the signal. */
void tell(int, siginfo_t *fault, void *)
{
    static const char words[] =
        "emulated device: its memory is touched from outside of a kernel, or "
        "a kernel leaves its reservation\n";
    uintptr_t at = (uintptr_t)fault->si_addr;
    for (const auto &mapping : mappings)
        if (at >= mapping.first && at < mapping.first + mapping.second + page())
            (void)!write(STDERR_FILENO, words, sizeof words - 1);
}

void listen_to_faults()
{
    struct sigaction before, ours = {};
    ours.sa_sigaction = tell;
    ours.sa_flags = SA_SIGINFO | (int)SA_RESETHAND;
    sigaction(SIGSEGV, nullptr, &before);
    if (before.sa_handler == SIG_DFL)
        sigaction(SIGSEGV, &ours, nullptr);
}

} // namespace

/* The last byte, or what rounding leaves behind it, lies against the page that nobody touches. */
void *emulated_map(size_t bytes)
{
    listen_to_faults();
    size_t whole = up_to(bytes, ALIGNMENT), usable = up_to(whole, page());
    char *mapping = (char *)mmap(nullptr, usable + page(), PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        return nullptr;
    if (!map_nothing(mapping, usable)) {
        munmap(mapping, usable + page());
        return nullptr;
    }
    if (works == 0)
        mprotect(mapping, usable, PROT_NONE);
    mappings[(uintptr_t)mapping] = usable;
    return mapping + (usable - whole);
}

void emulated_unmap(void *memory)
{
    auto mapping = std::prev(mappings.upper_bound((uintptr_t)memory));
    munmap((void *)mapping->first, mapping->second + page());
    mappings.erase(mapping);
}

void emulated_begin_work()
{
    if (works++ == 0)
        admit(PROT_READ | PROT_WRITE);
}

void emulated_end_work()
{
    if (--works == 0)
        admit(PROT_NONE);
}

void emulated_wait(std::condition_variable_any &changed)
{
    int here = works;
    if (here > 0)
        admit(PROT_NONE);
    works = 0;
    changed.wait(emulated_lock);
    works = here; /* whoever had the lock meanwhile has left it as it was */
    if (here > 0)
        admit(PROT_READ | PROT_WRITE);
}
