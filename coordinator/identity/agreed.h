/* agreed.h - join tokens that were agreed upon beforehand, in a file: a line each.
 *
 *     worker 0123456789abcdef.0123...  24h  8      # role, ID.SECRET, how long it lasts, uses */
#ifndef COORDINATOR_IDENTITY_AGREED_H
#define COORDINATOR_IDENTITY_AGREED_H

#include "coordinator/identity/identity.h"

struct agreed_tokens {
    uint64_t now_ms;
    /* One that was not known; NULL: nobody needs to be told. */
    void (*added_cb)(void *data, const struct identity_token *token);
    void *data;
};

/* As identity_register, all of them. -EINVAL: the file cannot be read, is open to others, or is
 * wrong, with file and line. */
int agreed_register(struct identity *identity, const char *path, const struct agreed_tokens *tokens,
                    struct error *err);
/* Would they be taken? */
int agreed_check(const char *path, struct error *err);

#endif
