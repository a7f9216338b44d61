/* papers.h - certificates for tests, good ones and bad ones, made where they are needed. */
#ifndef TESTS_COMMON_RPC_PAPERS_H
#define TESTS_COMMON_RPC_PAPERS_H

#include "common/rpc/transport.h"
#include "coordinator/cli/authority.h"

enum signer { SIGNER_SERVER, SIGNER_WORKER, SIGNER_USER, SIGNER_ADMIN, SIGNER_STRANGER, SIGNERS };

struct papers {
    struct certificate authorities[SIGNERS];
    struct certificate server; /* for 127.0.0.1 */
};

void papers_init(struct papers *papers);
void papers_finish(struct papers *papers);

/* A client's certificate, valid from begin_s to end_s seconds from now on. */
struct certificate papers_client(const struct papers *papers, enum signer signer, int begin_s,
                                 int end_s);
/* A server's, for one host. */
struct certificate papers_server(const struct papers *papers, enum signer signer, const char *host,
                                 int begin_s, int end_s);
/* The two sides, lending what they are made of. */
struct rpc_tls papers_tls(const struct papers *papers, const struct certificate *own,
                          enum signer believed);

#endif
