/* exponential.h - exp without branches, so that loops over it are vectorised.
 *
 * This is Cephes' expf (S. Moshier): x = n log 2 + r with |r| <= log 2 / 2; a polynomial for
 * exp(r); and n added to the exponent. The relative error is 2e-7. Below -87 the result stays at
 * exp(-87), 1.6e-38. */
#ifndef WORKER_KERNELS_CPU_EXPONENTIAL_H
#define WORKER_KERNELS_CPU_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

static inline __attribute__((always_inline)) float exponential(float x)
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
