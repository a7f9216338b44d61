/* test_limits.c - what a kernel, a container, a group and a shell keep from a worker. */
#include "tests/support/suite.h"
#include "tests/worker/doctor/scene.h"

#include <sys/resource.h>
#include <sys/syscall.h>

START_TEST(every_check_has_a_name_of_its_own)
{
    for (size_t i = 0; examination_checks[i]; i++)
        for (size_t k = 0; k < i; k++)
            ck_assert_str_ne(examination_checks[i]->name, examination_checks[k]->name);
}
END_TEST

START_TEST(a_system_call_that_is_refused_is_named)
{
    scene_says(&check_system, "ok: Linux ");
    scene_refuse(SYS_pidfd_open);
    scene_says(&check_system, " refuses pidfd_open, which came with 5.3: Operation not permitted; "
                              "a worker notices with it that an executor has ended");
}
END_TEST

START_TEST(cores_without_time_for_them_are_too_many)
{
    scene_says(&check_cores, "ok: 2 cores, each for one device");
    scene_put("inner/cpu.max", "max 100000\n");
    scene_says(&check_cores, "ok: 2 cores");
    scene_put("inner/cpu.max", "200000 100000\n");
    scene_says(&check_cores, "ok: 2 cores");
    scene_put("cpu.max", "150000 100000\n");
    scene_says(&check_cores,
               "warning: 2 cores are offered, but the control group may only use the time of 1.5");
    scene_put("inner/cpu.max", "soon\n");
    scene_says(&check_cores, "inner/cpu.max says 'soon', which is no limit");
}
END_TEST

START_TEST(cores_that_are_shared_are_too_few)
{
    scene.report->oversubscribed = true;
    scene_says(&check_cores, "warning: 2 devices are made of 2 cores that others use, too");
}
END_TEST

START_TEST(memory_that_others_have_cannot_be_offered)
{
    scene_says(&check_memory,
               "ok: 2.0 GiB are offered of the machine's 8.0 GiB, of which 4.0 GiB are free");
    scene_put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 1048576 kB\n");
    scene_says(&check_memory, "warning: 2.0 GiB are offered, but only 1.0 GiB of the machine's "
                              "8.0 GiB are free");
    scene.works = true; /* its own executors may have it */
    scene_says(&check_memory, "ok: ");
}
END_TEST

START_TEST(memory_that_may_not_be_promised_is_not_there)
{
    scene_put("proc/sys/vm/overcommit_memory", "1\n");
    scene_says(&check_memory, "ok: ");
    scene_put("proc/sys/vm/overcommit_memory", "2\n");
    scene_says(&check_memory, "warning: vm.overcommit_memory is 2, and only 1.0 GiB may still be "
                              "allocated, but 2.0 GiB are offered");
}
END_TEST

START_TEST(threads_are_counted_against_the_groups_limit)
{
    scene_says(&check_threads, "ok: ");
    scene_put("inner/pids.max", "max\n");
    scene_put("pids.max", "100\n");
    scene_put("pids.current", "90\n");
    scene_says(&check_threads, "blocking: 10 more threads may be started (pids.max), and a worker "
                               "and its executors need about 66");
    scene_put("pids.max", "1000\n");
    scene_says(&check_threads, "ok: 910 more threads may be started, about 66 are needed");
}
END_TEST

static void limit(int resource, rlim_t to)
{
    struct rlimit limits;
    ck_assert_int_eq(getrlimit((__rlimit_resource_t)resource, &limits), 0);
    limits.rlim_cur = to;
    ck_assert_int_eq(setrlimit((__rlimit_resource_t)resource, &limits), 0);
}

START_TEST(too_few_files_block_or_keep_jobs_small)
{
    limit(RLIMIT_NOFILE, 1024);
    scene_says(&check_limits, "ok: 1024 open files, and no other limit");
    limit(RLIMIT_NOFILE, 100);
    scene_says(&check_limits, "warning: 100 open files at most: a rank can be connected to 12 "
                              "others (RLIMIT_NOFILE)");
    limit(RLIMIT_NOFILE, 70);
    scene_says(&check_limits, "blocking: 70 open files at most, and a worker with these devices "
                              "needs 74 (RLIMIT_NOFILE)");
}
END_TEST

START_TEST(limits_of_a_shell_are_told_one_by_one)
{
    limit(RLIMIT_CPU, 7200);
    scene_says(&check_limits, "warning: 2h00m of processor time: an executor that has used it up "
                              "is killed (RLIMIT_CPU)");
    limit(RLIMIT_FSIZE, 1u << 30);
    scene_says(&check_limits, "warning: 1.0 GiB for a file: an executor whose state or checkpoint "
                              "is larger is killed (RLIMIT_FSIZE)");
    /* A device beyond all machines: the test itself needs some, too. */
    scene.report->devices[0].memory_bytes = 1ull << 60;
    limit(RLIMIT_DATA, 1ull << 50);
    scene_says(&check_limits, "warning: 1024.0 TiB of data for a process, less than the memory "
                              "of a device");
    limit(RLIMIT_AS, 1ull << 50);
    scene_says(&check_limits, "warning: 1024.0 TiB of address space for a process, less than the "
                              "memory of a device");
}
END_TEST

START_TEST(locked_memory_is_for_devices_with_memory_of_their_own)
{
    limit(RLIMIT_MEMLOCK, 64u << 10);
    scene_says(&check_limits, "ok: ");
    scene.report->devices[0].kind = HARDWARE_GPU;
    scene_says(&check_limits, "warning: 64.0 KiB of locked memory");
}
END_TEST

START_TEST(amx_that_the_kernel_keeps_back_is_told)
{
    scene_put("proc/cpuinfo", "flags : fpu avx512f\n");
    scene_says(&check_bf16, NULL);
    scene_put("proc/cpuinfo", "flags : fpu amx_bf16 avx512f amx_tile amx_int8\n");
    scene_refuse(SYS_arch_prctl);
    scene_says(&check_bf16, "warning: the processor has AMX, but the kernel does not let this "
                            "process use it: Operation not permitted");
}
END_TEST

SUITE(doctor_limits)
{
    TCase *tcase = tcase_create("limits");
    tcase_add_checked_fixture(tcase, scene_open, scene_close);
    tcase_add_test(tcase, every_check_has_a_name_of_its_own);
    tcase_add_test(tcase, a_system_call_that_is_refused_is_named);
    tcase_add_test(tcase, cores_without_time_for_them_are_too_many);
    tcase_add_test(tcase, cores_that_are_shared_are_too_few);
    tcase_add_test(tcase, memory_that_others_have_cannot_be_offered);
    tcase_add_test(tcase, memory_that_may_not_be_promised_is_not_there);
    tcase_add_test(tcase, threads_are_counted_against_the_groups_limit);
    tcase_add_test(tcase, too_few_files_block_or_keep_jobs_small);
    tcase_add_test(tcase, limits_of_a_shell_are_told_one_by_one);
    tcase_add_test(tcase, locked_memory_is_for_devices_with_memory_of_their_own);
#ifdef __x86_64__
    tcase_add_test(tcase, amx_that_the_kernel_keeps_back_is_told);
#else
    suite_skip("amx", "this is no x86-64");
#endif
    return suite_run("doctor_limits", tcase, NULL);
}
