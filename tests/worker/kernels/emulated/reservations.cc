/* reservations.cc - memory of the device: each reservation is a mapping of its own, which ends at a
 * page that nobody may touch, and is there only while work of streams is done. So whoever takes an
 * address of the device for one of the host ends the process, in words. */
#include "tests/worker/kernels/emulated/runtime.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALIGNMENT 256

namespace
{

std::map<uintptr_t, size_t> mappings; /* without the page behind them */
int works; /* that the thread with the lock is in, one inside of the other */

[[noreturn]] void die(const char *words)
{
    fprintf(stderr, "emulated device: %s\n", words);
    abort();
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
    madvise(mapping, usable, MADV_HUGEPAGE); /* they are shown and hidden faster */
    if (mprotect(mapping, usable, PROT_READ | PROT_WRITE) < 0)
        die("memory of the device cannot be shown or hidden");
    const uint32_t nothing = 0x7fa57fa5u; /* as f32 a signalling NaN, and its halves as bf16 */
    for (size_t i = 0; i < usable; i += sizeof nothing)
        memcpy(mapping + i, &nothing, sizeof nothing);
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
