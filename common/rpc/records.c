/* records.c - a stream and an outbox are rings: record r lies in slot r modulo their size. The
 * inboxes are an array that is searched linearly: it has some thousand entries and takes a few
 * batches a second. */
#include "common/rpc/records.h"

#include "common/base/hash.h"
#include "common/base/memory.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct stream {
    uint64_t term;
    uint64_t begin; /* the stream was resumed behind this revision, or what is before forgotten */
    uint64_t revision;
    size_t keep_count;
    struct stream_record *records;
};

struct stream *stream_create(uint64_t term, size_t keep_count)
{
    assert(keep_count > 0);
    struct stream *stream = xcalloc(1, sizeof *stream);
    stream->term = term;
    stream->keep_count = keep_count;
    stream->records = xcalloc(keep_count, sizeof *stream->records);
    return stream;
}

void stream_destroy(struct stream *stream)
{
    if (!stream)
        return;
    for (size_t i = 0; i < stream->keep_count; i++)
        free(stream->records[i].data);
    free(stream->records);
    free(stream);
}

void stream_resume(struct stream *stream, uint64_t revision)
{
    assert(revision >= stream->revision);
    stream->begin = stream->revision = revision;
}

uint64_t stream_append(struct stream *stream, const void *data, size_t size)
{
    struct stream_record *record = &stream->records[++stream->revision % stream->keep_count];
    record->data = xrealloc(record->data, size);
    record->size = size;
    if (size)
        memcpy(record->data, data, size);
    return stream->revision;
}

uint64_t stream_term(const struct stream *stream)
{
    return stream->term;
}

uint64_t stream_revision(const struct stream *stream)
{
    return stream->revision;
}

static uint64_t stream_oldest(const struct stream *stream)
{
    uint64_t written = stream->revision - stream->begin;
    return written > stream->keep_count ? stream->revision - stream->keep_count + 1
                                        : stream->begin + 1;
}

void stream_forget(struct stream *stream, uint64_t revision)
{
    uint64_t last = revision < stream->revision ? revision : stream->revision;
    for (uint64_t next = stream_oldest(stream); next <= last; next++) {
        struct stream_record *record = &stream->records[next % stream->keep_count];
        free(record->data);
        *record = (struct stream_record){0};
    }
    if (last > stream->begin)
        stream->begin = last;
}

const struct stream_record *stream_get(const struct stream *stream, uint64_t revision)
{
    if (revision < stream_oldest(stream) || revision > stream->revision)
        return NULL;
    return &stream->records[revision % stream->keep_count];
}

int stream_after(const struct stream *stream, uint64_t term, uint64_t revision, size_t bytes_max,
                 size_t *count, struct error *err)
{
    if (term != stream->term)
        return error_set(err, -ERANGE,
                         "revision %" PRIu64 " is of term %" PRIu64 ", this is term %" PRIu64
                         ": read a snapshot",
                         revision, term, stream->term);
    if (revision > stream->revision || revision + 1 < stream_oldest(stream))
        return error_set(err, -ERANGE,
                         "nothing is kept to follow revision %" PRIu64 ": revisions %" PRIu64
                         " to %" PRIu64 " are; read a snapshot",
                         revision, stream_oldest(stream), stream->revision);
    size_t bytes = 0;
    *count = 0;
    for (uint64_t next = revision + 1; next <= stream->revision; next++) {
        bytes += stream_get(stream, next)->size;
        if (*count > 0 && bytes > bytes_max)
            break;
        ++*count;
    }
    return 0;
}

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

static ProtobufCBinaryData *outbox_slot(const struct outbox *outbox, uint64_t sequence)
{
    return &outbox->records[sequence % outbox->count_max];
}

static void outbox_drop_first(struct outbox *outbox)
{
    ProtobufCBinaryData *record = outbox_slot(outbox, outbox->first++);
    free(record->data);
    *record = (ProtobufCBinaryData){0};
}

void outbox_destroy(struct outbox *outbox)
{
    if (!outbox)
        return;
    while (outbox->first < outbox->next)
        outbox_drop_first(outbox);
    free(outbox->records);
    free(outbox);
}

uint64_t outbox_append(struct outbox *outbox, const void *data, size_t size)
{
    if (outbox_count(outbox) == outbox->count_max) {
        outbox_drop_first(outbox);
        outbox->dropped++;
    }
    ProtobufCBinaryData *record = outbox_slot(outbox, outbox->next);
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
        const ProtobufCBinaryData *record = outbox_slot(outbox, outbox->first + count);
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
        outbox_drop_first(outbox);
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

struct entry {
    uint64_t client;
    uint64_t stream_hash;
    uint64_t used; /* number of the get that used it last */
    struct inbox inbox;
};

struct inboxes {
    struct entry *entries;
    size_t count, capacity, count_max;
    uint64_t gets;
};

struct inboxes *inboxes_create(size_t count_max)
{
    assert(count_max > 0);
    struct inboxes *inboxes = xcalloc(1, sizeof *inboxes);
    inboxes->count_max = count_max;
    return inboxes;
}

void inboxes_destroy(struct inboxes *inboxes)
{
    if (!inboxes)
        return;
    free(inboxes->entries);
    free(inboxes);
}

/* The place for a new entry: behind the last, or that of the least recently used. */
static struct entry *inboxes_make_room(struct inboxes *inboxes)
{
    if (inboxes->count < inboxes->count_max) {
        inboxes->entries =
            grow(inboxes->entries, inboxes->count, &inboxes->capacity, sizeof *inboxes->entries);
        return &inboxes->entries[inboxes->count++];
    }
    struct entry *oldest = inboxes->entries;
    for (size_t i = 1; i < inboxes->count; i++)
        if (inboxes->entries[i].used < oldest->used)
            oldest = &inboxes->entries[i];
    return oldest;
}

struct inbox *inboxes_get(struct inboxes *inboxes, uint64_t client, const char *stream)
{
    uint64_t hash = hash_text(HASH_START, stream);
    struct entry *entry = NULL;
    for (size_t i = 0; i < inboxes->count && !entry; i++)
        if (inboxes->entries[i].client == client && inboxes->entries[i].stream_hash == hash)
            entry = &inboxes->entries[i];
    if (!entry) {
        entry = inboxes_make_room(inboxes);
        *entry = (struct entry){.client = client, .stream_hash = hash};
    }
    entry->used = ++inboxes->gets;
    return &entry->inbox;
}
