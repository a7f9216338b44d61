/* safetensors.h - the format's beginning of a file: 8 bytes of the header's length, little-endian,
 * and the header, JSON filled up with blanks so that the data behind it are aligned. */
#ifndef WORKER_CHECKPOINT_SAFETENSORS_H
#define WORKER_CHECKPOINT_SAFETENSORS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_LENGTH_BYTES 8

/* What the header says of an f32 tensor whose bytes lie from `offset` of the data on. */
json_t *safetensors_entry(const int64_t *shape, int dims, uint64_t offset, uint64_t bytes);
/* The beginning of a file with this header, *size bytes, yours. */
char *safetensors_frame(const char *json, size_t *size);

#endif
