/* rules.c - decides which requests are answered. */
#include "coordinator/web/internal.h"

#include <errno.h>
#include <mbedtls/constant_time.h>
#include <string.h>
#include <strings.h>

#define BEARER "Bearer "

static bool is_shown(const char *authorization, const char *token)
{
    if (!authorization || strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
        return false;
    const char *shown = authorization + strlen(BEARER);
    return strlen(shown) == strlen(token) && mbedtls_ct_memcmp(shown, token, strlen(token)) == 0;
}

/* "localhost:7079" and the like: names that cannot be made to resolve to another machine. */
static bool is_loopback(const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t length = strlen(names[i]);
        if (strncasecmp(host, names[i], length) == 0 &&
            (host[length] == '\0' || host[length] == ':'))
            return true;
    }
    return false;
}

/* Whether the request was made by a page of another site, according to the browser. */
static bool is_foreign(const char *origin, const char *host)
{
    const char *of = origin ? strstr(origin, "://") : NULL;
    return origin && (!of || !host || strcasecmp(of + strlen("://"), host) != 0);
}

unsigned web_judge(const struct web_request *request, const struct web_page *page, const char *url,
                   const char *token, struct error *err)
{
    if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        error_set(err, 0, "pages are read, by GET or HEAD, and not changed");
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    }
    if (is_foreign(request->origin, request->host)) {
        error_set(err, 0, "a page of another site asks for it");
        return MHD_HTTP_FORBIDDEN;
    }
    if (!token && (!request->host || !is_loopback(request->host))) {
        error_set(err, 0, "the Host of a request has to be localhost, 127.0.0.1 or [::1] here");
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (token && !(page && page->open) && !is_shown(request->authorization, token)) {
        error_set(err, 0, "it needs the token: Authorization: Bearer TOKEN");
        return MHD_HTTP_UNAUTHORIZED;
    }
    if (!page) {
        error_set(err, 0, "there is no page '%.64s'", url);
        return MHD_HTTP_NOT_FOUND;
    }
    return 0;
}

unsigned web_status(int rc)
{
    switch (rc) {
    case -ENOENT:
        return MHD_HTTP_NOT_FOUND;
    case -EINVAL:
        return MHD_HTTP_BAD_REQUEST;
    case -EBUSY:
        return MHD_HTTP_SERVICE_UNAVAILABLE;
    default:
        return MHD_HTTP_INTERNAL_SERVER_ERROR;
    }
}
