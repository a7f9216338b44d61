/* test_identity.c - tokens are good for what they were issued for and no more, and a name has the
 * credential that it was given last, or none. */
#include "coordinator/identity/identity.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NOW_MS 1800000000000
#define HOUR_MS 3600000

static struct identity *identity;
static struct error err;
static uint8_t drawn;

static void set_up(void)
{
    identity = identity_create();
    drawn = 0;
}

static void tear_down(void)
{
    identity_destroy(identity);
}

/* Not random at all, and each different. */
static const uint8_t *draw(void)
{
    static uint8_t random[IDENTITY_RANDOM_BYTES];
    memset(random, ++drawn, sizeof random);
    memset(random, 0x80 | drawn, 8); /* what a token's id is made of */
    return random;
}

static const char *issue(enum identity_role role, const char *name, uint32_t uses)
{
    static char text[4][IDENTITY_TOKEN_SIZE];
    struct identity_grant grant = {role, name, HOUR_MS, uses};
    const struct identity_token *token;
    char *out = text[drawn % 4];
    ck_assert_msg(identity_issue(identity, &grant, NOW_MS, draw(), out, &token, &err) == 0, "%s",
                  err.text);
    return out;
}

static void draw_secret(char out[IDENTITY_SECRET_SIZE])
{
    const uint8_t *random = draw();
    for (int i = 0; i < (IDENTITY_SECRET_SIZE - 1) / 2; i++)
        snprintf(out + 2 * i, 3, "%02x", random[IDENTITY_RANDOM_BYTES - 1]);
}

/* Join at a time; the secret goes to *out, which may be NULL. */
static int join_at(enum identity_role role, const char *name, const char *token, uint64_t now_ms,
                   char *out)
{
    struct identity_joined joined;
    char secret[IDENTITY_SECRET_SIZE];
    draw_secret(secret);
    if (out)
        memcpy(out, secret, sizeof secret);
    int rc = identity_join(identity, role, name, token, secret, now_ms, &joined, &err);
    if (rc == 0)
        ck_assert(joined.token && joined.credential);
    return rc;
}

static void assert_refused(int rc, int wanted, const char *words)
{
    ck_assert_msg(rc == wanted, "%d: %s", rc, err.text);
    ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
}

static void ignore(void *data, const struct identity_token *token)
{
    (void)token;
    ++*(size_t *)data;
}

static size_t revoke(enum identity_role role, const char *name)
{
    size_t tokens = 0;
    const struct identity_credential *credential;
    ck_assert_int_eq(
        identity_revoke(identity, role, name, NOW_MS, ignore, &tokens, &credential, &err), 0);
    return tokens;
}

START_TEST(a_token_is_changed_for_a_credential_that_admits)
{
    char secret[IDENTITY_SECRET_SIZE];
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "", 1), NOW_MS, secret),
                     0);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", secret, &err), 0);
}
END_TEST

START_TEST(neither_secret_is_kept)
{
    char secret[IDENTITY_SECRET_SIZE];
    const char *token = issue(IDENTITY_WORKER, "", 1);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", token, NOW_MS, secret), 0);
    const struct identity_token *stored = identity_token_at(identity, 0);
    const struct identity_credential *credential = identity_credential_at(identity, 0);
    ck_assert_ptr_null(memmem(stored, sizeof *stored, token + IDENTITY_ID_SIZE, 16));
    ck_assert_ptr_null(memmem(credential, sizeof *credential, secret, 16));
    uint8_t bytes[16];
    memset(bytes, drawn, sizeof bytes); /* what the secret was printed from */
    ck_assert_ptr_null(memmem(credential, sizeof *credential, bytes, sizeof bytes));
}
END_TEST

START_TEST(a_token_is_good_for_its_uses_and_no_more)
{
    const char *token = issue(IDENTITY_USER, "", 2);
    ck_assert_int_eq(join_at(IDENTITY_USER, "ada", token, NOW_MS, NULL), 0);
    ck_assert_int_eq(join_at(IDENTITY_USER, "bob", token, NOW_MS, NULL), 0);
    assert_refused(join_at(IDENTITY_USER, "eve", token, NOW_MS, NULL), -EKEYREJECTED,
                   "was used up");
}
END_TEST

START_TEST(a_refused_attempt_uses_nothing_up)
{
    const char *token = issue(IDENTITY_WORKER, "a", 1);
    ck_assert_int_lt(join_at(IDENTITY_WORKER, "b", token, NOW_MS, NULL), 0);
    ck_assert_int_lt(join_at(IDENTITY_WORKER, "no name!", token, NOW_MS, NULL), 0);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", token, NOW_MS, NULL), 0);
}
END_TEST

START_TEST(a_token_expires_at_its_last_millisecond)
{
    const char *token = issue(IDENTITY_WORKER, "", 2);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", token, NOW_MS + HOUR_MS - 1, NULL), 0);
    assert_refused(join_at(IDENTITY_WORKER, "b", token, NOW_MS + HOUR_MS, NULL), -EKEYREJECTED,
                   "has expired");
}
END_TEST

START_TEST(a_token_of_another_role_is_none)
{
    const char *token = issue(IDENTITY_USER, "", 1);
    assert_refused(join_at(IDENTITY_WORKER, "a", token, NOW_MS, NULL), -EKEYREJECTED,
                   "no such token for a worker");
}
END_TEST

START_TEST(a_token_with_another_secret_is_none)
{
    char token[IDENTITY_TOKEN_SIZE];
    snprintf(token, sizeof token, "%s", issue(IDENTITY_WORKER, "", 1));
    token[IDENTITY_TOKEN_SIZE - 2] ^= 1; /* '0' and '1' are neighbours */
    assert_refused(join_at(IDENTITY_WORKER, "a", token, NOW_MS, NULL), -EKEYREJECTED,
                   "no such token");
}
END_TEST

START_TEST(what_is_no_token_is_refused)
{
    static const char *const wrong[] = {
        "",
        ".",
        "0123456789abcdef",
        "0123456789abcdef.",
        "0123456789ABCDEF.00",
        "0123456789abcdef.0000000000000000000000000000000000000000000000000000000000000000x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(join_at(IDENTITY_WORKER, "a", wrong[i], NOW_MS, NULL), -EKEYREJECTED,
                       "this is no token");
}
END_TEST

/* The token has no use left by then, or another name has come. */
START_TEST(who_heard_no_answer_joins_again_with_what_it_offered)
{
    struct identity_joined joined;
    char secret[IDENTITY_SECRET_SIZE];
    const char *token = issue(IDENTITY_WORKER, "", 1);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", token, NOW_MS, secret), 0);
    ck_assert_int_eq(
        identity_join(identity, IDENTITY_WORKER, "a", token, secret, NOW_MS, &joined, &err), 0);
    ck_assert(!joined.token && !joined.credential);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", secret, &err), 0);
    assert_refused(
        identity_join(identity, IDENTITY_WORKER, "b", token, secret, NOW_MS, &joined, &err),
        -EKEYREJECTED, "was used up");
    ck_assert_uint_eq(identity_credential_count(identity), 1);
}
END_TEST

START_TEST(a_credential_is_a_secret_of_64_digits_that_was_never_revoked)
{
    static const char *const wrong[] = {"", "0123456789abcdef", "A", "not hexadecimal"};
    struct identity_joined joined;
    char secret[IDENTITY_SECRET_SIZE];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_refused(identity_join(identity, IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "", 1),
                                     wrong[i], NOW_MS, &joined, &err),
                       -EINVAL, "is not 64 hexadecimal digits");
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "", 1), NOW_MS, secret),
                     0);
    revoke(IDENTITY_WORKER, "a");
    assert_refused(identity_join(identity, IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "a", 1),
                                 secret, NOW_MS, &joined, &err),
                   -EACCES, "was revoked: remove its file");
}
END_TEST

START_TEST(a_name_that_has_joined_is_not_taken_over_by_any_token)
{
    char first[IDENTITY_SECRET_SIZE], second[IDENTITY_SECRET_SIZE];
    const char *open = issue(IDENTITY_WORKER, "", 9);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", open, NOW_MS, first), 0);
    assert_refused(join_at(IDENTITY_WORKER, "a", open, NOW_MS, NULL), -EEXIST,
                   "gimbal cluster token worker --name a");
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", first, &err), 0);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "a", 1), NOW_MS, second),
                     0);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", second, &err), 0);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", first, &err), -EKEYREJECTED);
}
END_TEST

START_TEST(credentials_are_of_one_role_and_one_name)
{
    char worker[IDENTITY_SECRET_SIZE], user[IDENTITY_SECRET_SIZE];
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "", 1), NOW_MS, worker),
                     0);
    ck_assert_int_eq(join_at(IDENTITY_USER, "a", issue(IDENTITY_USER, "", 1), NOW_MS, user), 0);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_USER, "a", user, &err), 0);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_USER, "a", worker, &err), -EKEYREJECTED);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "b", worker, &err), -EKEYREJECTED);
    assert_refused(identity_admit(identity, IDENTITY_WORKER, "a", "", &err), -EKEYREJECTED,
                   "shows no credential");
}
END_TEST

START_TEST(a_revoked_name_is_out_and_so_are_the_tokens_for_it)
{
    char secret[IDENTITY_SECRET_SIZE], before[IDENTITY_TOKEN_SIZE];
    const char *open = issue(IDENTITY_WORKER, "", 9);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", open, NOW_MS, secret), 0);
    snprintf(before, sizeof before, "%s", issue(IDENTITY_WORKER, "a", 1));
    ck_assert_uint_eq(revoke(IDENTITY_WORKER, "a"), 1);
    assert_refused(identity_admit(identity, IDENTITY_WORKER, "a", secret, &err), -EACCES,
                   "was revoked");
    /* Who has no right to know does not hear of it. */
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", "guess", &err), -EKEYREJECTED);
    assert_refused(join_at(IDENTITY_WORKER, "a", before, NOW_MS, NULL), -EKEYREJECTED,
                   "was used up");
    assert_refused(join_at(IDENTITY_WORKER, "a", open, NOW_MS, NULL), -EACCES, "was revoked");
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", issue(IDENTITY_WORKER, "a", 1), NOW_MS, secret),
                     0);
    ck_assert_int_eq(identity_admit(identity, IDENTITY_WORKER, "a", secret, &err), 0);
}
END_TEST

START_TEST(revoking_nobody_is_an_error)
{
    const struct identity_credential *credential;
    size_t tokens = 0;
    ck_assert_int_eq(identity_revoke(identity, IDENTITY_USER, "nobody", NOW_MS, ignore, &tokens,
                                     &credential, &err),
                     -ENOENT);
}
END_TEST

START_TEST(grants_out_of_bounds_are_refused)
{
    static const struct identity_grant wrong[] = {
        {IDENTITY_WORKER, "no name!", HOUR_MS, 1},
        {IDENTITY_WORKER, "", 0, 1},
        {IDENTITY_WORKER, "", IDENTITY_TTL_MS_MAX + 1, 1},
        {IDENTITY_WORKER, "", HOUR_MS, 0},
        {IDENTITY_WORKER, "", HOUR_MS, IDENTITY_USES_MAX + 1},
        {IDENTITY_WORKER, "a", HOUR_MS, 2},
    };
    char text[IDENTITY_TOKEN_SIZE];
    const struct identity_token *token;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(identity_issue(identity, &wrong[i], NOW_MS, draw(), text, &token, &err),
                         -EINVAL);
    ck_assert_uint_eq(identity_token_count(identity), 0);
}
END_TEST

START_TEST(a_token_agreed_upon_is_registered_once_and_keeps_its_count)
{
    static const char text[] =
        "0123456789abcdef.00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    struct identity_grant grant = {IDENTITY_WORKER, "", HOUR_MS, 1};
    const struct identity_token *token;
    ck_assert_int_eq(identity_register(identity, &grant, text, NOW_MS, &token, &err), 0);
    ck_assert_ptr_nonnull(token);
    ck_assert_int_eq(join_at(IDENTITY_WORKER, "a", text, NOW_MS, NULL), 0);
    ck_assert_int_eq(identity_register(identity, &grant, text, NOW_MS + HOUR_MS, &token, &err), 0);
    ck_assert_ptr_null(token);
    assert_refused(join_at(IDENTITY_WORKER, "b", text, NOW_MS, NULL), -EKEYREJECTED, "was used up");
}
END_TEST

SUITE(identity)
{
    TCase *tokens = tcase_create("tokens"), *names = tcase_create("names");
    tcase_add_checked_fixture(tokens, set_up, tear_down);
    tcase_add_checked_fixture(names, set_up, tear_down);
    tcase_add_test(tokens, a_token_is_changed_for_a_credential_that_admits);
    tcase_add_test(tokens, neither_secret_is_kept);
    tcase_add_test(tokens, a_token_is_good_for_its_uses_and_no_more);
    tcase_add_test(tokens, a_refused_attempt_uses_nothing_up);
    tcase_add_test(tokens, a_token_expires_at_its_last_millisecond);
    tcase_add_test(tokens, a_token_of_another_role_is_none);
    tcase_add_test(tokens, a_token_with_another_secret_is_none);
    tcase_add_test(tokens, what_is_no_token_is_refused);
    tcase_add_test(tokens, grants_out_of_bounds_are_refused);
    tcase_add_test(tokens, a_token_agreed_upon_is_registered_once_and_keeps_its_count);
    tcase_add_test(names, who_heard_no_answer_joins_again_with_what_it_offered);
    tcase_add_test(names, a_credential_is_a_secret_of_64_digits_that_was_never_revoked);
    tcase_add_test(names, a_name_that_has_joined_is_not_taken_over_by_any_token);
    tcase_add_test(names, credentials_are_of_one_role_and_one_name);
    tcase_add_test(names, a_revoked_name_is_out_and_so_are_the_tokens_for_it);
    tcase_add_test(names, revoking_nobody_is_an_error);
    return suite_run("identity", tokens, names, NULL);
}
