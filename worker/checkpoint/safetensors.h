/* safetensors.h - the beginning of a file in the safetensors format: the length of the header in 8
 * bytes, little-endian, and the header, JSON padded with blanks so that the data after it is
 * aligned. */
#ifndef WORKER_CHECKPOINT_SAFETENSORS_H
#define WORKER_CHECKPOINT_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_LENGTH_BYTES 8

/* The header's entry for an f32 tensor whose bytes begin at `offset` of the data. The caller owns
 * it. */
json_t *safetensors_entry(const int64_t *shape, int dims, uint64_t offset, uint64_t bytes);
/* The beginning of a file with this header, of *size bytes; the caller frees it. */
char *safetensors_frame(const char *json, size_t *size);

#endif
