/* credentials.h - lets this node in where the coordinator speaks TLS: the certificates, which are
 * the same for every worker, and a credential, which is this node's own.
 *
 * The credential is obtained once, in exchange for a join token, and is written to the state folder
 * before it is used. From then on no token is needed or read. */
#ifndef WORKER_NODE_CREDENTIALS_H
#define WORKER_NODE_CREDENTIALS_H

#include "common/rpc/client.h"
#include "common/trust/bundle.h"
#include "common/trust/secret.h"
#include "worker/node/settings.h"

/* Zeroed: TLS is not used. */
struct credentials {
    struct bundle *bundle;
    struct credential credential;
    struct rpc_tls tls; /* points into the bundle */
};

/* Load the certificates and the credential. A node without a credential joins first, for as long as
 * it takes to reach the coordinator. -EINTR: signal_fd became readable; -EINVAL: wrong settings;
 * -EACCES: the coordinator refuses; otherwise -errno. */
int credentials_open(const struct worker_settings *settings, int signal_fd, struct credentials *out,
                     struct error *err);
/* The same without joining; *joined says whether there is a credential. */
int credentials_open_kept(const struct worker_settings *settings, struct credentials *out,
                          bool *joined, struct error *err);
/* Free it, and erase the secret. */
void credentials_finish(struct credentials *credentials);
/* Check the files only: whether certificates are valid, and a credential or token is there. */
int credentials_check(const struct worker_settings *settings, struct error *err);

/* Set the TLS options of a client; does nothing if TLS is not used. Lends from pass. */
void credentials_apply(const struct credentials *credentials, struct rpc_client_options *options);

#endif
