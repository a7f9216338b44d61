/* agreed.h - join tokens agreed upon beforehand, from a file with one token per line:
 *
 *     worker 0123456789abcdef.0123...  24h  8      # role, ID.SECRET, validity, uses */
#ifndef COORDINATOR_IDENTITY_AGREED_H
#define COORDINATOR_IDENTITY_AGREED_H

#include "coordinator/identity/identity.h"

struct agreed_tokens {
    uint64_t now_ms;
    /* called for each token that was not known; NULL: nobody needs to be told */
    void (*added_cb)(void *data, const struct identity_token *token);
    void *data;
};

/* Register all tokens of the file as by identity_register(). -EINVAL: the file cannot be read, is
 * accessible to others, or is invalid; the message has file and line. */
int agreed_register(struct identity *identity, const char *path, const struct agreed_tokens *tokens,
                    struct error *err);
/* Check the file without registering anything. */
int agreed_check(const char *path, struct error *err);

#endif
