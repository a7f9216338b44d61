/* records.h - numbered records, on their way from a server to many readers or from a client to a
 * server, such that none is lost or repeated without being noticed. Pure: no I/O, no clock.
 *
 * A stream is the server's, and keeps the newest records. A reader tells what it has, as (term,
 * revision), and gets the records that follow. A reader from another term, or from before the
 * oldest record kept, gets -ERANGE; it then reads a snapshot and continues from the revision of
 * that.
 *
 * An outbox is a client's: it keeps records, to be sent in batches, until they are acknowledged.
 * The receiver's inbox tells which records of a batch are new, and acknowledges everything up to a
 * number. A batch that is sent twice or overlaps another is counted once. When the outbox is full,
 * its oldest record is dropped and counted; the receiver finds the same number missing. */
#ifndef COMMON_RPC_RECORDS_H
#define COMMON_RPC_RECORDS_H

#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>
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

/* Continue a stream after this revision, which the next append will follow, and without what it had
 * before. */
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

struct outbox;

struct outbox *outbox_create(size_t record_count_max);
/* Accepts NULL. */
void outbox_destroy(struct outbox *outbox);
/* Append a copy of a record, dropping the oldest if the outbox is full. Returns its sequence
 * number; the first has 1. */
uint64_t outbox_append(struct outbox *outbox, const void *data, size_t size);
/* Find the oldest records that together fit into bytes_max and count_max, at least one if there is
 * any. Returns how many; *first_sequence is the number of the first. `records` has room for
 * count_max entries, whose data is valid until the outbox changes. */
size_t outbox_batch(const struct outbox *outbox, size_t bytes_max, size_t count_max,
                    ProtobufCBinaryData *records, uint64_t *first_sequence);
/* Remove all records up to this number. */
void outbox_acknowledge(struct outbox *outbox, uint64_t sequence);
/* The number of records kept. */
size_t outbox_count(const struct outbox *outbox);
/* The sequence number of the newest record; 0 before the first. */
uint64_t outbox_newest(const struct outbox *outbox);
/* The number of records dropped to make room. */
uint64_t outbox_dropped(const struct outbox *outbox);

struct inbox {
    uint64_t acknowledged; /* everything up to here has arrived or is lost; 0 at first */
    uint64_t lost;         /* records that the sender dropped, seen as gaps */
};

/* Accept a batch of `count` records. The first *skip of them have arrived before and are to be
 * ignored. A new inbox accepts the stream from wherever it is. -EINVAL for impossible numbers. */
int inbox_accept(struct inbox *inbox, uint64_t first_sequence, size_t count, size_t *skip,
                 struct error *err);

/* The inboxes of all (client, stream) pairs that push records to us. When there are too many, the
 * least recently used one is dropped. A client whose inbox was dropped continues wherever it is, so
 * at worst one batch in flight is counted twice. */
struct inboxes;

struct inboxes *inboxes_create(size_t count_max);
/* Accepts NULL. */
void inboxes_destroy(struct inboxes *inboxes);
/* The inbox of a pair, created if there is none. Valid until the next call. */
struct inbox *inboxes_get(struct inboxes *inboxes, uint64_t client, const char *stream);

#endif
