/* stream.c - a ring: revision r lies in slot r % keep_count. */
#include "common/rpc/stream.h"

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
    assert(stream->revision == 0);
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

static uint64_t oldest(const struct stream *stream)
{
    uint64_t written = stream->revision - stream->begin;
    return written > stream->keep_count ? stream->revision - stream->keep_count + 1
                                        : stream->begin + 1;
}

void stream_forget(struct stream *stream, uint64_t revision)
{
    uint64_t last = revision < stream->revision ? revision : stream->revision;
    for (uint64_t next = oldest(stream); next <= last; next++) {
        struct stream_record *record = &stream->records[next % stream->keep_count];
        free(record->data);
        *record = (struct stream_record){0};
    }
    if (last > stream->begin)
        stream->begin = last;
}

const struct stream_record *stream_get(const struct stream *stream, uint64_t revision)
{
    if (revision < oldest(stream) || revision > stream->revision)
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
    if (revision > stream->revision || revision + 1 < oldest(stream))
        return error_set(err, -ERANGE,
                         "nothing is kept to follow revision %" PRIu64 ": revisions %" PRIu64
                         " to %" PRIu64 " are; read a snapshot",
                         revision, oldest(stream), stream->revision);
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
