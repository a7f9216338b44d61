/* sequence.h - a client-stream: numbered records that are kept until they are acknowledged.
 *
 * The sender keeps records in an outbox and sends them in batches, the receiver's inbox says
 * which of a batch are new, and acknowledges all up to a number. A batch that is sent twice, or
 * overlaps another, counts once. When the outbox is full its oldest record is dropped and
 * counted; the receiver sees the same number missing. Pure: no I/O, no clock. */
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
/* Copies the record and returns its sequence number; the first has 1. */
uint64_t outbox_append(struct outbox *outbox, const void *data, size_t size);
/* The oldest records that fit into bytes_max, but one if there is any: how many they are, the
 * sequence number of the first, and in records, of count_max entries, where they lie; lent
 * until the outbox changes. */
size_t outbox_batch(const struct outbox *outbox, size_t bytes_max, size_t count_max,
                    ProtobufCBinaryData *records, uint64_t *first_sequence);
/* Forget all up to sequence. */
void outbox_acknowledge(struct outbox *outbox, uint64_t sequence);
size_t outbox_count(const struct outbox *outbox);
/* The sequence number of the newest record; 0 before the first. */
uint64_t outbox_newest(const struct outbox *outbox);
uint64_t outbox_dropped(const struct outbox *outbox);

struct inbox {
    uint64_t acknowledged; /* everything up to here has arrived or is lost; 0 at first */
    uint64_t lost;         /* records that the sender dropped, seen as gaps */
};

/* Take a batch of count records: *skip of them, from the first on, were here before. An inbox
 * that is new takes up the stream wherever it is. -EINVAL for numbers that cannot be. */
int inbox_accept(struct inbox *inbox, uint64_t first_sequence, size_t count, size_t *skip,
                 struct error *err);

#endif
