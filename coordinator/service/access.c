/* access.c - decides who may call in whose name and who may change a job, and logs refusals at a
 * limited rate.
 *
 * A listener without TLS is on loopback and trusts everybody who can call there. With TLS, the
 * listener determines a caller's role, and a credential proves which caller of that role it is. An
 * administrator is whoever has an administrator's certificate: administrators let others in, so
 * nobody lets them in, and their names are mere labels. */
#include "coordinator/service/internal.h"

#include "common/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Refusals are logged at most this often. It is also the time limit for a handshake, which normally
 * takes milliseconds. */
#define TELL_MS 10000

bool service_trusts_all(unsigned from)
{
    return from == RPC_EVERYBODY;
}

/* The first refusal is logged at once, later ones are only counted: a refused caller may come back
 * as often as it likes. */
void service_note_refusal(struct service *service, const Gimbal__Envelope *envelope,
                          const struct error *err)
{
    struct service_door *door = &service->door;
    uint64_t now_ms = service_now_ms(service);
    if (now_ms < door->refusal_told_ms + TELL_MS) {
        door->refusals_untold++;
        return;
    }
    log_line(LOG_WARN, "%.64s refused: %s", envelope->method, err->text);
    door->refusal_told_ms = now_ms;
}

int service_admit(void *data, unsigned from, const Gimbal__Envelope *envelope, struct error *err)
{
    struct service *service = data;
    if (service_trusts_all(from) || (from & RPC_ADMIN))
        return 0;
    enum identity_role role = from & RPC_WORKER ? IDENTITY_WORKER : IDENTITY_USER;
    int rc = identity_admit(service->identity, role, envelope->caller, envelope->credential, err);
    if (rc < 0)
        service_note_refusal(service, envelope, err);
    return rc;
}

int service_may_change(const struct rpc_call *call, const struct job *job, struct error *err)
{
    unsigned from = rpc_call_roles(call);
    if (service_trusts_all(from) || (from & RPC_ADMIN) ||
        strcmp(rpc_call_envelope(call)->caller, job->user) == 0)
        return 0;
    return error_set(err, -EACCES,
                     "%s is a job of user '%s': only that user and administrators may change it",
                     job->id, job->user);
}

int service_submits_as(const struct rpc_call *call, const char *wanted, const char **user,
                       struct error *err)
{
    const char *caller = rpc_call_envelope(call)->caller;
    *user = wanted[0] ? wanted : caller;
    if (service_trusts_all(rpc_call_roles(call)) || strcmp(*user, caller) == 0)
        return 0;
    return error_set(err, -EACCES, "user '%.64s' cannot submit a job of user '%.64s'", caller,
                     wanted);
}

int service_speaks_for(const struct rpc_call *call, const char *node, struct error *err)
{
    const char *caller = rpc_call_envelope(call)->caller;
    if (strcmp(caller, node) == 0)
        return 0;
    return error_set(err, -EACCES, "worker '%.64s' cannot speak for node '%.64s'", caller, node);
}

uint64_t service_door_next_ms(const struct service *service)
{
    return service->door.tls ? service->door.looked_ms + TELL_MS : UINT64_MAX;
}

void service_tell_door(struct service *service)
{
    struct service_door *door = &service->door;
    uint64_t refused = door->tls ? rpc_server_handshakes_refused(service->server) : 0;
    if (refused > door->handshakes_told)
        log_line(LOG_WARN,
                 "%" PRIu64 " connections were refused by TLS: no certificate, one of another "
                 "role or cluster, an expired one, or no TLS at all",
                 refused - door->handshakes_told);
    if (door->unfinished_untold > 0)
        log_line(LOG_WARN, "%" PRIu64 " connections did not finish their handshake in %d s",
                 door->unfinished_untold, TELL_MS / 1000);
    if (door->refusals_untold > 0)
        log_line(LOG_WARN,
                 "%" PRIu64 " more calls were refused for want of a credential that holds",
                 door->refusals_untold);
    if (door->refusals_untold > 0)
        door->refusal_told_ms = service_now_ms(service);
    door->refusals_untold = 0;
    door->unfinished_untold = 0;
    door->handshakes_told = refused;
    door->looked_ms = service_now_ms(service);
}

void service_watch_door(struct service *service)
{
    if (service_now_ms(service) < service_door_next_ms(service))
        return;
    service->door.unfinished_untold += rpc_server_end_handshakes(service->server, TELL_MS);
    service_tell_door(service);
}
