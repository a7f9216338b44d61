/* subnormal.c - sets the processor's control bits; on a processor without them nothing changes. */
#include "worker/kernels/cpu/subnormal.h"

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
