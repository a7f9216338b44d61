/* elements.h - tokens as they lie in a file: little-endian, unsigned, of 1, 2 or 4 bytes each, at
 * any address. */
#ifndef WORKER_DATA_ELEMENTS_H
#define WORKER_DATA_ELEMENTS_H

#include <stddef.h>
#include <stdint.h>

struct elements {
    const unsigned char *bytes; /* lent */
    size_t width;               /* bytes per token */
    uint64_t count;
};

uint32_t elements_at(struct elements elements, uint64_t index);
/* Convert the first `count` to token ids, which are below 2^31. */
void elements_widen(struct elements elements, uint64_t count, int32_t *out);
/* The smallest and the largest; those of none are UINT32_MAX and 0. */
void elements_range(struct elements elements, uint32_t *smallest, uint32_t *largest);
/* How many are equal to id. */
uint64_t elements_count(struct elements elements, uint32_t id);

#endif
