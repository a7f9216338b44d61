/* numbers.h - loops over numbers that are all f32 or all bf16, and compute in f32.
 *
 * A loop is written once, for an element that it is given. Whoever is called inlines it once with
 * each as a constant, so that both become vector code. */
#ifndef WORKER_KERNELS_CPU_NUMBERS_H
#define WORKER_KERNELS_CPU_NUMBERS_H

#include "common/base/element.h"
#include "worker/kernels/cpu/parallel.h"

#define INLINED static inline __attribute__((always_inline))

/* Number i. */
INLINED float load(const void *data, enum element element, int64_t i)
{
    return element == ELEMENT_F32 ? ((const float *)data)[i]
                                  : bf16_widen(((const uint16_t *)data)[i]);
}

INLINED void store(void *data, enum element element, int64_t i, float value)
{
    if (element == ELEMENT_F32)
        ((float *)data)[i] = value;
    else
        ((uint16_t *)data)[i] = bf16_narrow(value);
}

/* The numbers from number i on. */
INLINED void *from_number(const void *data, enum element element, int64_t i)
{
    return (char *)data + i * (int64_t)element_size(element);
}

/* The range_fn NAME_range of an INLINED void NAME(const struct TYPE *, first, end, element), whose
 * context has the element. */
#define EITHER_ELEMENT(name, type)                                                                 \
    VECTORISED static void name##_range(const void *context, int64_t first, int64_t end)           \
    {                                                                                              \
        const struct type *of = context;                                                           \
        if (of->element == ELEMENT_F32)                                                            \
            name(of, first, end, ELEMENT_F32);                                                     \
        else                                                                                       \
            name(of, first, end, ELEMENT_BF16);                                                    \
    }

#endif
