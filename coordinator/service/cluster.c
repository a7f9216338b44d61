/* cluster.c - what users ask of the cluster: its nodes, what it could run, what has happened, from
 * the store or as it comes, and a copy of the store.
 *
 * An administrator is handed the copy piece by piece. It is made in memory in one go, so it shows
 * the store at a single moment; then it is fetched. There is one copy at a time, kept for a minute
 * after it was last asked for. Beginning another backup ends the previous one. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/memory.h"
#include "common/message/message.h"
#include "coordinator/planner/check.h"
#include "coordinator/service/calls.h"
#include "coordinator/service/wire.h"
#include "coordinator/turn/asking.h"
#include "coordinator/turn/history.h"
#include "coordinator/turn/turn.h"

#define PAGE_STANDARD 1000
#define PAGE_BYTES_MAX ((size_t)4 << 20)
#define PIECE_BYTES ((size_t)4 << 20)
#define IDLE_MS 60000

static void cluster_list_nodes(struct rpc_call *call, void *data)
{
    struct state *state = data;
    Gimbal__ListNodesReply reply = GIMBAL__LIST_NODES_REPLY__INIT;
    size_t count = membership_count(state->membership);
    if (state->options.checkpoints)
        reply.checkpoints = (char *)state->options.checkpoints;
    reply.nodes = xcalloc(count, sizeof(Gimbal__NodeStatus *));
    for (; reply.n_nodes < count; reply.n_nodes++)
        reply.nodes[reply.n_nodes] =
            worker_to_wire(state, membership_at(state->membership, reply.n_nodes));
    rpc_call_reply(call, &reply.base);
    for (size_t i = 0; i < count; i++)
        gimbal__node_status__free_unpacked(reply.nodes[i], NULL);
    free(reply.nodes);
}

static void cluster_drain(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__DrainRequest *request = rpc_call_request(call);
    struct error err;
    int rc = request->undo
                 ? membership_undrain(state->membership, request->node, &state->happened, &err)
                 : membership_drain(state->membership, request->node, request->reason,
                                    &state->happened, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    Gimbal__DrainReply reply = GIMBAL__DRAIN_REPLY__INIT;
    turn_run(state);
    rpc_call_reply(call, &reply.base);
}

/* Use the search that the caller names, if any, instead of the job's. */
static void plan_choose_search(struct job_config *config, const char *search)
{
    assert(config);
    if (!search[0])
        return;
    free(config->plan.search);
    config->plan.search = xstrdup(search);
}

static void plan_answer(struct rpc_call *call, const struct planning *planning)
{
    Gimbal__Plan plan = GIMBAL__PLAN__INIT;
    Gimbal__PlanReply reply = GIMBAL__PLAN_REPLY__INIT;
    plan.id = planning->plan->id;
    plan.json = planning->json;
    reply.plan = &plan;
    reply.explanation = planning->candidates;
    rpc_call_reply(call, &reply.base);
}

static void cluster_plan(struct rpc_call *call, void *data)
{
    const Gimbal__PlanRequest *request = rpc_call_request(call);
    struct error err;
    struct dry_plan ask = {
        .answer_cb = plan_answer,
        .cluster = request->cluster_yaml[0] ? request->cluster_yaml : NULL,
    };
    int rc = planning_cost_parse(request->cost, &ask.cost, &err);
    if (rc == 0)
        rc = job_config_parse(request->job_yaml, strlen(request->job_yaml), "job file", &ask.config,
                              &err);
    if (rc == 0)
        rc = planner_graph(ask.config, &ask.graph, &err);
    if (rc < 0) {
        job_config_destroy(ask.config);
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    plan_choose_search(ask.config, request->search);
    asking_dry(data, call, &ask);
}

/* ---- history ---- */

struct page {
    Gimbal__StreamRecord *records;
    size_t count, count_max, bytes;
    bool more;
};

/* One event beyond what fits shows that there are more. */
static int page_take(void *data, uint64_t revision, const Gimbal__Event *event)
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

static void page_reply(struct rpc_call *call, const struct state *state, const struct page *page)
{
    Gimbal__ListEventsReply reply = GIMBAL__LIST_EVENTS_REPLY__INIT;
    reply.records = xcalloc(page->count, sizeof(Gimbal__StreamRecord *));
    for (; reply.n_records < page->count; reply.n_records++)
        reply.records[reply.n_records] = &page->records[reply.n_records];
    reply.more = page->more;
    reply.revision = stream_revision(state->events);
    rpc_call_reply(call, &reply.base);
    free(reply.records);
}

static void cluster_list_events(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__ListEventsRequest *request = rpc_call_request(call);
    bool bounded = request->count_max > 0 && request->count_max < PAGE_STANDARD;
    struct page page = {.count_max = bounded ? request->count_max : PAGE_STANDARD};
    struct store_query query = {request->job,       request->node, request->after,
                                page.count_max + 1, NULL,          false};
    struct error err;
    page.records = xcalloc(page.count_max, sizeof *page.records);
    int rc = store_read_events(state->options.store, &query, page_take, &page, &err);
    if (rc < 0)
        rpc_call_fail_errno(call, rc, &err);
    else
        page_reply(call, state, &page);
    for (size_t i = 0; i < page.count; i++)
        free(page.records[i].data.data);
    free(page.records);
}

static void cluster_watch_events(struct rpc_call *call, void *data)
{
    struct state *state = data;
    const Gimbal__StreamPoll *poll = rpc_call_request(call);
    if (strcmp(poll->stream, EVENTS_STREAM) != 0) {
        rpc_call_fail(call, RPC_NOT_FOUND, "there is no stream '%.64s'; there is: %s", poll->stream,
                      EVENTS_STREAM);
        return;
    }
    rpc_call_reply_stream(call, state->events, EVENTS_STREAM);
}

/* ---- backup ---- */

static void backup_let_go(struct backup *backup)
{
    store_copy_finish(&backup->copy);
}

static int backup_begin(struct service *service, const char *caller, struct error *err)
{
    struct backup *backup = &service->backup;
    uint64_t now_ms = state_now_ms(service->state);
    backup_let_go(backup);
    int rc = store_copy(service->state->options.store, now_ms, &backup->copy, err);
    if (rc < 0)
        return rc;
    backup->number++;
    backup->copied_ms = now_ms;
    history_tell(service->state, "backed-up", "", "", NULL, "%s fetches a backup of %zu bytes",
                 caller, backup->copy.size);
    return 0;
}

/* Check that the copy which the caller is fetching still exists, and that the offset lies in it.
 * -ECANCELED, -EINVAL. */
static int backup_find(const struct backup *backup, const Gimbal__BackupRequest *request,
                       struct error *err)
{
    if (!backup->copy.bytes || request->copy != backup->number)
        return error_set(err, -ECANCELED,
                         "this backup is over: another was begun meanwhile, or it was not fetched "
                         "for a minute; begin again");
    if (request->offset >= backup->copy.size)
        return error_set(err, -EINVAL, "the backup has %zu bytes", backup->copy.size);
    return 0;
}

static void backup_fetch(struct rpc_call *call, void *data)
{
    struct service *service = data;
    struct backup *backup = &service->backup;
    const Gimbal__BackupRequest *request = rpc_call_request(call);
    Gimbal__BackupReply reply = GIMBAL__BACKUP_REPLY__INIT;
    struct error err;
    int rc = request->copy == 0 ? backup_begin(service, rpc_call_envelope(call)->caller, &err)
                                : backup_find(backup, request, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    size_t from = request->copy == 0 ? 0 : (size_t)request->offset;
    size_t left = backup->copy.size - from;
    backup->asked_ms = state_now_ms(service->state);
    reply.copy = backup->number;
    reply.unix_ms = backup->copied_ms;
    reply.size_bytes = backup->copy.size;
    reply.piece.data = backup->copy.bytes + from;
    reply.piece.len = left < PIECE_BYTES ? left : PIECE_BYTES;
    turn_run(service->state);
    rpc_call_reply(call, &reply.base);
}

uint64_t backup_next_ms(const struct service *service)
{
    return service->backup.copy.bytes ? service->backup.asked_ms + IDLE_MS : UINT64_MAX;
}

void backup_expire(struct service *service)
{
    if (state_now_ms(service->state) >= backup_next_ms(service))
        backup_let_go(&service->backup);
}

const struct service_handler cluster_handlers[] = {
    {COORDINATOR_LIST_NODES, cluster_list_nodes},
    {COORDINATOR_DRAIN, cluster_drain},
    {COORDINATOR_PLAN, cluster_plan},
    {COORDINATOR_WATCH_EVENTS, cluster_watch_events},
    {COORDINATOR_LIST_EVENTS, cluster_list_events},
    {0, NULL},
};

const struct service_handler backup_handlers[] = {
    {COORDINATOR_BACKUP, backup_fetch},
    {0, NULL},
};
