/* gate.h - a real coordinator with TLS, certificates from `gimbal cluster init`, and callers of
 * every role. */
#ifndef TESTS_CLUSTER_GATE_H
#define TESTS_CLUSTER_GATE_H

#include "common/rpc/client.h"
#include "common/rpc/coordinator_service.h"
#include "common/trust/bundle.h"
#include "tests/cluster/command.h"

struct gate {
    char directory[64]; /* with c/, the bundles, and a/, the store */
    char address[96];
    struct command coordinator;
    struct bundle *bundles[BUNDLE_ROLES];
};

/* In the folder, where there need not be such a thing; lent, and good for the next 30 calls. */
const char *gate_path(const struct gate *gate, const char *name);
/* Further arguments of the coordinator end with NULL; NULL: none. */
void gate_open(struct gate *gate, const char *const *arguments);
/* SIGKILL, and again with its store, at another address. */
void gate_kill(struct gate *gate);
void gate_start(struct gate *gate, const char *const *arguments);
/* SIGTERM, which it obeys with 0; what it has logged is in coordinator.err. */
void gate_stop(struct gate *gate);
/* The folder goes. */
void gate_close(struct gate *gate);

/* A client that has said Hello; yours, by rpc_client_close. */
struct rpc_client *gate_client(const struct gate *gate, enum bundle_role role, const char *caller,
                               const char *credential);
/* Call and wait: the status, and where it is not RPC_OK the words. *reply may be NULL. */
enum rpc_status gate_ask(struct rpc_client *client, unsigned method, const void *request,
                         ProtobufCMessage **reply, struct error *words);
/* The call must end so, and its words have these among them. */
void gate_expect(struct rpc_client *client, unsigned method, const void *request,
                 enum rpc_status status, const char *words);

/* A token as an administrator gets it. */
void gate_issue(const struct gate *gate, const char *role, const char *name, uint64_t ttl_ms,
                uint32_t uses, char token[128]);
/* Try to join by it: the status; on RPC_OK the credential. */
enum rpc_status gate_join(const struct gate *gate, enum bundle_role role, const char *name,
                          const char *token, char credential[128], struct error *words);
/* A caller that has joined, by a token of its own. */
struct rpc_client *gate_member(const struct gate *gate, enum bundle_role role, const char *name,
                               char credential[128]);
/* An administrator revokes the name. */
void gate_put_out(const struct gate *gate, const char *role, const char *name);

#endif
