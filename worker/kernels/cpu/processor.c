/* processor.c - detects the instruction sets, once per process. */
#include "worker/kernels/cpu/processor.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static enum isa found;

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

static void begin(void)
{
    enum isa limit = find_limit();
    if (limit >= ISA_AVX512 && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        found = ISA_AVX512;
    if (limit >= ISA_AVX512_BF16 && found == ISA_AVX512 && has_avx512_bf16())
        found = ISA_AVX512_BF16;
    if (limit >= ISA_AMX && found == ISA_AVX512_BF16 && has_amx())
        found = ISA_AMX;
}

bool processor_has(enum isa isa)
{
    pthread_once(&once, begin);
    return found >= isa;
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
