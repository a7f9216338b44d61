/* fibres.cc - the threads of a block, one after the other on one thread of the host.
 *
 * A fibre runs threads until one of them has to wait; then another fibre goes on with the next
 * thread. A kernel that never waits needs one. Once begun, fibres are switched without a call of
 * the system. */
#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <setjmp.h>
#include <ucontext.h>
#include <vector>

namespace
{

constexpr unsigned warp = 32;
constexpr size_t stack_bytes = size_t{256} << 10; /* as the sanitizers need them */

enum state { READY, AT_BLOCK, AT_WARP, ENDED };

struct thread {
    enum state state;
    struct fibre *fibre; /* NULL: not begun */
    bool predicate;      /* what it brings to a barrier; what it takes along */
    const void *mine;
    size_t size;
    unsigned from;
    void *out;
};

struct fibre {
    jmp_buf here;
    ucontext_t begin;
    std::unique_ptr<char[]> stack;
    bool begun;
};

struct scheduler {
    jmp_buf here;
    std::vector<std::unique_ptr<fibre>> fibres;
    std::vector<fibre *> idle;
    std::vector<thread> threads;
    const std::function<void()> *kernel;
    thread *running;
    uint64_t launches;
};

thread_local scheduler *ours;

struct owner { /* ends with the thread of the host */
    ~owner()
    {
        delete ours;
    }
};

[[noreturn]] void die(const char *words)
{
    fprintf(stderr, "emulated kernel, block (%u, %u), thread %u: %s\n", blockIdx.x, blockIdx.y,
            threadIdx.x, words);
    abort();
}

__attribute__((noinline)) void leave_fibre(fibre *fibre)
{
    if (_setjmp(fibre->here) == 0)
        _longjmp(ours->here, 1);
}

void fibre_main(void)
{
    fibre *self = ours->running->fibre;
    for (;;) {
        (*ours->kernel)();
        ours->running->state = ENDED;
        ours->idle.push_back(self);
        leave_fibre(self);
    }
}

__attribute__((noinline)) void enter_fibre(fibre *fibre)
{
    if (_setjmp(ours->here) != 0)
        return;
    if (fibre->begun)
        _longjmp(fibre->here, 1);
    fibre->begun = true;
    setcontext(&fibre->begin);
}

fibre *make_fibre(void)
{
    ours->fibres.push_back(std::make_unique<fibre>());
    fibre *fresh = ours->fibres.back().get();
    fresh->stack.reset(new char[stack_bytes]);
    getcontext(&fresh->begin);
    fresh->begin.uc_stack.ss_sp = fresh->stack.get();
    fresh->begin.uc_stack.ss_size = stack_bytes;
    makecontext(&fresh->begin, fibre_main, 0);
    return fresh;
}

fibre *take_fibre(void)
{
    if (ours->idle.empty())
        return make_fibre();
    fibre *idle = ours->idle.back();
    ours->idle.pop_back();
    return idle;
}

void run_thread(thread *thread)
{
    threadIdx.x = (unsigned)(thread - ours->threads.data());
    ours->running = thread;
    if (!thread->fibre)
        thread->fibre = take_fibre();
    enter_fibre(thread->fibre);
}

void wait_as(enum state state)
{
    thread *self = ours->running;
    self->state = state;
    leave_fibre(self->fibre);
}

/* How many of [first, end) wait so. */
unsigned count(size_t first, size_t end, enum state state)
{
    unsigned found = 0;
    for (size_t i = first; i < end; i++)
        found += ours->threads[i].state == state;
    return found;
}

bool release_block(void)
{
    std::vector<thread> &threads = ours->threads;
    unsigned waiting = count(0, threads.size(), AT_BLOCK);
    if (waiting == 0)
        return false;
    if (waiting < threads.size())
        die("some threads of the block wait at __syncthreads, others have ended or wait elsewhere");
    bool any = false;
    for (const thread &thread : threads)
        any = any || thread.predicate;
    for (thread &thread : threads) {
        thread.predicate = any;
        thread.state = READY;
    }
    return true;
}

bool release_warps(void)
{
    std::vector<thread> &threads = ours->threads;
    bool released = false;
    for (size_t first = 0; first < threads.size(); first += warp) {
        size_t end = first + warp < threads.size() ? first + warp : threads.size();
        unsigned waiting = count(first, end, AT_WARP);
        if (waiting == 0)
            continue;
        if (waiting < end - first)
            die("some lanes of a warp exchange values, others have ended or wait elsewhere");
        for (size_t i = first; i < end; i++)
            memcpy(threads[i].out, threads[first + threads[i].from].mine, threads[i].size);
        for (size_t i = first; i < end; i++)
            threads[i].state = READY;
        released = true;
    }
    return released;
}

void run_block(void)
{
    size_t count_all = ours->threads.size();
    bool backwards = ours->launches % 2 == 1;
    do
        for (size_t i = 0; i < count_all; i++) {
            thread *thread = &ours->threads[backwards ? count_all - 1 - i : i];
            if (thread->state == READY)
                run_thread(thread);
        }
    while (release_warps() || release_block());
}

} // namespace

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

bool emulated_meet_block(bool predicate)
{
    ours->running->predicate = predicate;
    wait_as(AT_BLOCK);
    return ours->running->predicate;
}

void emulated_meet_warp(const void *mine, size_t size, unsigned from, void *out)
{
    thread *self = ours->running;
    self->mine = mine;
    self->size = size;
    self->from = from;
    self->out = out;
    wait_as(AT_WARP);
}

unsigned emulated_lane(void)
{
    return threadIdx.x % warp;
}

void emulated_run_grid(dim3 grid, dim3 block, const std::function<void()> &kernel)
{
    static thread_local owner owner;
    (void)owner;
    if (!ours)
        ours = new scheduler();
    ours->kernel = &kernel;
    ours->launches++;
    blockDim = block;
    gridDim = grid;
    for (unsigned y = 0; y < grid.y; y++)
        for (unsigned x = 0; x < grid.x; x++) {
            blockIdx = dim3(x, y);
            ours->threads.assign(block.x, thread());
            run_block();
        }
}
