/* events.h - TensorBoard's event files: records of protobuf, each with its length and two checksums
 * (TensorFlow's record_writer.cc). */
#ifndef WORKER_SCALARS_EVENTS_H
#define WORKER_SCALARS_EVENTS_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct events;

/* Begin a file in this folder, which is created if it is missing. Its name comes after those of
 * other event files there, in the order in which TensorBoard reads them, whatever the clocks say.
 * Its first records say what it is, and that the training goes on with step `from`. A negative
 * errno. */
int events_open(const char *folder, uint64_t epoch, uint64_t from, struct events **out,
                struct error *err);
/* Errors are reported here: what was written before is on its way to the disk, or a negative
 * errno. */
int events_flush(struct events *events, struct error *err);
/* Accepts NULL. */
void events_close(struct events *events);

/* One event with some numbers of a step; NaN: left out. */
struct scalar {
    const char *tag;
    double value;
};
void events_put_scalars(struct events *events, uint64_t step, const struct scalar *scalars,
                        size_t count);
/* A text, in Markdown; its bytes have to be UTF-8. */
void events_put_text(struct events *events, uint64_t step, const char *tag, const char *text);

/* CRC-32C (RFC 3720, B.4), and as records have it. */
uint32_t events_crc(const void *bytes, size_t size);
uint32_t events_masked_crc(const void *bytes, size_t size);

#endif
