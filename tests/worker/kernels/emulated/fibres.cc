/* fibres.cc - runs the threads of a block one after the other on one host thread.
 *
 * A fibre runs threads until one of them has to wait; then another fibre goes on with the next
 * thread. A kernel that never waits needs only one fibre. Once begun, fibres are switched directly,
 * without calls of the system or of a library: the compiler's builtins store three registers, and
 * the caller of __builtin_setjmp keeps all others on its stack. */
#include "tests/worker/kernels/emulated/cuda_runtime.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sys/mman.h>
#include <ucontext.h>
#include <vector>

namespace
{

constexpr unsigned warp = 32;
constexpr size_t stack_bytes = size_t{256} << 10; /* as the sanitizers need them */

/* Stacks end at different lines of the processor's caches, or those that are switched between would
 * drive each other out. */
constexpr size_t stack_colours = 128, stack_step_bytes = 576;

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

typedef void *place[5]; /* of __builtin_setjmp */

/* Mapped, since MALLOC_PERTURB_, which Meson sets, would touch every page of what malloc gives. */
struct stack {
    void *bottom = mmap(NULL, stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    stack() = default;
    stack(const stack &) = delete;
    ~stack()
    {
        if (bottom != MAP_FAILED)
            munmap(bottom, stack_bytes);
    }
};

struct fibre {
    place here;
    ucontext_t begin;
    struct stack stack;
    bool begun;
};

struct scheduler {
    place here;
    std::vector<std::unique_ptr<fibre>> fibres;
    std::vector<fibre *> idle;
    std::vector<thread> threads;
    std::vector<unsigned> at_warp; /* how many lanes of each warp wait for the others */
    size_t at_block;               /* how many threads wait at a barrier */
    size_t turn;                   /* how many had theirs since the last release */
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

bool release_block(void)
{
    std::vector<thread> &threads = ours->threads;
    if (ours->at_block == 0)
        return false;
    if (ours->at_block < threads.size())
        die("some threads of the block wait at __syncthreads, others have ended or wait elsewhere");
    bool any = false;
    for (const thread &thread : threads)
        any = any || thread.predicate;
    for (thread &thread : threads) {
        thread.predicate = any;
        thread.state = READY;
    }
    ours->at_block = 0;
    return true;
}

void take_along(const thread &to, const thread &from)
{
    if (to.size == sizeof(float))
        memcpy(to.out, from.mine, sizeof(float)); /* the compiler's own, for most */
    else
        memcpy(to.out, from.mine, to.size);
}

bool release_warps(void)
{
    std::vector<thread> &threads = ours->threads;
    bool released = false;
    for (size_t i = 0; i < ours->at_warp.size(); i++) {
        size_t first = i * warp,
               end = first + warp < threads.size() ? first + warp : threads.size();
        if (ours->at_warp[i] == 0)
            continue;
        if (ours->at_warp[i] < end - first)
            die("some lanes of a warp exchange values, others have ended or wait elsewhere");
        for (size_t lane = first; lane < end; lane++)
            take_along(threads[lane], threads[first + threads[lane].from]);
        for (size_t lane = first; lane < end; lane++)
            threads[lane].state = READY;
        ours->at_warp[i] = 0;
        released = true;
    }
    return released;
}

/* Whose turn it is: each of the block has one before any has another, in order or, at every second
 * launch, backwards. NULL: all have ended. */
thread *next_thread(void)
{
    size_t count = ours->threads.size();
    bool backwards = ours->launches % 2 == 1;
    do {
        while (ours->turn < count) {
            size_t i = ours->turn++;
            thread *next = &ours->threads[backwards ? count - 1 - i : i];
            if (next->state == READY)
                return next;
        }
        ours->turn = 0;
    } while (release_warps() || release_block());
    return nullptr;
}

void be(thread *thread)
{
    threadIdx.x = (unsigned)(thread - ours->threads.data());
    ours->running = thread;
}

/* Not to be inlined where a place is set, which may not be left for from there. */
[[noreturn]] __attribute__((noinline)) void jump(void **place)
{
    __builtin_longjmp(place, 1);
}

[[noreturn]] __attribute__((noinline)) void enter(fibre *fibre)
{
    if (fibre->begun)
        jump(fibre->here);
    fibre->begun = true;
    setcontext(&fibre->begin);
    die("its fibre cannot begin");
}

/* Back once somebody enters the fibre that is left. */
__attribute__((noinline)) void change_fibre(fibre *from, fibre *to)
{
    if (__builtin_setjmp(from->here) == 0)
        enter(to);
}

/* Threads that have not begun go on where one has ended. */
void fibre_main(void)
{
    fibre *self = ours->running->fibre;
    for (;;) {
        (*ours->kernel)();
        ours->running->state = ENDED;
        thread *next = next_thread();
        if (next && !next->fibre) {
            next->fibre = self;
            be(next);
            continue;
        }
        ours->idle.push_back(self);
        if (next)
            be(next);
        if (__builtin_setjmp(self->here) == 0) {
            if (!next)
                jump(ours->here);
            enter(next->fibre);
        }
    }
}

fibre *make_fibre(void)
{
    ours->fibres.push_back(std::make_unique<fibre>());
    fibre *fresh = ours->fibres.back().get();
    if (fresh->stack.bottom == MAP_FAILED)
        die("there is no memory for its stack");
    getcontext(&fresh->begin);
    fresh->begin.uc_stack.ss_sp = fresh->stack.bottom;
    fresh->begin.uc_stack.ss_size =
        stack_bytes - ours->fibres.size() % stack_colours * stack_step_bytes;
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

void wait_as(enum state state)
{
    thread *self = ours->running;
    self->state = state;
    thread *next = next_thread(); /* there is one, for this one has not ended */
    be(next);
    if (!next->fibre)
        next->fibre = take_fibre();
    if (next != self)
        change_fibre(self->fibre, next->fibre);
}

__attribute__((noinline)) void run_block(void)
{
    ours->turn = 0;
    thread *first = next_thread();
    be(first);
    first->fibre = take_fibre();
    if (__builtin_setjmp(ours->here) == 0)
        enter(first->fibre);
}

} // namespace

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

bool emulated_meet_block(bool predicate)
{
    ours->running->predicate = predicate;
    ours->at_block++;
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
    ours->at_warp[threadIdx.x / warp]++;
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
            ours->at_warp.assign((block.x + warp - 1) / warp, 0);
            ours->at_block = 0;
            run_block();
        }
}
