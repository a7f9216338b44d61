/* test_web_rules.c - who is answered what over HTTP, and where. */
#include "coordinator/web/web.h"

#include <errno.h>

#include "tests/support/suite.h"

static const struct web_page secret = {"/metrics", "text/plain", .open = false},
                             open_page = {"/livez", "text/plain", .open = true};

static const struct rule {
    const char *method, *host, *origin, *authorization;
    const struct web_page *page;
    const char *token;
    unsigned status; /* 0: it is answered */
} rules[] = {
    {"GET", "127.0.0.1:7079", NULL, NULL, &secret, NULL, 0},
    {"HEAD", "localhost", NULL, NULL, &secret, NULL, 0},
    {"GET", "[::1]:7079", NULL, NULL, &secret, NULL, 0},
    {"GET", "127.0.0.1:7079", "http://127.0.0.1:7079", NULL, &secret, NULL, 0},
    {"POST", "127.0.0.1:7079", NULL, NULL, &secret, NULL, 405},
    {"DELETE", "127.0.0.1:7079", NULL, NULL, NULL, NULL, 405},
    {"GET", "127.0.0.1:7079", "http://evil.example", NULL, &secret, NULL, 403},
    {"GET", "127.0.0.1:7079", "null", NULL, &secret, NULL, 403},
    {"GET", NULL, "http://127.0.0.1:7079", NULL, &secret, NULL, 403},
    {"GET", "evil.example", NULL, NULL, &secret, NULL, 421}, /* a name made to point here */
    {"GET", "localhost.evil.example", NULL, NULL, &open_page, NULL, 421},
    {"GET", "127.0.0.1.evil.example:7079", NULL, NULL, &secret, NULL, 421},
    {"GET", NULL, NULL, NULL, &secret, NULL, 421},
    {"GET", "127.0.0.1:7079", NULL, NULL, NULL, NULL, 404},
    /* With a token, wherever. */
    {"GET", "node-a:7079", NULL, "Bearer abc", &secret, "abc", 0},
    {"GET", "node-a:7079", NULL, "bearer abc", &secret, "abc", 0},
    {"GET", "node-a:7079", NULL, NULL, &open_page, "abc", 0},
    {"GET", "node-a:7079", NULL, NULL, &secret, "abc", 401},
    {"GET", "node-a:7079", NULL, "Bearer abd", &secret, "abc", 401},
    {"GET", "node-a:7079", NULL, "Bearer abcd", &secret, "abc", 401},
    {"GET", "node-a:7079", NULL, "Bearer ", &secret, "abc", 401},
    {"GET", "node-a:7079", NULL, "Basic abc", &secret, "abc", 401},
    {"GET", "node-a:7079", NULL, "Basic abc", NULL, "abc", 401}, /* nor which pages there are */
    {"GET", "node-a:7079", NULL, "Bearer abc", NULL, "abc", 404},
    {"GET", "node-a:7079", "https://node-b:7079", "Bearer abc", &secret, "abc", 403},
    {"PUT", "node-a:7079", NULL, "Bearer abc", &secret, "abc", 405},
};

START_TEST(a_request_is_answered_or_refused_by_the_table)
{
    const struct rule *rule = &rules[_i];
    struct web_headers headers = {rule->method, rule->host, rule->origin, rule->authorization};
    struct error err = {""};
    unsigned status = web_judge(&headers, rule->page, "/x", rule->token, &err);
    ck_assert_uint_eq(status, rule->status);
    ck_assert((status == 0) == (err.text[0] == '\0'));
}
END_TEST

static const struct place {
    const char *text;
    bool has_bundle, has_token;
    const char *words; /* NULL: it is right */
} places[] = {
    {"127.0.0.1:7079", false, false, NULL},
    {"127.0.0.1:0", true, false, NULL},
    {"localhost:7079", true, true, NULL},
    {"[::1]:7079", false, false, NULL},
    {"0.0.0.0:7079", true, true, NULL},
    {"0.0.0.0:7079", true, false, "whoever reads there has to show a token"},
    {"0.0.0.0:7079", false, true, "served over TLS only"},
    {"node-a:7079", false, false, "served over TLS only"},
    {"7079", false, false, "'7079' is no HOST:PORT, as in 127.0.0.1:7079"},
    {"http://127.0.0.1:7079", false, false, "is no HOST:PORT"},
    {":7079", false, false, "is no HOST:PORT"},
    {"127.0.0.1:65536", false, false, "is no HOST:PORT"},
    {"", false, false, "is no HOST:PORT"},
};

START_TEST(an_address_that_is_wrong_is_said_to_be)
{
    const struct place *place = &places[_i];
    struct error err = {""};
    int rc = web_check(place->text, place->has_bundle, place->has_token, &err);
    ck_assert_int_eq(rc, place->words ? -EINVAL : 0);
    if (place->words)
        ck_assert_msg(strstr(err.text, place->words) != NULL, "%s", err.text);
}
END_TEST

SUITE(web_rules)
{
    TCase *tcase = tcase_create("web rules");
    tcase_add_loop_test(tcase, a_request_is_answered_or_refused_by_the_table, 0,
                        (int)(sizeof rules / sizeof *rules));
    tcase_add_loop_test(tcase, an_address_that_is_wrong_is_said_to_be, 0,
                        (int)(sizeof places / sizeof *places));
    return suite_run("web rules", tcase, NULL);
}
