/* room.c - what is done while the store's disk is full.
 *
 * A turn cannot be undone, and nobody hears of it before it is durable. So room is looked for
 * before a turn, not after it. With little room, nothing new is accepted: what the store has set
 * aside is for the records of jobs that there are. With none there are no turns: calls that only
 * read are answered, others are refused before they are handled, and no worker counts as silent.
 * Training goes on, as without a coordinator, and so does all of this once there is room. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include "common/base/log.h"

#include <errno.h>

/* Calls that put nothing into the store and cause no turn. */
static const bool only_reads[COORDINATOR_METHOD_COUNT] = {
    [COORDINATOR_HELLO] = true,
    [COORDINATOR_GET_JOB] = true,
    [COORDINATOR_LIST_JOBS] = true,
    [COORDINATOR_LIST_NODES] = true,
    [COORDINATOR_GET_LOGS] = true,
    [COORDINATOR_GET_TRACE] = true,
    [COORDINATOR_WATCH_EVENTS] = true,
    [COORDINATOR_LIST_EVENTS] = true,
    [COORDINATOR_LIST_CREDENTIALS] = true,
};

static void tell(const struct service *service)
{
    const char *words = service->room.words.text;
    if (service->room.left == STORE_ROOM_ENOUGH)
        log_line(LOG_INFO, "there is room again on the disk of the store");
    if (service->room.left == STORE_ROOM_LITTLE)
        log_line(LOG_WARN, "%s; jobs go on, and new ones are refused", words);
    if (service->room.left == STORE_ROOM_NONE)
        log_line(LOG_WARN, "%s; until then only questions are answered", words);
}

void service_look_for_room(struct service *service)
{
    struct service_room *room = &service->room;
    enum store_room before = room->left;
    uint64_t now_ms = service_now_ms(service);
    room->left = store_room(service->options.store, now_ms, &room->words);
    if (room->left == before)
        return;
    tell(service);
    if (before == STORE_ROOM_NONE)
        membership_excuse(service->membership, now_ms - room->none_since_ms, now_ms);
    if (room->left == STORE_ROOM_NONE)
        room->none_since_ms = now_ms;
}

int service_check_room(const struct service *service, struct error *err)
{
    if (service->room.left == STORE_ROOM_ENOUGH)
        return 0;
    return error_set(err, -ENOSPC,
                     "%s; until then jobs that there are go on, and nothing new is accepted",
                     service->room.words.text);
}

/* Workers take UNAVAILABLE for a coordinator that is away, and ask again. */
static void refuse(struct rpc_call *call, const struct service_guarded *guarded)
{
    bool by_worker = service_coordinator.methods[guarded->method].roles == RPC_WORKER;
    rpc_call_fail(call, by_worker ? RPC_UNAVAILABLE : RPC_RESOURCE_EXHAUSTED,
                  "%s; until then only questions are answered", guarded->service->room.words.text);
}

void service_guard(struct rpc_call *call, void *data)
{
    const struct service_guarded *guarded = data;
    if (guarded->service->room.left == STORE_ROOM_NONE && !only_reads[guarded->method])
        refuse(call, guarded);
    else
        guarded->cb(call, guarded->service);
}
