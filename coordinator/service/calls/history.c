/* history.c - the calls about events: past ones from the store, future ones from the stream. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/base/memory.h"
#include "common/rpc/message.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_STANDARD 1000
#define PAGE_BYTES_MAX ((size_t)4 << 20)

struct page {
    Gimbal__StreamRecord *records;
    size_t count, count_max, bytes;
    bool more;
};

/* One event beyond what fits shows that there are more. */
static int take(void *data, uint64_t revision, const Gimbal__Event *event)
{
    struct page *page = data;
    size_t size = gimbal__event__get_packed_size(event);
    page->more =
        page->count == page->count_max || (page->count > 0 && page->bytes + size > PAGE_BYTES_MAX);
    if (page->more)
        return -1;
    Gimbal__StreamRecord *record = &page->records[page->count++];
    gimbal__stream_record__init(record);
    record->revision = revision;
    record->data.data = message_pack(&event->base, &record->data.len);
    page->bytes += size;
    return 0;
}

static void reply_page(struct rpc_call *call, const struct service *service,
                       const struct page *page)
{
    Gimbal__ListEventsReply reply = GIMBAL__LIST_EVENTS_REPLY__INIT;
    reply.records = xcalloc(page->count, sizeof(Gimbal__StreamRecord *));
    for (; reply.n_records < page->count; reply.n_records++)
        reply.records[reply.n_records] = &page->records[reply.n_records];
    reply.more = page->more;
    reply.revision = stream_revision(service->events);
    rpc_call_reply(call, &reply.base);
    free(reply.records);
}

static void list_events(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__ListEventsRequest *request = rpc_call_request(call);
    bool bounded = request->count_max > 0 && request->count_max < PAGE_STANDARD;
    struct page page = {.count_max = bounded ? request->count_max : PAGE_STANDARD};
    struct store_query query = {request->job,       request->node, request->after,
                                page.count_max + 1, NULL,          false};
    struct error err;
    page.records = xcalloc(page.count_max, sizeof *page.records);
    int rc = store_read_events(service->options.store, &query, take, &page, &err);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
    else
        reply_page(call, service, &page);
    for (size_t i = 0; i < page.count; i++)
        free(page.records[i].data.data);
    free(page.records);
}

static void watch_events(struct rpc_call *call, void *data)
{
    struct service *service = data;
    const Gimbal__StreamPoll *poll = rpc_call_request(call);
    if (strcmp(poll->stream, EVENTS_STREAM) != 0) {
        rpc_call_fail(call, RPC_NOT_FOUND, "there is no stream '%.64s'; there is: %s", poll->stream,
                      EVENTS_STREAM);
        return;
    }
    rpc_call_reply_stream(call, service->events, EVENTS_STREAM);
}

const struct service_handler history_handlers[] = {
    {COORDINATOR_WATCH_EVENTS, watch_events},
    {COORDINATOR_LIST_EVENTS, list_events},
    {0, NULL},
};
