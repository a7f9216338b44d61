/* papers.c - by the same code as `gimbal cluster init`. */
#include "tests/common/rpc/papers.h"

#include <check.h>
#include <time.h>

#define HOUR_S 3600

static struct certificate make(struct certificate_request *request, const struct certificate *by,
                               int begin_s, int end_s)
{
    struct certificate out = {0};
    struct error err = {""};
    int64_t now_s = (int64_t)time(NULL);
    request->not_before_s = now_s + begin_s;
    request->not_after_s = now_s + end_s;
    ck_assert_msg(certificate_make(request, by, &out, &err) == 0, "%s", err.text);
    return out;
}

void papers_init(struct papers *papers)
{
    static const char *const names[SIGNERS] = {"server authority", "worker authority",
                                               "user authority", "admin authority", "stranger"};
    for (unsigned i = 0; i < SIGNERS; i++) {
        struct certificate_request request = {.use = CERTIFICATE_AUTHORITY, .name = names[i]};
        papers->authorities[i] = make(&request, NULL, -100 * HOUR_S, 100 * HOUR_S);
    }
    papers->server = papers_server(papers, SIGNER_SERVER, "127.0.0.1", -HOUR_S, HOUR_S);
}

void papers_finish(struct papers *papers)
{
    for (unsigned i = 0; i < SIGNERS; i++)
        certificate_finish(&papers->authorities[i]);
    certificate_finish(&papers->server);
}

struct certificate papers_client(const struct papers *papers, enum signer signer, int begin_s,
                                 int end_s)
{
    struct certificate_request request = {.use = CERTIFICATE_CLIENT, .name = "client"};
    return make(&request, &papers->authorities[signer], begin_s, end_s);
}

struct certificate papers_server(const struct papers *papers, enum signer signer, const char *host,
                                 int begin_s, int end_s)
{
    const char *hosts[] = {host, NULL};
    struct certificate_request request = {
        .use = CERTIFICATE_SERVER, .name = "server", .hosts = hosts};
    return make(&request, &papers->authorities[signer], begin_s, end_s);
}

struct rpc_tls papers_tls(const struct papers *papers, const struct certificate *own,
                          enum signer believed)
{
    return (struct rpc_tls){own->text, own->key, papers->authorities[believed].text};
}
