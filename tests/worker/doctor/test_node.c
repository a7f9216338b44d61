/* test_node.c - what a node is given by who sets it up: folders, certificates, addresses, devices.
 */
#include "common/trust/secret.h"
#include "coordinator/cli/authority.h"
#include "tests/support/suite.h"
#include "tests/worker/doctor/scene.h"
#include "worker/node/state_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DAY_S 86400
#define ADDRESS "tls+tcp://127.0.0.1:7070"

START_TEST(a_folder_that_is_not_there_is_looked_for_above)
{
    scene_says(&check_state, "/state does not exist yet; the worker will create it in "
                             "/tmp/gimbal-scene-");
    ck_assert_int_ne(access(scene_settings.state, F_OK), 0);
    scene_settings.state = (char *)"/proc/nowhere/state";
    if (getuid() != 0)
        scene_says(&check_state, "blocking: /proc/nowhere/state does not exist, and cannot be "
                                 "created");
}
END_TEST

START_TEST(a_folder_takes_files_or_blocks)
{
    ck_assert_int_eq(mkdir(scene_settings.state, 0700), 0);
    scene_says(&check_state, "/state stores a file durably in ");
    ck_assert_int_eq(rmdir(scene_settings.state), 0); /* nothing was left in it */
    scene_settings.state = (char *)"/proc";           /* nobody can write there, not even root */
    scene_says(&check_state, "blocking: write '/proc/doctor-");
}
END_TEST

START_TEST(a_worker_that_has_the_name_is_seen)
{
    int claim = -1;
    scene.proc = "/proc";
    ck_assert_int_eq(state_folder_lock(scene_settings.state, "node-a", &claim, NULL), 0);
    scene_says(&check_state, "; a worker of this name is running there");
    ck_assert(scene.works);
    state_folder_unlock(claim);
    scene_says(&check_state, "ok: ");
    ck_assert(!scene.works);
}
END_TEST

START_TEST(a_credential_in_memory_will_be_gone)
{
    char folder[] = "/dev/shm/gimbal-state-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    scene_settings.state = folder;
    scene_says(&check_state, "ok: ");
    scene_settings.tls = folder;
    scene_says(&check_state, " is in memory: when the machine restarts, this node's credential "
                             "is lost");
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* Certificates of `days`, made so many days and a half ago. */
static void make_certificates(unsigned days, int64_t days_ago)
{
    static char tls[64], certificates[64];
    struct error err = {""};
    snprintf(certificates, sizeof certificates, "%s/certs", scene_folder);
    snprintf(tls, sizeof tls, "%s/worker", certificates);
    struct authority_options options = {.directory = certificates,
                                        .hosts = (const char *const[]){"localhost", NULL},
                                        .days = days,
                                        .now_s = time(NULL) - days_ago * DAY_S - DAY_S / 2};
    ck_assert_msg(authority_create(&options, &err) == 0, "%s", err.text);
    scene_settings.tls = tls;
    scene_settings.coordinator = (char *)ADDRESS;
}

START_TEST(certificates_that_end_soon_or_have_are_told)
{
    make_certificates(365, 0);
    scene_settings.join = (char *)"/proc/nowhere/token";
    scene_says(&check_certificates,
               "/worker/tls.crt is valid for 364 days; node 'node-a' will join with "
               "/proc/nowhere/token");
    scene_settings.join = NULL;
    scene_says(&check_certificates, "blocking: node 'node-a' has not joined");
    ck_assert_int_eq(mkdir(scene_settings.state, 0700), 0);
    char path[96];
    struct credential credential = {.name = "node-a"};
    memset(credential.secret, 'a', sizeof credential.secret - 1);
    snprintf(path, sizeof path, "%s/node-a.credential", scene_settings.state);
    ck_assert_int_eq(credential_keep(path, &credential, NULL), 0);
    scene_says(&check_certificates, "days; node 'node-a' has joined");
    strcpy(credential.name, "node-b");
    ck_assert_int_eq(credential_keep(path, &credential, NULL), 0);
    scene_says(&check_certificates, "blocking: ");
}
END_TEST

START_TEST(a_certificate_of_a_few_days_is_renewed_in_time)
{
    make_certificates(40, 20);
    scene_settings.join = (char *)"/proc/nowhere/token";
    scene_says(&check_certificates, "/worker/tls.crt expires in 19 days");
}
END_TEST

START_TEST(an_expired_certificate_blocks)
{
    make_certificates(40, 50);
    scene_settings.join = (char *)"/proc/nowhere/token";
    scene_says(&check_certificates, "/worker/tls.crt: it expired on ");
    scene_says(&check_certificates, "blocking: ");
    scene_says(&check_coordinator, NULL); /* that has been said */
}
END_TEST

START_TEST(no_other_machine_reaches_a_loopback_address)
{
    scene_says(&check_address, "ok: 127.0.0.1: without TLS, only workers on this machine");
    scene_settings.coordinator = (char *)ADDRESS;
    scene_says(&check_address,
               "warning: other nodes are given 127.0.0.1, which is their own address, too");
    scene_settings.host_address = (char *)"192.0.2.9";
    scene_says(&check_address, "blocking: host_address: ranks cannot listen at '192.0.2.9'");
    scene_settings.host_address = NULL;
    scene_settings.coordinator = (char *)"tls+tcp://coordinator.invalid:7070";
    scene_says(&check_address, "blocking: the coordinator's host 'coordinator.invalid': ");
}
END_TEST

START_TEST(nobody_at_the_coordinators_address_blocks)
{
    scene_says(&check_coordinator, "blocking: nobody listens at tcp://127.0.0.1:9");
}
END_TEST

START_TEST(what_would_be_offered_is_told_or_why_nothing_is)
{
    hardware_report_destroy(scene.report);
    scene.report = NULL;
    scene_settings.devices = (char *)"1";
    scene_settings.pieces = 1;
    scene_says(&check_devices, "ok: 1 device, ");
    hardware_report_destroy(scene.report);
    scene.report = NULL;
    scene_settings.memory = (uint64_t)900 << 40;
    scene_says(&check_devices, "blocking: memory: 900.0 TiB is more than the ");
    scene_says(&check_memory, NULL);
    scene.executor = "/proc/nowhere/executor";
    scene_says(&check_devices,
               "blocking: executor: /proc/nowhere/executor: No such file or directory");
    scene.shim = "/proc/nowhere/shim";
    scene_says(&check_devices, "blocking: /proc/nowhere/shim: No such file or directory");
}
END_TEST

START_TEST(a_driver_without_devices_is_told)
{
    setenv("GIMBAL_MODULES", "/proc/nowhere", 1);
    scene_says(&check_nvidia, NULL);
    scene_put("proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build\n"
              "GCC version:  gcc version 12.2.0\n");
    scene_says(&check_nvidia, "warning: driver 560.35.03 is here, but no device is found: ");
    scene_settings.pieces = 1; /* none are wanted */
    scene_says(&check_nvidia, NULL);
}
END_TEST

#ifdef MODULES
START_TEST(devices_are_told_with_what_they_exchange_data_by)
{
    ck_assert_int_eq(symlink(MODULES "/gimbal-cuda.so", "gimbal-cuda.so"), 0);
    ck_assert_int_eq(symlink(MODULES "/libemulated-cuda.so", "libemulated-cuda.so"), 0);
    ck_assert_int_eq(symlink(MODULES "/nccl/gimbal-nccl.so", "gimbal-nccl.so"), 0);
    setenv("GIMBAL_MODULES", scene_folder, 1);
    scene.report->devices[0].kind = HARDWARE_GPU;
    scene_says(&check_nvidia, "ok: 1 found, driver of an unknown release, data is exchanged "
                              "through nccl");
}
END_TEST

START_TEST(devices_without_their_library_exchange_by_the_host)
{
    setenv("GIMBAL_MODULES", MODULES, 1);
    setenv("EMULATED_DEVICES", "2", 1);
    scene.report->devices[0].kind = HARDWARE_GPU;
    scene_says(&check_nvidia, "warning: 2 found, but they would exchange data through the host's "
                              "memory: its module cannot be loaded: ");
    scene.dev = scene_folder;
    ck_assert_int_eq(symlink("/proc", "shm"), 0);
    scene_says(&check_nvidia, "/shm has 0 B: NCCL, which exchanges data between devices of a "
                              "machine");
}
END_TEST
#endif

static void set_up(void)
{
    scene_open();
    ck_assert_int_eq(chdir(scene_folder), 0);
}

SUITE(doctor_node)
{
    TCase *tcase = tcase_create("node");
    tcase_add_checked_fixture(tcase, set_up, scene_close);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_folder_that_is_not_there_is_looked_for_above);
    tcase_add_test(tcase, a_folder_takes_files_or_blocks);
    tcase_add_test(tcase, a_worker_that_has_the_name_is_seen);
    tcase_add_test(tcase, a_credential_in_memory_will_be_gone);
    tcase_add_test(tcase, certificates_that_end_soon_or_have_are_told);
    tcase_add_test(tcase, a_certificate_of_a_few_days_is_renewed_in_time);
    tcase_add_test(tcase, an_expired_certificate_blocks);
    tcase_add_test(tcase, no_other_machine_reaches_a_loopback_address);
    tcase_add_test(tcase, nobody_at_the_coordinators_address_blocks);
    tcase_add_test(tcase, what_would_be_offered_is_told_or_why_nothing_is);
    tcase_add_test(tcase, a_driver_without_devices_is_told);
#ifdef MODULES
    tcase_add_test(tcase, devices_are_told_with_what_they_exchange_data_by);
    tcase_add_test(tcase, devices_without_their_library_exchange_by_the_host);
#else
    suite_skip("devices", "this build emulates none");
#endif
    return suite_run("doctor_node", tcase, NULL);
}
