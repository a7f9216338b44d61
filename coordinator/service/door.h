/* door.h - who may come in, and whether there is room for what they bring.
 *
 * A listener without TLS is on loopback and trusts everybody who can call there. With TLS, the
 * listener determines a caller's role, and a credential proves which caller of that role it is. An
 * administrator is whoever has an administrator's certificate: administrators let others in, so
 * nobody lets them in, and their names are mere labels.
 *
 * A turn cannot be undone, and nobody hears of it before it is durable. So the store's disk is
 * looked at before a turn, not after it. With little room, nothing new is accepted: what the store
 * has set aside is for the records of jobs that there are. With none there are no turns: calls that
 * only read are answered, others are refused before they are handled, and no worker counts as
 * silent. Training goes on, as without a coordinator, and so does all of this once there is room.
 */
#ifndef COORDINATOR_SERVICE_DOOR_H
#define COORDINATOR_SERVICE_DOOR_H

#include "common/rpc/coordinator_service.h"
#include "common/trust/bundle.h"
#include "coordinator/identity/identity.h"
#include "coordinator/turn/state.h"

/* The handler of a method, behind door_guard(). */
struct door_guarded {
    const struct door *door;
    enum coordinator_method method;
    rpc_handler_cb cb;
    void *data;
};

struct door {
    struct state *state; /* lent, as is the next */
    struct identity *identity;
    struct door_guarded guarded[COORDINATOR_METHOD_COUNT];
    bool tls;
    /* What is known of rejected callers, and how much of that was logged. */
    uint64_t looked_ms, handshakes_told, unfinished_untold;
    uint64_t refusal_told_ms, refusals_untold;
    /* What the store's disk had room for when it was last looked at. */
    enum store_room left;
    struct error disk_words; /* unless there is enough */
    uint64_t none_since_ms;
};

/* As service_listen(), service_address() and service_address_lines(). */
int door_listen(struct door *door, const char *address, const struct bundle *bundle,
                struct error *err);
const char *door_address(const struct door *door);
char *door_address_lines(const struct door *door);

/* Whether callers in these roles are trusted in everything they say; and the server's
 * rpc_admit_cb. */
bool door_trusts_all(unsigned roles);
int door_admit(struct door *door, unsigned roles, const Gimbal__Envelope *envelope,
               struct error *err);
/* Whether the caller may cancel, pause or resume the job; -EACCES with a message. */
int door_may_change(const struct rpc_call *call, const struct job *job, struct error *err);
/* Whose job it is if the caller submits on behalf of `wanted` ("": of itself); *user is lent.
 * -EACCES: it may not. */
int door_submits_as(const struct rpc_call *call, const char *wanted, const char **user,
                    struct error *err);
/* -EACCES unless the caller is that node. */
int door_speaks_for(const struct rpc_call *call, const char *node, struct error *err);
/* Find the job in this epoch, also if it has ended, provided that the caller has that rank of it,
 * or any rank if `rank` is NULL. -ENOENT, -ESTALE. */
int door_find_rank(const struct state *state, struct rpc_call *call, const char *id, uint64_t epoch,
                   const uint32_t *rank, const struct job **out, struct error *err);

/* Log that a caller was refused: the first refusal at once, later ones as a count. */
void door_note_refusal(struct door *door, const Gimbal__Envelope *envelope,
                       const struct error *err);
/* Log rejected connections that were not reported yet: at once, or when it is time. */
void door_tell(struct door *door);
void door_watch(struct door *door);
/* When door_watch() next has something to do; UINT64_MAX: never. */
uint64_t door_next_ms(const struct door *door);

/* Look at the store's disk, before a turn. */
void door_look_at_disk(struct door *door);
/* -ENOSPC, with words, if nothing new may be accepted. */
int door_check_disk(const struct door *door, struct error *err);
/* Handle a call if there is room for what it may change; data is its struct door_guarded. */
void door_guard(struct rpc_call *call, void *data);

#endif
