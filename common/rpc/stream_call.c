/* stream_call.c - answers a StreamPoll from a stream, or parks it. */
#include "common/rpc/call.h"

#include "common/base/memory.h"
#include "common/rpc/stream.h"
#include "proto/stream.pb-c.h"

#include <assert.h>
#include <stdlib.h>

/* The largest batch; the rest is for the next poll. */
#define BATCH_BYTES_MAX ((size_t)4 << 20)

static void reply_batch(struct rpc_call *call, const struct stream *stream, uint64_t revision,
                        size_t count)
{
    Gimbal__StreamRecord *records = xcalloc(count, sizeof *records);
    Gimbal__StreamRecord **pointers = xcalloc(count, sizeof(Gimbal__StreamRecord *));
    for (size_t i = 0; i < count; i++) {
        const struct stream_record *record = stream_get(stream, revision + 1 + i);
        gimbal__stream_record__init(&records[i]);
        records[i].revision = revision + 1 + i;
        records[i].data.data = record->data;
        records[i].data.len = record->size;
        pointers[i] = &records[i];
    }
    Gimbal__StreamBatch batch = GIMBAL__STREAM_BATCH__INIT;
    batch.term = stream_term(stream);
    batch.records = pointers;
    batch.n_records = count;
    rpc_call_reply(call, &batch.base);
    free(pointers);
    free(records);
}

void rpc_call_reply_stream(struct rpc_call *call, const struct stream *stream, const char *name)
{
    const Gimbal__StreamPoll *poll = rpc_call_request(call);
    assert(poll->base.descriptor == &gimbal__stream_poll__descriptor);
    struct error err;
    size_t count;
    int rc = stream_after(stream, poll->term, poll->revision, BATCH_BYTES_MAX, &count, &err);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
    else if (count == 0)
        rpc_call_park(call, name, 0);
    else
        reply_batch(call, stream, poll->revision, count);
}
