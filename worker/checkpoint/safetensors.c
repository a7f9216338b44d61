/* safetensors.c - builds headers, and finds where they end. */
#include "worker/checkpoint/safetensors.h"

#include "common/base/memory.h"

#include <stdio.h>
#include <string.h>

#define ALIGNMENT 64 /* of the data, in bytes of the file */

static const char *const dtypes[] = {[ELEMENT_F32] = "F32", [ELEMENT_BF16] = "BF16"};

json_t *safetensors_entry(enum element element, const int64_t *shape, int dims, uint64_t offset,
                          uint64_t bytes)
{
    json_t *lengths = json_array();
    for (int i = 0; i < dims; i++)
        json_array_append_new(lengths, json_integer(shape[i]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtypes[element], "shape", lengths,
                     "data_offsets", (json_int_t)offset, (json_int_t)offset + (json_int_t)bytes);
}

char *safetensors_frame(const char *json, size_t *size)
{
    size_t whole = SAFETENSORS_LENGTH_BYTES + strlen(json);
    whole = (whole + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t padded = whole - SAFETENSORS_LENGTH_BYTES;
    char *out = xcalloc(1, whole + 1);
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++)
        out[i] = (char)(padded >> 8 * i & 0xff);
    snprintf(out + SAFETENSORS_LENGTH_BYTES, padded + 1, "%-*s", (int)padded, json);
    *size = whole;
    return out;
}

bool safetensors_length(const unsigned char *begin, uint64_t size, uint64_t *length)
{
    *length = 0;
    if (size < SAFETENSORS_LENGTH_BYTES)
        return false;
    for (int i = 0; i < SAFETENSORS_LENGTH_BYTES; i++)
        *length |= (uint64_t)begin[i] << 8 * i;
    return *length <= SAFETENSORS_HEADER_MAX && *length <= size - SAFETENSORS_LENGTH_BYTES;
}
