/* numbers.h - loops over numbers that are all f32 or all bf16, computed in f32; and exp without
 * branches, so that loops over it are vectorised.
 *
 * A loop is written once, with its element as a parameter. Its caller inlines it once for each
 * element as a constant, so that both versions are vectorised. */
#ifndef WORKER_KERNELS_CPU_NUMBERS_H
#define WORKER_KERNELS_CPU_NUMBERS_H

#include "common/base/element.h"
#include "worker/kernels/cpu/processor.h"

#include <stdint.h>
#include <string.h>

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

/* Cephes' expf (S. Moshier): x = n log 2 + r with |r| <= log 2 / 2; a polynomial for exp(r); and n
 * added to the exponent. The relative error is 2e-7. Below -87 the result stays at exp(-87),
 * 1.6e-38. */
INLINED float exponential(float x)
{
    const float to_integer = 12582912.0f; /* 1.5 x 2^23: adding it rounds to an integer */
    x = x > 88.0f ? 88.0f : x;
    x = x < -87.0f ? -87.0f : x;
    float n = (x * 1.44269504f + to_integer) - to_integer;
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    uint32_t bits = ((uint32_t)(int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif
