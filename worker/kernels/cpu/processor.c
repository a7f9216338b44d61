/* processor.c - asked once in a process; see processor.h. */
#include "worker/kernels/cpu/processor.h"

#ifdef __x86_64__
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool avx512;

static void begin(void)
{
    const char *most = getenv("GIMBAL_CPU_ISA");
    avx512 = __builtin_cpu_is("intel") && __builtin_cpu_supports("avx512vl") &&
             __builtin_cpu_supports("avx512bw") && !(most && strcmp(most, "avx2") == 0);
}

bool processor_has_avx512(void)
{
    pthread_once(&once, begin);
    return avx512;
}

#else

bool processor_has_avx512(void)
{
    return false;
}

#endif
