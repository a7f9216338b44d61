/* pass.h - what lets this node in where the coordinator speaks TLS: certificates, which are those
 * of any worker, and a credential, which is this node's own.
 *
 * The credential is got once, for a join token, and kept in the state folder before anything is
 * done with it. From then on no token is needed, and none is read. */
#ifndef WORKER_DAEMON_PASS_H
#define WORKER_DAEMON_PASS_H

#include "common/rpc/client.h"
#include "common/trust/bundle.h"
#include "common/trust/credential.h"
#include "worker/daemon/settings.h"

/* Zeroed: none is needed. */
struct pass {
    struct bundle *bundle;
    struct credential credential;
    struct rpc_tls tls; /* lends from the bundle */
};

/* Have certificates and a credential, and join where there is none, for as long as it takes to
 * reach the coordinator; a signal ends that. -EINTR then; -EINVAL for what is set wrong, -EACCES
 * when the coordinator refuses, else -errno. */
int pass_open(const struct worker_settings *settings, int signal_fd, struct pass *out,
              struct error *err);
/* The same without joining: *joined says whether there is a credential. */
int pass_open_kept(const struct worker_settings *settings, struct pass *out, bool *joined,
                   struct error *err);
void pass_finish(struct pass *pass);
/* Could it be had? Nothing is asked of the coordinator. */
int pass_check(const struct worker_settings *settings, struct error *err);

/* What calls of this node need of it. */
void pass_apply(const struct pass *pass, struct rpc_client_options *options);

#endif
