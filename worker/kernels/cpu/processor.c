/* processor.c - detects the instruction sets, once per process; ranges on the OpenMP pool of the
 * calling thread; a block per thread, under a thread-specific key whose destructor frees it; and
 * the processor's control bits. */
#include "worker/kernels/cpu/processor.h"

#include "common/base/memory.h"

#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __x86_64__
#include <cpuid.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t detected = PTHREAD_ONCE_INIT;
static enum isa level;

static bool has_avx512_bf16(void)
{
    /* Leaf, subleaf, and bit of eax. */
    enum { FEATURES = 7, MORE_FEATURES = 1, AVX512_BF16 = 1 << 5 };
    unsigned a, b, c, d;
    return __get_cpuid_count(FEATURES, MORE_FEATURES, &a, &b, &c, &d) && (a & AVX512_BF16);
}

/* Linux grants the tile registers to a process on request (arch/x86/xstate.rst). */
static bool has_amx(void)
{
    enum { FEATURES = 7, BF16 = 1 << 22, TILES = 1 << 24 };         /* leaf, and bits of edx */
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 }; /* asm/prctl.h */
    unsigned a, b, c, d;
    if (!__get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) || !(d & BF16) || !(d & TILES))
        return false;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* The highest level that may be used. */
static enum isa find_limit(void)
{
    static const char *const names[] = {"avx2", "avx512", "avx512_bf16", "amx"};
    const char *most = getenv("GIMBAL_CPU_ISA");
    for (int isa = 0; most && isa <= ISA_AMX; isa++)
        if (strcmp(most, names[isa]) == 0)
            return (enum isa)isa;
    if (most)
        fprintf(stderr,
                "kernels: GIMBAL_CPU_ISA is '%s', not avx2, avx512, avx512_bf16 or amx; it is not "
                "heeded\n",
                most);
    return ISA_AMX;
}

static void detect(void)
{
    enum isa limit = find_limit();
    if (limit >= ISA_AVX512 && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        level = ISA_AVX512;
    if (limit >= ISA_AVX512_BF16 && level == ISA_AVX512 && has_avx512_bf16())
        level = ISA_AVX512_BF16;
    if (limit >= ISA_AMX && level == ISA_AVX512_BF16 && has_amx())
        level = ISA_AMX;
}

bool processor_has(enum isa isa)
{
    pthread_once(&detected, detect);
    return level >= isa;
}

bool processor_is_intel(void)
{
    return __builtin_cpu_is("intel");
}

#else

bool processor_has(enum isa isa)
{
    return isa == ISA_ANY;
}

bool processor_is_intel(void)
{
    return false;
}

#endif

int parallel_threads(void)
{
    return omp_in_parallel() ? 1 : omp_get_max_threads();
}

void parallel_set_threads(int count)
{
    omp_set_num_threads(count > 0 ? count : 1);
}

void parallel(int64_t count, int64_t grain, range_fn *body, const void *context)
{
    int64_t grains = (count + grain - 1) / grain;
    int threads = parallel_threads();
    if (threads > grains)
        threads = (int)grains;
    if (threads <= 1) {
        if (count > 0)
            body(context, 0, count);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int i = 0; i < threads; i++) {
        /* Libraries ask for this thread's number, and would start threads of their own. */
        omp_set_num_threads(1);
        int64_t first = grains * i / threads * grain, end = grains * (i + 1) / threads * grain;
        body(context, first, end < count ? end : count);
    }
}

#define LINE 64

static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static pthread_key_t scratch_key; /* the block in which the room lies */

static void scratch_begin(void)
{
    if (pthread_key_create(&scratch_key, free) != 0) {
        fputs("kernels: no key of threads is left\n", stderr);
        abort();
    }
}

void *scratch_find(void)
{
    pthread_once(&scratch_once, scratch_begin);
    char *block = pthread_getspecific(scratch_key);
    if (!block) {
        block = xcalloc(1, SCRATCH_BYTES + LINE);
        if (pthread_setspecific(scratch_key, block) != 0)
            abort();
    }
    return block + (LINE - (uintptr_t)block % LINE) % LINE;
}

#if defined __SSE__
#include <xmmintrin.h>

#define FLUSHES 0x8040u /* flush results (FTZ), and treat operands as zero (DAZ) */
#elif defined __aarch64__
#define FLUSHES (1ul << 24)
#endif

void subnormal_flush(void)
{
#if defined __SSE__
    _mm_setcsr(_mm_getcsr() | FLUSHES);
#elif defined __aarch64__
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    __asm__ volatile("msr fpcr, %0" : : "r"(control | FLUSHES));
#endif
}
