/* numbers.h - loops over numbers that are all f32 or all bf16, computed in f32.
 *
 * A loop is written once, with its element as a parameter. Its caller inlines it once for each
 * element as a constant, so that both versions are vectorised. */
#ifndef WORKER_KERNELS_CPU_NUMBERS_H
#define WORKER_KERNELS_CPU_NUMBERS_H

#include "common/base/element.h"
#include "worker/kernels/cpu/parallel.h"

#define INLINED static inline __attribute__((always_inline))

/* Number i, as f32. */
INLINED float load(const void *data, enum element element, int64_t i)
{
    return element == ELEMENT_F32 ? ((const float *)data)[i]
                                  : bf16_widen(((const uint16_t *)data)[i]);
}

/* Write number i, rounded to the element. */
INLINED void store(void *data, enum element element, int64_t i, float value)
{
    if (element == ELEMENT_F32)
        ((float *)data)[i] = value;
    else
        ((uint16_t *)data)[i] = bf16_narrow(value);
}

/* Address of number i. */
INLINED void *from_number(const void *data, enum element element, int64_t i)
{
    return (char *)data + i * (int64_t)element_size(element);
}

/* Define the range_fn NAME_range from an INLINED void NAME(const struct TYPE *, first, end,
 * element); struct TYPE has a member `element`. */
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
