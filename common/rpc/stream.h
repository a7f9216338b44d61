/* stream.h - a server-stream: numbered records, of which the newest are kept.
 *
 * A reader says what it has, (term, revision), and gets what came after it: nothing is lost and
 * nothing repeated. Whoever comes from another term, or from before the oldest record kept, is
 * told -ERANGE, reads a snapshot and goes on from the revision of that. Pure: no I/O, no clock. */
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

/* Begin behind what was written before, as the next append's predecessor; the stream is empty. */
void stream_resume(struct stream *stream, uint64_t revision);
/* Copies the record and returns its revision; the first has 1. */
uint64_t stream_append(struct stream *stream, const void *data, size_t size);
/* Nobody will ask for what follows a revision before this one any more: records up to it are let
 * go. Harmless where they are gone, or were never there. */
void stream_forget(struct stream *stream, uint64_t revision);
uint64_t stream_term(const struct stream *stream);
/* Of the newest record; 0 when there was none. */
uint64_t stream_revision(const struct stream *stream);
/* Lent until the next append or forget; NULL when it is not kept. */
const struct stream_record *stream_get(const struct stream *stream, uint64_t revision);
/* How many records follow (term, revision): as many as fit into bytes_max, but one if there is
 * any. -ERANGE when they are not all kept, or the reader has what we never wrote. */
int stream_after(const struct stream *stream, uint64_t term, uint64_t revision, size_t bytes_max,
                 size_t *count, struct error *err);

#endif
