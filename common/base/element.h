/* element.h - element types of arrays: f32, or bf16, which is the upper half of an f32. Token ids
 * are int32 and are stored wherever f32 is. */
#ifndef COMMON_BASE_ELEMENT_H
#define COMMON_BASE_ELEMENT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum element { ELEMENT_F32, ELEMENT_BF16, ELEMENTS };

static inline size_t element_size(enum element element)
{
    return element == ELEMENT_BF16 ? sizeof(uint16_t) : sizeof(float);
}

/* The type whose elements have this size, 2 or 4 bytes. */
static inline enum element element_of_size(int bytes)
{
    return bytes == sizeof(uint16_t) ? ELEMENT_BF16 : ELEMENT_F32;
}

static inline float bf16_widen(uint16_t narrow)
{
    uint32_t bits = (uint32_t)narrow << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

#define BF16_NONE 0x7fc0 /* NaN */

/* Round to nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_narrow(float wide)
{
    uint32_t bits;
    memcpy(&bits, &wide, sizeof bits);
    bits += 0x7fff + (bits >> 16 & 1);
    return wide == wide ? (uint16_t)(bits >> 16) : BF16_NONE;
}

#endif
