/* safetensors.h - the beginning of a file in the safetensors format, written and read: the length
 * of the header in 8 bytes, little-endian, and the header, JSON padded with blanks so that the data
 * after it is aligned. */
#ifndef WORKER_CHECKPOINT_SAFETENSORS_H
#define WORKER_CHECKPOINT_SAFETENSORS_H

#include "common/base/element.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_LENGTH_BYTES 8
/* A longer header is not accepted; this is the format's own limit. */
#define SAFETENSORS_HEADER_MAX ((uint64_t)100 << 20)

/* The header's entry for a tensor whose bytes begin at `offset` of the data. The caller owns it. */
json_t *safetensors_entry(enum element element, const int64_t *shape, int dims, uint64_t offset,
                          uint64_t bytes);
/* The beginning of a file with this header, of *size bytes; the caller frees it. */
char *safetensors_frame(const char *json, size_t *size);
/* How long the header of a file of `size` bytes is, by its first SAFETENSORS_LENGTH_BYTES, or fewer
 * if it has no more. False: it would not be in the file, or is too long; *length is what is
 * claimed. */
bool safetensors_length(const unsigned char *begin, uint64_t size, uint64_t *length);

#endif
