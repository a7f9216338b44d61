/* sequence.h - a client-stream: numbered records that are kept until they are acknowledged.
 *
 * The sender keeps records in an outbox and sends them in batches. The receiver's inbox tells which
 * records of a batch are new, and acknowledges everything up to a number. A batch that is sent
 * twice or overlaps another is counted once. When the outbox is full, its oldest record is dropped
 * and counted; the receiver finds the same number missing. Pure: no I/O, no clock. */
#ifndef COMMON_RPC_SEQUENCE_H
#define COMMON_RPC_SEQUENCE_H

#include "common/base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
