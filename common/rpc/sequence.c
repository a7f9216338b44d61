/* sequence.c - the outbox is a ring: sequence s lies in slot s % count_max. */
#include "common/rpc/sequence.h"

#include "common/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct outbox {
    uint64_t first; /* sequence of the oldest record kept */
    uint64_t next;  /* sequence of the record to come */
    uint64_t dropped;
    size_t count_max;
    ProtobufCBinaryData *records;
};

struct outbox *outbox_create(size_t record_count_max)
{
    assert(record_count_max > 0);
    struct outbox *outbox = xcalloc(1, sizeof *outbox);
    outbox->first = outbox->next = 1;
    outbox->count_max = record_count_max;
    outbox->records = xcalloc(record_count_max, sizeof *outbox->records);
    return outbox;
}

static ProtobufCBinaryData *slot(const struct outbox *outbox, uint64_t sequence)
{
    return &outbox->records[sequence % outbox->count_max];
}

static void drop_first(struct outbox *outbox)
{
    ProtobufCBinaryData *record = slot(outbox, outbox->first++);
    free(record->data);
    *record = (ProtobufCBinaryData){0};
}

void outbox_destroy(struct outbox *outbox)
{
    if (!outbox)
        return;
    while (outbox->first < outbox->next)
        drop_first(outbox);
    free(outbox->records);
    free(outbox);
}

uint64_t outbox_append(struct outbox *outbox, const void *data, size_t size)
{
    if (outbox_count(outbox) == outbox->count_max) {
        drop_first(outbox);
        outbox->dropped++;
    }
    ProtobufCBinaryData *record = slot(outbox, outbox->next);
    record->data = xcalloc(1, size);
    record->len = size;
    if (size)
        memcpy(record->data, data, size);
    return outbox->next++;
}

size_t outbox_batch(const struct outbox *outbox, size_t bytes_max, size_t count_max,
                    ProtobufCBinaryData *records, uint64_t *first_sequence)
{
    size_t count = 0, bytes = 0;
    *first_sequence = outbox->first;
    while (count < count_max && outbox->first + count < outbox->next) {
        const ProtobufCBinaryData *record = slot(outbox, outbox->first + count);
        bytes += record->len;
        if (count > 0 && bytes > bytes_max)
            break;
        records[count++] = *record;
    }
    return count;
}

void outbox_acknowledge(struct outbox *outbox, uint64_t sequence)
{
    while (outbox->first < outbox->next && outbox->first <= sequence)
        drop_first(outbox);
}

size_t outbox_count(const struct outbox *outbox)
{
    return (size_t)(outbox->next - outbox->first);
}

uint64_t outbox_newest(const struct outbox *outbox)
{
    return outbox->next - 1;
}

uint64_t outbox_dropped(const struct outbox *outbox)
{
    return outbox->dropped;
}

int inbox_accept(struct inbox *inbox, uint64_t first_sequence, size_t count, size_t *skip,
                 struct error *err)
{
    if (first_sequence == 0 || first_sequence > UINT64_MAX - count)
        return error_set(err, -EINVAL,
                         "%zu records cannot start at sequence number %" PRIu64
                         ": the first record of a stream has 1",
                         count, first_sequence);
    uint64_t last = first_sequence + count - 1, expected = inbox->acknowledged + 1;
    *skip = 0;
    if (first_sequence < expected)
        *skip = last < expected ? count : (size_t)(expected - first_sequence);
    else if (inbox->acknowledged > 0)
        inbox->lost += first_sequence - expected;
    if (last > inbox->acknowledged)
        inbox->acknowledged = last;
    return 0;
}
