/* test_trust.c - authorities, bundles, and files that are somebody else's to read or that do not
 * fit together. */
#include "common/trust/bundle.h"
#include "common/trust/certificate.h"
#include "common/trust/secret.h"
#include "coordinator/cli/authority.h"
#include "tests/support/suite.h"

#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW_S 1800000000
#define DAY_S 86400
#define ANY_ROLE 0xfu

static const char *const hosts[] = {"head.example.org", "10.0.0.5", "::1", NULL};
static char directory[64];

static struct authority_options options(void)
{
    return (struct authority_options){
        .directory = directory, .hosts = hosts, .days = 30, .now_s = NOW_S};
}

static void set_up(void)
{
    snprintf(directory, sizeof directory, "/tmp/gimbal-trust-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void tear_down(void)
{
    nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void create(void)
{
    struct authority_options wanted = options();
    struct error err = {""};
    ck_assert_msg(authority_create(&wanted, &err) == 0, "%s", err.text);
}

/* Of a path under the directory; lent until the next call. */
static const char *at(const char *path)
{
    static char out[128];
    snprintf(out, sizeof out, "%s/%s", directory, path);
    return out;
}

static void move(const char *from, const char *to)
{
    char old[128];
    snprintf(old, sizeof old, "%s", at(from));
    ck_assert_int_eq(rename(old, at(to)), 0);
}

static int load(const char *folder, unsigned roles, int64_t now_s, struct error *err)
{
    struct bundle *bundle = NULL;
    int rc = bundle_load(at(folder), roles, now_s, &bundle, err);
    bundle_destroy(bundle);
    return rc;
}

static void assert_refused(const char *folder, unsigned roles, int64_t now_s, const char *words)
{
    struct error err = {""};
    ck_assert_int_eq(load(folder, roles, now_s, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, words) != NULL, "%s", err.text);
}

static unsigned mode_of(const char *path)
{
    struct stat status;
    ck_assert_msg(stat(at(path), &status) == 0, "%s", path);
    return status.st_mode & 0777u;
}

START_TEST(every_role_has_a_bundle_that_passes_its_check)
{
    static const char *const folders[] = {"coordinator", "worker", "user", "admin"};
    struct error err = {""};
    create();
    for (unsigned role = 0; role < BUNDLE_ROLES; role++) {
        struct bundle *bundle;
        ck_assert_msg(bundle_load(at(folders[role]), ANY_ROLE, NOW_S, &bundle, &err) == 0, "%s",
                      err.text);
        ck_assert_int_eq(bundle->role, (int)role);
        ck_assert_ptr_nonnull(bundle->authority);
        for (unsigned client = BUNDLE_WORKER; client < BUNDLE_ROLES; client++)
            ck_assert_int_eq(bundle->clients[client] != NULL, role == BUNDLE_COORDINATOR);
        bundle_destroy(bundle);
    }
}
END_TEST

START_TEST(folders_and_keys_are_for_their_owner_alone)
{
    static const char *const folders[] = {"coordinator", "worker", "user", "admin", "ca"};
    static const char *const keys[] = {"coordinator/tls.key", "worker/tls.key", "user/tls.key",
                                       "admin/tls.key",       "ca/server.key",  "ca/worker.key",
                                       "ca/user.key",         "ca/admin.key"};
    create();
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        ck_assert_uint_eq(mode_of(folders[i]), 0700);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        ck_assert_uint_eq(mode_of(keys[i]), 0600);
}
END_TEST

START_TEST(a_folder_with_a_cluster_is_not_written_over)
{
    struct authority_options wanted = options();
    struct error err;
    char *before, *after;
    create();
    ck_assert_int_eq(secret_read(at("ca/server.key"), &before, &err), 0);
    ck_assert_int_eq(authority_create(&wanted, &err), -EEXIST);
    ck_assert_ptr_nonnull(strstr(err.text, "--renew"));
    ck_assert_int_eq(secret_read(at("ca/server.key"), &after, &err), 0);
    ck_assert_str_eq(before, after);
    secret_free(before);
    secret_free(after);
}
END_TEST

START_TEST(renewal_keeps_authorities_and_hosts_and_changes_keys)
{
    struct authority_options wanted = options();
    struct error err = {""};
    char *before, *after, *text, **names;
    create();
    ck_assert_int_eq(secret_read(at("worker/tls.key"), &before, &err), 0);
    wanted.hosts = NULL;
    wanted.now_s = NOW_S + 40 * DAY_S;
    assert_refused("worker", ANY_ROLE, wanted.now_s, "worker/tls.crt: it expired on 2027-02-14");
    ck_assert_msg(authority_renew(&wanted, &err) == 0, "%s", err.text);
    ck_assert_msg(load("worker", ANY_ROLE, wanted.now_s, &err) == 0, "%s", err.text);
    ck_assert_int_eq(secret_read(at("worker/tls.key"), &after, &err), 0);
    ck_assert_str_ne(before, after);
    ck_assert_int_eq(secret_read_public(at("coordinator/tls.crt"), &text, &err), 0);
    ck_assert_int_eq(certificate_read_hosts(text, &names, &err), 0);
    for (size_t i = 0; i < 4; i++) {
        if (hosts[i])
            ck_assert_str_eq(names[i], hosts[i]);
        else
            ck_assert_ptr_null(names[i]);
        free(names[i]);
    }
    free(names);
    free(text);
    secret_free(before);
    secret_free(after);
}
END_TEST

START_TEST(renewal_without_authorities_is_refused)
{
    struct authority_options wanted = options();
    struct error err;
    ck_assert_int_eq(authority_renew(&wanted, &err), -ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "ca/server.crt"));
}
END_TEST

START_TEST(renewal_does_not_outlive_its_authorities)
{
    struct authority_options wanted = options();
    struct error err;
    create();
    wanted.days = AUTHORITY_DAYS;
    wanted.now_s = NOW_S + DAY_S;
    ck_assert_int_eq(authority_renew(&wanted, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "is not valid for 3650 days more"));
}
END_TEST

START_TEST(a_host_that_is_none_is_refused)
{
    static const char *const wrong[][2] = {{"a b", NULL}, {"", NULL}, {NULL, NULL}};
    struct authority_options wanted = options();
    struct error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        wanted.hosts = wrong[i];
        ck_assert_int_eq(authority_create(&wanted, &err), -EINVAL);
    }
    ck_assert_int_eq(access(at("ca"), F_OK), -1);
}
END_TEST

/* As when the disk is full: the files may have 300 bytes, which is enough for a key. */
START_TEST(a_cluster_that_cannot_be_written_leaves_nothing_in_the_way)
{
    struct authority_options wanted = options();
    struct error err;
    struct rlimit before, small;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){300, before.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    ck_assert_int_lt(authority_create(&wanted, &err), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_msg(strstr(err.text, "/ca/server.crt") != NULL, "%s", err.text);
    ck_assert_int_eq(access(at("ca"), F_OK), -1);
    create();
}
END_TEST

START_TEST(a_key_that_others_may_read_is_refused)
{
    create();
    ck_assert_int_eq(chmod(at("worker/tls.key"), 0640), 0);
    assert_refused("worker", ANY_ROLE, NOW_S, "worker/tls.key is open to others than its owner");
    ck_assert_int_eq(chmod(at("worker/tls.key"), 0604), 0);
    assert_refused("worker", ANY_ROLE, NOW_S, "chmod 600");
}
END_TEST

START_TEST(a_missing_file_is_named)
{
    static const char *const paths[] = {"coordinator/tls.crt", "coordinator/tls.key",
                                        "coordinator/ca.crt", "coordinator/user-ca.crt"};
    create();
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        move(paths[i], "away");
        assert_refused("coordinator", ANY_ROLE, NOW_S, paths[i]);
        move("away", paths[i]);
    }
    assert_refused("nowhere", ANY_ROLE, NOW_S, "nowhere/tls.crt: No such file");
}
END_TEST

START_TEST(a_key_of_another_certificate_is_refused)
{
    create();
    move("user/tls.key", "worker/tls.key");
    assert_refused("worker", ANY_ROLE, NOW_S, "it is not the key of the certificate beside it");
}
END_TEST

START_TEST(what_is_no_pem_is_refused)
{
    struct error err;
    create();
    ck_assert_int_eq(secret_write(at("worker/ca.crt"), "garbage", &err), 0);
    assert_refused("worker", ANY_ROLE, NOW_S, "worker/ca.crt: it is no certificate in PEM");
    ck_assert_int_eq(secret_write(at("worker/tls.key"), "garbage", &err), 0);
    assert_refused("worker", ANY_ROLE, NOW_S, "worker/tls.key: it is no key in PEM");
}
END_TEST

START_TEST(a_certificate_is_refused_before_and_after_its_time)
{
    create();
    assert_refused("user", ANY_ROLE, NOW_S + 31 * DAY_S, "user/tls.crt: it expired on");
    assert_refused("user", ANY_ROLE, NOW_S - DAY_S, "set this machine's clock");
}
END_TEST

START_TEST(a_bundle_of_another_role_is_refused)
{
    create();
    assert_refused("worker", 1u << BUNDLE_COORDINATOR, NOW_S,
                   "is the bundle of role worker; wanted is that of coordinator");
    assert_refused("coordinator", 1u << BUNDLE_USER | 1u << BUNDLE_ADMIN, NOW_S,
                   "wanted is that of user or admin");
}
END_TEST

/* As Helm makes them: without an organizational unit. */
static void put_own(const char *name)
{
    struct certificate_request request = {.use = CERTIFICATE_CLIENT,
                                          .name = name,
                                          .not_before_s = NOW_S - DAY_S,
                                          .not_after_s = NOW_S + DAY_S};
    struct certificate own = {0};
    struct error err = {""};
    ck_assert_msg(certificate_make(&request, NULL, &own, &err) == 0, "%s", err.text);
    ck_assert_int_eq(secret_write(at("worker/tls.crt"), own.text, &err), 0);
    ck_assert_int_eq(secret_write(at("worker/tls.key"), own.key, &err), 0);
    certificate_finish(&own);
}

START_TEST(a_common_name_says_the_role_where_there_is_no_unit)
{
    struct error err = {""};
    create();
    put_own("worker");
    ck_assert_msg(load("worker", 1u << BUNDLE_WORKER, NOW_S, &err) == 0, "%s", err.text);
    put_own("node-a");
    assert_refused("worker", ANY_ROLE, NOW_S, "worker/tls.crt is for 'node-a'");
}
END_TEST

START_TEST(a_credential_is_read_as_it_was_written)
{
    struct credential out, in = {.name = "node-a"};
    struct error err = {""};
    memset(in.secret, 'f', sizeof in.secret - 1);
    ck_assert_int_eq(credential_read(at("credential"), &out, &err), -ENOENT);
    ck_assert_msg(credential_keep(at("credential"), &in, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(mode_of("credential"), 0600);
    ck_assert_msg(credential_read(at("credential"), &out, &err) == 0, "%s", err.text);
    ck_assert_str_eq(out.name, in.name);
    ck_assert_str_eq(out.secret, in.secret);
    ck_assert_int_eq(chmod(at("credential"), 0644), 0);
    ck_assert_int_eq(credential_read(at("credential"), &out, &err), -EACCES);
    ck_assert_int_eq(secret_write(at("credential"), "node-a short", &err), 0);
    ck_assert_int_eq(credential_read(at("credential"), &out, &err), -EINVAL);
}
END_TEST

/* Until it was taken, for who knows whether it was; then another time another one. */
START_TEST(what_was_offered_is_offered_again_until_it_was_taken)
{
    struct credential first, second;
    struct error err;
    ck_assert_msg(credential_offer(at("new"), "node-a", &first, &err) == 0, "%s", err.text);
    ck_assert_str_eq(first.name, "node-a");
    ck_assert_uint_eq(strspn(first.secret, "0123456789abcdef"), CREDENTIAL_SECRET_SIZE - 1);
    ck_assert_int_eq(credential_read(at("new"), &second, &err), -ENOENT);
    ck_assert_int_eq(credential_offer(at("new"), "node-a", &second, &err), 0);
    ck_assert_str_eq(second.secret, first.secret);
    ck_assert_int_eq(credential_offer(at("new"), "node-b", &second, &err), 0);
    ck_assert_str_ne(second.secret, first.secret);
    ck_assert_int_eq(credential_keep(at("new"), &second, &err), 0);
    ck_assert_int_eq(credential_read(at("new"), &first, &err), 0);
    ck_assert_str_eq(second.secret, first.secret);
    ck_assert_int_eq(credential_offer(at("new"), "node-b", &second, &err), 0);
    ck_assert_str_ne(second.secret, first.secret);
}
END_TEST

START_TEST(a_token_is_the_word_of_its_file)
{
    struct error err = {""};
    char *token;
    ck_assert_int_eq(secret_write(at("token"), " abc.def \n", &err), 0);
    ck_assert_int_eq(credential_read_token(at("token"), &token, &err), 0);
    ck_assert_str_eq(token, "abc.def");
    secret_free(token);
    ck_assert_int_eq(secret_write(at("token"), "\n", &err), 0);
    ck_assert_int_eq(credential_read_token(at("token"), &token, &err), -EINVAL);
}
END_TEST

SUITE(trust)
{
    TCase *authorities = tcase_create("authorities"), *bundles = tcase_create("bundles");
    TCase *files = tcase_create("files"), *all[] = {authorities, bundles, files};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tcase_add_checked_fixture(all[i], set_up, tear_down);
    tcase_add_test(authorities, every_role_has_a_bundle_that_passes_its_check);
    tcase_add_test(authorities, folders_and_keys_are_for_their_owner_alone);
    tcase_add_test(authorities, a_folder_with_a_cluster_is_not_written_over);
    tcase_add_test(authorities, renewal_keeps_authorities_and_hosts_and_changes_keys);
    tcase_add_test(authorities, renewal_without_authorities_is_refused);
    tcase_add_test(authorities, renewal_does_not_outlive_its_authorities);
    tcase_add_test(authorities, a_host_that_is_none_is_refused);
    tcase_add_test(bundles, a_cluster_that_cannot_be_written_leaves_nothing_in_the_way);
    tcase_add_test(bundles, a_key_that_others_may_read_is_refused);
    tcase_add_test(bundles, a_missing_file_is_named);
    tcase_add_test(bundles, a_key_of_another_certificate_is_refused);
    tcase_add_test(bundles, what_is_no_pem_is_refused);
    tcase_add_test(bundles, a_certificate_is_refused_before_and_after_its_time);
    tcase_add_test(bundles, a_bundle_of_another_role_is_refused);
    tcase_add_test(bundles, a_common_name_says_the_role_where_there_is_no_unit);
    tcase_add_test(files, a_credential_is_read_as_it_was_written);
    tcase_add_test(files, what_was_offered_is_offered_again_until_it_was_taken);
    tcase_add_test(files, a_token_is_the_word_of_its_file);
    return suite_run("trust", authorities, bundles, files, NULL);
}
