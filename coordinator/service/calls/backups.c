/* backups.c - hands an administrator a copy of the store, piece by piece.
 *
 * The copy is made in memory in one go, so it shows the store at a single moment; then it is
 * fetched. There is one copy at a time, kept for a minute after it was last asked for. Beginning
 * another backup ends the previous one. */
#include "coordinator/service/calls/calls.h"
#include "coordinator/service/internal.h"

#include <errno.h>
#include <string.h>

#define PIECE_BYTES ((size_t)4 << 20)
#define IDLE_MS 60000

static void let_go(struct service_backup *backup)
{
    store_copy_finish(&backup->copy);
}

static int begin(struct service *service, const char *caller, struct error *err)
{
    struct service_backup *backup = &service->backup;
    uint64_t now_ms = service_now_ms(service);
    let_go(backup);
    int rc = store_copy(service->options.store, now_ms, &backup->copy, err);
    if (rc < 0)
        return rc;
    backup->number++;
    backup->copied_ms = now_ms;
    service_tell(service, "backed-up", "", "", NULL, "%s fetches a backup of %zu bytes", caller,
                 backup->copy.size);
    return 0;
}

/* Check that the copy which the caller is fetching still exists, and that the offset lies in it.
 * -ECANCELED, -EINVAL. */
static int find(const struct service_backup *backup, const Gimbal__BackupRequest *request,
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

static void fetch(struct rpc_call *call, void *data)
{
    struct service *service = data;
    struct service_backup *backup = &service->backup;
    const Gimbal__BackupRequest *request = rpc_call_request(call);
    Gimbal__BackupReply reply = GIMBAL__BACKUP_REPLY__INIT;
    struct error err;
    int rc = request->copy == 0 ? begin(service, rpc_call_envelope(call)->caller, &err)
                                : find(backup, request, &err);
    if (rc < 0) {
        rpc_call_fail_errno(call, rc, &err);
        return;
    }
    size_t from = request->copy == 0 ? 0 : (size_t)request->offset;
    size_t left = backup->copy.size - from;
    backup->asked_ms = service_now_ms(service);
    reply.copy = backup->number;
    reply.unix_ms = backup->copied_ms;
    reply.size_bytes = backup->copy.size;
    reply.piece.data = backup->copy.bytes + from;
    reply.piece.len = left < PIECE_BYTES ? left : PIECE_BYTES;
    service_turn(service);
    rpc_call_reply(call, &reply.base);
}

uint64_t service_backup_next_ms(const struct service *service)
{
    return service->backup.copy.bytes ? service->backup.asked_ms + IDLE_MS : UINT64_MAX;
}

void service_expire_backup(struct service *service)
{
    if (service_now_ms(service) >= service_backup_next_ms(service))
        let_go(&service->backup);
}

const struct service_handler backup_handlers[] = {
    {COORDINATOR_BACKUP, fetch},
    {0, NULL},
};
