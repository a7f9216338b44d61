/* processor.c - asked once in a process; see processor.h. */
#include "worker/kernels/cpu/processor.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool avx512, amx;

/* The registers of its tiles are Linux's to grant, to a process (arch/x86/xstate.rst). */
static bool find_amx(void)
{
    enum { FEATURES = 7, BF16 = 1 << 22, TILES = 1 << 24 };         /* in edx */
    enum { MORE_FEATURES = 1, AVX512_BF16 = 1 << 5 };               /* of leaf 7, in eax */
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 }; /* asm/prctl.h */
    unsigned a, b, c, d;
    if (!__get_cpuid_count(FEATURES, 0, &a, &b, &c, &d) || !(d & BF16) || !(d & TILES))
        return false;
    if (!__get_cpuid_count(FEATURES, MORE_FEATURES, &a, &b, &c, &d) || !(a & AVX512_BF16))
        return false;
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static void begin(void)
{
    const char *most = getenv("GIMBAL_CPU_ISA");
    avx512 = __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bw") && !(most && strcmp(most, "avx2") == 0);
    amx = avx512 && !most && find_amx();
}

bool processor_has_avx512(void)
{
    pthread_once(&once, begin);
    return avx512;
}

bool processor_has_amx(void)
{
    pthread_once(&once, begin);
    return amx;
}

#else

bool processor_has_avx512(void)
{
    return false;
}

bool processor_has_amx(void)
{
    return false;
}

#endif
