/* stream.h - a server-stream: numbered records, of which the newest are kept.
 *
 * A reader tells what it has, as (term, revision), and gets the records that follow, so that
 * nothing is lost or repeated. A reader from another term, or from before the oldest record kept,
 * gets -ERANGE; it then reads a snapshot and continues from the revision of that. Pure: no I/O, no
 * clock. */
#ifndef COMMON_RPC_STREAM_H
#define COMMON_RPC_STREAM_H

#include "common/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct stream;

struct stream_record {
    void *data;
    size_t size;
};

/* Keeps the last keep_count records, at least one. */
struct stream *stream_create(uint64_t term, size_t keep_count);
/* Accepts NULL. */
void stream_destroy(struct stream *stream);

/* Continue an empty stream after this revision, which the next append will follow. */
void stream_resume(struct stream *stream, uint64_t revision);
/* Append a copy of a record. Returns its revision; the first has 1. */
uint64_t stream_append(struct stream *stream, const void *data, size_t size);
/* Drop all records up to this revision, because no reader needs them any more. Harmless if they are
 * gone already. */
void stream_forget(struct stream *stream, uint64_t revision);
uint64_t stream_term(const struct stream *stream);
/* The revision of the newest record; 0 when there was none. */
uint64_t stream_revision(const struct stream *stream);
/* The record of a revision, valid until the next append or forget; NULL when it is not kept. */
const struct stream_record *stream_get(const struct stream *stream, uint64_t revision);
/* Count the records that follow (term, revision) and fit into bytes_max, at least one if there is
 * any. -ERANGE when some of them are no longer kept, or the reader is ahead of the stream. */
int stream_after(const struct stream *stream, uint64_t term, uint64_t revision, size_t bytes_max,
                 size_t *count, struct error *err);

#endif
