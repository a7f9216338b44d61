/* door.c - listeners, one for everybody on loopback or, with TLS, one for each role; what callers
 * may do; what is refused, logged at a limited rate; and a full disk. */
#include "coordinator/service/door.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/rpc/address.h"

/* Refusals are logged at most this often. It is also the time limit for a handshake, which normally
 * takes milliseconds. */
#define TELL_MS 10000

/* Port 0 asks for free ports. The roles need RPC_TLS_PORTS consecutive ones, which are looked for
 * below the range from which the system hands out ports. */
#define PORT_FIRST 20000
#define PORT_COUNT 12000
#define ATTEMPTS 64

static const struct {
    unsigned roles; /* roles that are let in */
    unsigned role;  /* role that the port belongs to */
    enum bundle_role client;
} doors[] = {
    {RPC_WORKER, RPC_WORKER, BUNDLE_WORKER},
    {RPC_USER, RPC_USER, BUNDLE_USER},
    {RPC_ADMIN | RPC_USER, RPC_ADMIN, BUNDLE_ADMIN}, /* and may do all that users may */
};
#define DOORS (sizeof doors / sizeof *doors)

/* Calls that put nothing into the store and cause no turn. */
static const bool only_reads[COORDINATOR_METHOD_COUNT] = {
    [COORDINATOR_HELLO] = true,       [COORDINATOR_GET_JOB] = true,
    [COORDINATOR_LIST_JOBS] = true,   [COORDINATOR_LIST_NODES] = true,
    [COORDINATOR_GET_LOGS] = true,    [COORDINATOR_GET_TRACE] = true,
    [COORDINATOR_GET_CURVE] = true,   [COORDINATOR_WATCH_EVENTS] = true,
    [COORDINATOR_LIST_EVENTS] = true, [COORDINATOR_LIST_CREDENTIALS] = true,
};

/* ---- where it listens ---- */

/* Listen for each role at its own port, counted from `port`; if one of them fails, at none. */
static int door_listen_from(struct door *door, const struct rpc_address *address, unsigned port,
                            const struct bundle *bundle, struct error *err)
{
    int rc = 0;
    if (port + RPC_TLS_PORTS - 1 > UINT16_MAX)
        return error_set(err, -EINVAL,
                         "with TLS a coordinator takes %d ports, and from %u on there are fewer: "
                         "choose a smaller one",
                         RPC_TLS_PORTS, port);
    for (size_t i = 0; i < DOORS && rc == 0; i++) {
        char text[96];
        struct rpc_tls tls = {bundle->certificate, bundle->key, bundle->clients[doors[i].client]};
        rpc_address_print(text, sizeof text, address,
                          (uint16_t)(port + rpc_address_offset(doors[i].role)));
        rc = rpc_server_listen_tls(door->state->server, doors[i].roles, text, &tls, err);
    }
    if (rc < 0)
        rpc_server_unlisten(door->state->server);
    return rc;
}

static int door_listen_tls(struct door *door, const struct rpc_address *address,
                           const struct bundle *bundle, struct error *err)
{
    if (address->port)
        return door_listen_from(door, address, address->port, bundle, err);
    int rc = -EADDRINUSE;
    for (uint64_t i = 0; i < ATTEMPTS && rc == -EADDRINUSE; i++) {
        uint64_t place = (door->state->options.instance + i * 101) % (PORT_COUNT / RPC_TLS_PORTS);
        rc = door_listen_from(door, address, (unsigned)(PORT_FIRST + place * RPC_TLS_PORTS), bundle,
                              err);
    }
    return rc;
}

int door_listen(struct door *door, const char *text, const struct bundle *bundle, struct error *err)
{
    struct rpc_address address;
    int rc = rpc_address_parse(text, &address, err);
    if (rc == 0)
        rc = rpc_address_check_tls(&address, bundle != NULL, err);
    if (rc < 0)
        return rc;
    if (!bundle)
        return rpc_server_listen(door->state->server, RPC_EVERYBODY, text, err);
    door->tls = true;
    door->looked_ms = state_now_ms(door->state);
    return door_listen_tls(door, &address, bundle, err);
}

const char *door_address(const struct door *door)
{
    return rpc_server_address(door->state->server, 0);
}

char *door_address_lines(const struct door *door)
{
    if (!door->tls)
        return xasprintf("%s\n", door_address(door));
    char *lines = xstrdup("");
    for (size_t i = 0; i < DOORS; i++) {
        char *longer = xasprintf("%s%s %s\n", lines, bundle_role_name(doors[i].client),
                                 rpc_server_address(door->state->server, i));
        free(lines);
        lines = longer;
    }
    return lines;
}

/* ---- who may do what ---- */

bool door_trusts_all(unsigned from)
{
    return from == RPC_EVERYBODY;
}

/* The first refusal is logged at once, later ones are only counted: a refused caller may come back
 * as often as it likes. */
void door_note_refusal(struct door *door, const Gimbal__Envelope *envelope, const struct error *err)
{
    uint64_t now_ms = state_now_ms(door->state);
    if (now_ms < door->refusal_told_ms + TELL_MS) {
        door->refusals_untold++;
        return;
    }
    log_line(LOG_WARN, "%.64s refused: %s", envelope->method, err->text);
    door->refusal_told_ms = now_ms;
}

int door_admit(struct door *door, unsigned from, const Gimbal__Envelope *envelope,
               struct error *err)
{
    if (door_trusts_all(from) || (from & RPC_ADMIN))
        return 0;
    enum identity_role role = from & RPC_WORKER ? IDENTITY_WORKER : IDENTITY_USER;
    int rc = identity_admit(door->identity, role, envelope->caller, envelope->credential, err);
    if (rc < 0)
        door_note_refusal(door, envelope, err);
    return rc;
}

int door_may_change(const struct rpc_call *call, const struct job *job, struct error *err)
{
    unsigned from = rpc_call_roles(call);
    if (door_trusts_all(from) || (from & RPC_ADMIN) ||
        strcmp(rpc_call_envelope(call)->caller, job->user) == 0)
        return 0;
    return error_set(err, -EACCES,
                     "%s is a job of user '%s': only that user and administrators may change it",
                     job->id, job->user);
}

int door_submits_as(const struct rpc_call *call, const char *wanted, const char **user,
                    struct error *err)
{
    const char *caller = rpc_call_envelope(call)->caller;
    *user = wanted[0] ? wanted : caller;
    if (door_trusts_all(rpc_call_roles(call)) || strcmp(*user, caller) == 0)
        return 0;
    return error_set(err, -EACCES, "user '%.64s' cannot submit a job of user '%.64s'", caller,
                     wanted);
}

int door_speaks_for(const struct rpc_call *call, const char *node, struct error *err)
{
    const char *caller = rpc_call_envelope(call)->caller;
    if (strcmp(caller, node) == 0)
        return 0;
    return error_set(err, -EACCES, "worker '%.64s' cannot speak for node '%.64s'", caller, node);
}

int door_find_rank(const struct state *state, struct rpc_call *call, const char *id, uint64_t epoch,
                   const uint32_t *rank, const struct job **out, struct error *err)
{
    const struct job *job = jobs_find(state->jobs, id);
    if (!job)
        return error_set(err, -ENOENT, "there is no job '%.64s'", id);
    if (job->epoch != epoch)
        return error_set(err, -ESTALE,
                         "%s is in epoch %u: a message of epoch %" PRIu64 " comes too late", id,
                         job->epoch, epoch);
    const Gimbal__Envelope *envelope = rpc_call_envelope(call);
    for (size_t i = 0; i < job->rank_count; i++) {
        const struct device_ref *device = &job->ranks[i].device;
        if ((rank && *rank != i) || device->instance != envelope->client ||
            strcmp(device->worker, envelope->caller) != 0)
            continue;
        *out = job;
        return 0;
    }
    return error_set(err, -ESTALE, "%s has no such rank on this instance of worker '%s'", id,
                     envelope->caller);
}

/* ---- what is logged of it ---- */

uint64_t door_next_ms(const struct door *door)
{
    return door->tls ? door->looked_ms + TELL_MS : UINT64_MAX;
}

void door_tell(struct door *door)
{
    uint64_t refused = door->tls ? rpc_server_handshakes_refused(door->state->server) : 0;
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
        door->refusal_told_ms = state_now_ms(door->state);
    door->refusals_untold = 0;
    door->unfinished_untold = 0;
    door->handshakes_told = refused;
    door->looked_ms = state_now_ms(door->state);
}

void door_watch(struct door *door)
{
    if (state_now_ms(door->state) < door_next_ms(door))
        return;
    door->unfinished_untold += rpc_server_end_handshakes(door->state->server, TELL_MS);
    door_tell(door);
}

/* ---- the disk ---- */

static void door_tell_disk(const struct door *door)
{
    const char *words = door->disk_words.text;
    if (door->left == STORE_ROOM_ENOUGH)
        log_line(LOG_INFO, "there is room again on the disk of the store");
    if (door->left == STORE_ROOM_LITTLE)
        log_line(LOG_WARN, "%s; jobs go on, and new ones are refused", words);
    if (door->left == STORE_ROOM_NONE)
        log_line(LOG_WARN, "%s; until then only questions are answered", words);
}

void door_look_at_disk(struct door *door)
{
    enum store_room before = door->left;
    uint64_t now_ms = state_now_ms(door->state);
    door->left = store_room(door->state->options.store, now_ms, &door->disk_words);
    door->state->disk_scarce = door->left != STORE_ROOM_ENOUGH;
    if (door->left == before)
        return;
    door_tell_disk(door);
    if (before == STORE_ROOM_NONE)
        membership_excuse(door->state->membership, now_ms - door->none_since_ms, now_ms);
    if (door->left == STORE_ROOM_NONE)
        door->none_since_ms = now_ms;
}

int door_check_disk(const struct door *door, struct error *err)
{
    if (door->left == STORE_ROOM_ENOUGH)
        return 0;
    return error_set(err, -ENOSPC,
                     "%s; until then jobs that there are go on, and nothing new is accepted",
                     door->disk_words.text);
}

/* Workers take UNAVAILABLE for a coordinator that is away, and ask again. */
static void door_refuse(struct rpc_call *call, const struct door_guarded *guarded)
{
    bool by_worker = service_coordinator.methods[guarded->method].roles == RPC_WORKER;
    rpc_call_fail(call, by_worker ? RPC_UNAVAILABLE : RPC_RESOURCE_EXHAUSTED,
                  "%s; until then only questions are answered", guarded->door->disk_words.text);
}

void door_guard(struct rpc_call *call, void *data)
{
    const struct door_guarded *guarded = data;
    if (guarded->door->left == STORE_ROOM_NONE && !only_reads[guarded->method])
        door_refuse(call, guarded);
    else
        guarded->cb(call, guarded->data);
}
