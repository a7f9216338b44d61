/* elements.c - reads tokens of every width.
 *
 * All of a file is looked at whenever it is opened, so its largest token is sought in blocks of
 * constant length, which the compiler makes vectors of. */
#include "worker/data/elements.h"

#include <endian.h>
#include <string.h>

#define BLOCK 1024

static uint16_t read_16(const unsigned char *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return le16toh(bits);
}

static uint32_t read_32(const unsigned char *at)
{
    uint32_t bits;
    memcpy(&bits, at, sizeof bits);
    return le32toh(bits);
}

uint32_t elements_at(struct elements elements, uint64_t index)
{
    const unsigned char *at = elements.bytes + index * elements.width;
    return elements.width == 1 ? *at : elements.width == 2 ? read_16(at) : read_32(at);
}

void elements_widen(struct elements elements, uint64_t count, int32_t *out)
{
    if (elements.width == 1)
        for (uint64_t i = 0; i < count; i++)
            out[i] = elements.bytes[i];
    else if (elements.width == 2)
        for (uint64_t i = 0; i < count; i++)
            out[i] = read_16(elements.bytes + 2 * i);
    else
        for (uint64_t i = 0; i < count; i++)
            out[i] = (int32_t)read_32(elements.bytes + 4 * i);
}

static void range_block_16(const unsigned char *bytes, uint16_t *smallest, uint16_t *largest)
{
    uint16_t low = *smallest, high = *largest;
    for (int i = 0; i < BLOCK; i++) {
        uint16_t token = read_16(bytes + (size_t)2 * (size_t)i);
        low = token < low ? token : low;
        high = token > high ? token : high;
    }
    *smallest = low;
    *largest = high;
}

static void range_block_32(const unsigned char *bytes, uint32_t *smallest, uint32_t *largest)
{
    uint32_t low = *smallest, high = *largest;
    for (int i = 0; i < BLOCK; i++) {
        uint32_t token = read_32(bytes + (size_t)4 * (size_t)i);
        low = token < low ? token : low;
        high = token > high ? token : high;
    }
    *smallest = low;
    *largest = high;
}

/* Look at whole blocks; returns how many elements they have. */
static uint64_t range_blocks(struct elements elements, uint32_t *smallest, uint32_t *largest)
{
    uint64_t blocks = elements.width == 1 ? 0 : elements.count / BLOCK;
    uint16_t low = UINT16_MAX, high = 0;
    for (uint64_t i = 0; i < blocks; i++) {
        const unsigned char *bytes = elements.bytes + i * BLOCK * elements.width;
        if (elements.width == 2)
            range_block_16(bytes, &low, &high);
        else
            range_block_32(bytes, smallest, largest);
    }
    if (elements.width == 2 && blocks) {
        *smallest = low;
        *largest = high;
    }
    return blocks * BLOCK;
}

void elements_range(struct elements elements, uint32_t *smallest, uint32_t *largest)
{
    *smallest = UINT32_MAX;
    *largest = 0;
    for (uint64_t i = range_blocks(elements, smallest, largest); i < elements.count; i++) {
        uint32_t token = elements_at(elements, i);
        *smallest = token < *smallest ? token : *smallest;
        *largest = token > *largest ? token : *largest;
    }
}

uint64_t elements_count(struct elements elements, uint32_t id)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < elements.count; i++)
        count += elements_at(elements, i) == id;
    return count;
}
