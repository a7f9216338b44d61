/* agreed.c - reads a file of tokens line by line. */
#include "coordinator/identity/agreed.h"

#include "common/base/units.h"
#include "common/trust/secret.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* One line of the file: role, token, validity, uses. */
static int register_line(struct identity *identity, const char *line,
                         const struct agreed_tokens *tokens, struct error *err)
{
    char role[16], token[IDENTITY_TOKEN_SIZE], ttl[32], rest;
    struct identity_grant grant = {.name = ""};
    const struct identity_token *added = NULL;
    double ttl_s = 0;
    if (sscanf(line, "%15s %81s %31s %u %c", role, token, ttl, &grant.uses, &rest) != 4)
        return error_set(err, -EINVAL,
                         "it wants four words: worker or user, ID.SECRET, how long it lasts, and "
                         "its uses");
    int rc = identity_role_parse(role, &grant.role, err);
    if (rc == 0)
        rc = units_seconds(ttl, &ttl_s, err);
    if (rc == 0 && (ttl_s <= 0 || ttl_s * 1000 > (double)IDENTITY_TTL_MS_MAX))
        rc = error_set(err, -EINVAL, "a token lasts for at most 744h, and not for no time");
    grant.ttl_ms = (uint64_t)(ttl_s * 1000);
    if (rc == 0)
        rc = identity_register(identity, &grant, token, tokens->now_ms, &added, err);
    if (added && tokens->added_cb)
        tokens->added_cb(tokens->data, added);
    explicit_bzero(token, sizeof token);
    return rc;
}

int agreed_register(struct identity *identity, const char *path, const struct agreed_tokens *tokens,
                    struct error *err)
{
    char *text;
    unsigned number = 0;
    int rc = secret_read(path, &text, err);
    if (rc < 0)
        return error_prefix(err, -EINVAL, "join_tokens");
    for (char *rest = text, *line; rc == 0 && (line = strsep(&rest, "\n"));) {
        number++;
        line += strspn(line, " \t");
        if (*line && *line != '#')
            rc = register_line(identity, line, tokens, err);
    }
    secret_free(text);
    return rc < 0 ? error_prefix(err, rc, "join_tokens: %s:%u", path, number) : 0;
}

int agreed_check(const char *path, struct error *err)
{
    static const struct agreed_tokens nobody = {.now_ms = 0};
    struct identity *identity = identity_create();
    int rc = agreed_register(identity, path, &nobody, err);
    identity_destroy(identity);
    return rc;
}
