/* host.c - checks of what the host's kernel has and what it grants this process: system calls,
 * cores, memory, limits, threads, instruction sets. How much is enough depends on what is offered.
 */
#include "worker/doctor/examination.h"

#include "common/base/memory.h"
#include "common/base/units.h"
#include "worker/hardware/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

/* system: calls that are indispensable. A kernel may be too old for them, or a container may refuse
 * them. */
static int open_process(void)
{
    return (int)syscall(SYS_pidfd_open, getpid(), 0);
}

static int make_memory_file(void)
{
    return memfd_create("gimbal-doctor", MFD_CLOEXEC);
}

/* A range without open descriptors. */
static int close_nothing(void)
{
    return close_range(~0u - 1, ~0u, 0);
}

static const struct {
    const char *name, *since, *use;
    int (*call)(void); /* -1 with errno; otherwise 0 or a descriptor */
} system_calls[] = {
    {"pidfd_open", "5.3", "a worker notices with it that an executor has ended", open_process},
    {"memfd_create", "3.17", "training states outlive a killed executor in its files",
     make_memory_file},
    {"close_range", "5.9", "executors start without the files that the worker has open",
     close_nothing},
};

static void examine_system(void *scene, struct findings *out)
{
    (void)scene;
    struct utsname name;
    bool all = true;
    if (uname(&name) < 0)
        strcpy(name.release, "of an unknown release");
    for (size_t i = 0; i < sizeof system_calls / sizeof *system_calls; i++) {
        int fd = system_calls[i].call(), error = errno;
        if (fd > 0)
            close(fd);
        if (fd >= 0)
            continue;
        all = false;
        finding_block(out,
                      "Linux 5.9 or newer, and a container that allows the call (as the default "
                      "seccomp profile of a current runtime does)",
                      "Linux %s refuses %s, which came with %s: %s; %s", name.release,
                      system_calls[i].name, system_calls[i].since, strerror(error),
                      system_calls[i].use);
    }
    if (all)
        finding_ok(out, "Linux %s has all system calls that are needed", name.release);
}

const struct doctor_check check_system = {
    "system", "the kernel, and what a container lets through to it", examine_system};

/* Whether all offered cores are available, at the same time. */
static void examine_cores(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    const struct hardware_report *report = examination->report;
    struct error err;
    double processors;
    if (cgroup_processors(examination->cgroups, examination->cgroup_self, &processors, &err) < 0) {
        finding_warn(out, "a control group whose limits can be read", "%s", err.text);
        return;
    }
    if (!report)
        return;
    if (processors < report->cores)
        finding_warn(
            out,
            "as many cores as the quota has time for, by --cpuset or the group's cpuset; on "
            "Kubernetes whole CPUs, limits equal to requests, and the CPU manager's "
            "static policy",
            "%u cores are offered, but the control group may only use the time of %g: ranks "
            "would be halted in every step",
            report->cores, processors);
    else if (report->oversubscribed)
        finding_warn(out, "no more devices (--devices) and shares (--share) than cores",
                     "%zu devices are made of %u core%s that others use, too: they wait for each "
                     "other in every step",
                     report->device_count, report->cores, report->cores == 1 ? "" : "s");
    else
        finding_ok(out, "%u core%s, each for one device", report->cores,
                   report->cores == 1 ? "" : "s");
}

const struct doctor_check check_cores = {"cores", "whether the offered cores are really available",
                                         examine_cores};

/* memory: whether what is offered exists. A rank reserves what its plan says, up to that. */
#define SPARE_SHARE 0.9 /* of what is offered; the worker and the system use the rest */

static bool look_at_commit(const struct examination *examination, struct findings *out)
{
    char mode[16], room[32], offered[32];
    uint64_t limit, there, bytes = examination->report->memory_bytes;
    if (!examination_read(examination->proc, "sys/vm/overcommit_memory", mode, sizeof mode) ||
        atoi(mode) != 2 || !examination_memory(examination, "CommitLimit:", &limit) ||
        !examination_memory(examination, "Committed_AS:", &there))
        return true;
    uint64_t left = limit > there ? limit - there : 0;
    if (left >= bytes)
        return true;
    finding_warn(
        out, "'sysctl vm.overcommit_memory=0', or --memory SIZE",
        "vm.overcommit_memory is 2, and only %s may still be allocated, but %s are offered: "
        "plans that need more fail at the start",
        units_print_bytes(room, sizeof room, (double)left),
        units_print_bytes(offered, sizeof offered, (double)bytes));
    return false;
}

static void examine_memory(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    char offered[32], room[32], whole[32];
    uint64_t available = 0, total = 0;
    if (!examination->report)
        return;
    bool well = look_at_commit(examination, out);
    uint64_t bytes = examination->report->memory_bytes;
    bool known = examination_memory(examination, "MemAvailable:", &available) &&
                 examination_memory(examination, "MemTotal:", &total);
    units_print_bytes(offered, sizeof offered, (double)bytes);
    units_print_bytes(room, sizeof room, (double)available);
    units_print_bytes(whole, sizeof whole, (double)total);
    if (known && !examination->works && (double)available < SPARE_SHARE * (double)bytes)
        finding_warn(out, "end what uses the rest, or offer less: --memory SIZE",
                     "%s are offered, but only %s of the machine's %s are free: a rank that takes "
                     "what was offered is killed",
                     offered, room, whole);
    else if (well && known)
        finding_ok(out, "%s are offered of the machine's %s, of which %s are free", offered, whole,
                   room);
    else if (well)
        finding_ok(out, "%s are offered", offered);
}

const struct doctor_check check_memory = {
    "memory", "whether the offered memory is really available", examine_memory};

/* limits: those on the processes of this user, as shown by `ulimit -a`, which executors inherit.
 * Cluster schedulers pass on those of the shell from which a job was submitted. */

/* Files of a worker: for each executor a pidfd, a channel, its output, its trail and its state; and
 * the worker's own. */
#define WORKER_FILES(devices) (64 + 5 * (uint64_t)(devices))
/* An executor is connected to every other rank, in up to three fabrics at a time. */
#define RANKS(files) ((files) > 64 ? ((files)-64) / 3 : 0)
#define RANKS_ENOUGH 256

static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX
               : (uint64_t)limit.rlim_cur;
}

static bool look_at_files(const struct examination *examination, struct findings *out)
{
    static const char right[] = "'ulimit -n 65536', or LimitNOFILE=65536 of its unit";
    uint64_t files = limit_of(RLIMIT_NOFILE);
    uint64_t needed = WORKER_FILES(examination->report ? examination->report->device_count : 1);
    if (files < needed)
        finding_block(out, right,
                      "%llu open files at most, and a worker with these devices needs "
                      "%llu (RLIMIT_NOFILE)",
                      (unsigned long long)files, (unsigned long long)needed);
    else if (RANKS(files) < RANKS_ENOUGH)
        finding_warn(out, right,
                     "%llu open files at most: a rank can be connected to %llu others "
                     "(RLIMIT_NOFILE)",
                     (unsigned long long)files, (unsigned long long)RANKS(files));
    return files >= needed && RANKS(files) >= RANKS_ENOUGH;
}

/* The most memory that one rank may be told to use. */
static uint64_t device_bytes(const struct hardware_report *report)
{
    uint64_t most = 0;
    for (size_t i = 0; report && i < report->device_count; i++)
        most = report->devices[i].memory_bytes > most ? report->devices[i].memory_bytes : most;
    return most;
}

static bool is_below_device(const struct examination *examination, uint64_t limit)
{
    return limit < device_bytes(examination->report);
}

static bool is_any(const struct examination *examination, uint64_t limit)
{
    (void)examination;
    return limit != UINT64_MAX;
}

static bool is_any_of_accelerator(const struct examination *examination, uint64_t limit)
{
    return examination_accelerates(examination) && limit != UINT64_MAX;
}

static const struct {
    int resource;
    const char *name;
    bool (*wrong)(const struct examination *examination, uint64_t limit);
    const char *words, *right;
    bool is_time;
} limits[] = {
    {RLIMIT_AS, "RLIMIT_AS", is_below_device,
     "of address space for a process, less than the memory of a device: plans that need more fail "
     "at the start",
     "'ulimit -v unlimited'", false},
    {RLIMIT_DATA, "RLIMIT_DATA", is_below_device,
     "of data for a process, less than the memory of a device: plans that need more fail at the "
     "start",
     "'ulimit -d unlimited'", false},
    {RLIMIT_FSIZE, "RLIMIT_FSIZE", is_any,
     "for a file: an executor whose state or checkpoint is larger is killed",
     "'ulimit -f unlimited'", false},
    {RLIMIT_CPU, "RLIMIT_CPU", is_any,
     "of processor time: an executor that has used it up is killed",
     "'ulimit -t unlimited', or another node: login nodes often have such a limit", true},
    {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK", is_any_of_accelerator,
     "of locked memory: network cards beside NVIDIA devices lock all that they read and write",
     "'ulimit -l unlimited', or LimitMEMLOCK=infinity of its unit", false},
};

static void examine_limits(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    char text[32];
    bool well = look_at_files(examination, out);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        uint64_t limit = limit_of(limits[i].resource);
        if (!limits[i].wrong(examination, limit))
            continue;
        well = false;
        if (limits[i].is_time)
            units_print_duration(text, sizeof text, (double)limit);
        else
            units_print_bytes(text, sizeof text, (double)limit);
        finding_warn(out, limits[i].right, "%s %s (%s)", text, limits[i].words, limits[i].name);
    }
    if (well)
        finding_ok(out, "%llu open files, and no other limit that matters",
                   (unsigned long long)limit_of(RLIMIT_NOFILE));
}

const struct doctor_check check_limits = {"limits", "the limits of this user's processes",
                                          examine_limits};

/* threads: how many more the control group and the user may have. */

/* An executor has a thread per core and, for two queues, the fabric, the checkpoint and threads
 * that libraries start, up to this many more; WORKER_THREADS is for the worker. */
#define EXECUTOR_THREADS 16
#define WORKER_THREADS 32

/* The number of threads of a process, if it belongs to this user; otherwise 0. */
static uint64_t threads_of(const char *proc, const char *pid, uid_t uid)
{
    char text[4096];
    char *name = xasprintf("%s/status", pid);
    unsigned long owner, threads;
    bool read = examination_read(proc, name, text, sizeof text);
    const char *uid_line = read ? strstr(text, "\nUid:") : NULL;
    const char *threads_line = read ? strstr(text, "\nThreads:") : NULL;
    free(name);
    if (!uid_line || !threads_line || sscanf(uid_line, "\nUid: %lu", &owner) != 1 ||
        sscanf(threads_line, "\nThreads: %lu", &threads) != 1)
        return 0;
    return owner == uid ? threads : 0;
}

static uint64_t threads_of_user(const char *proc)
{
    DIR *folder = opendir(proc);
    uint64_t sum = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            sum += threads_of(proc, entry->d_name, getuid());
    if (folder)
        closedir(folder);
    return sum;
}

/* How many more threads the user may have; root has no such limit. */
static uint64_t user_room(const struct examination *examination)
{
    struct rlimit limit;
    if (getuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t there = threads_of_user(examination->proc);
    return limit.rlim_cur > there ? (uint64_t)limit.rlim_cur - there : 0;
}

static void examine_threads(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    const struct hardware_report *report = examination->report;
    struct error err;
    uint64_t group, user = user_room(examination);
    if (cgroup_threads(examination->cgroups, examination->cgroup_self, &group, &err) < 0) {
        finding_warn(out, "a control group whose limits can be read", "%s", err.text);
        return;
    }
    if (!report || examination->works)
        return;
    uint64_t needed = WORKER_THREADS + report->cores + EXECUTOR_THREADS * report->device_count;
    uint64_t room = group < user ? group : user;
    if (room < needed)
        finding_block(out,
                      group < user ? "a larger limit of the control group: TasksMax= of the unit, "
                                     "podPidsLimit of the kubelet, --pids-limit of a container"
                                   : "'ulimit -u unlimited', or LimitNPROC=infinity of its unit",
                      "%llu more threads may be started (%s), and a worker and its executors need "
                      "about %llu",
                      (unsigned long long)room, group < user ? "pids.max" : "RLIMIT_NPROC",
                      (unsigned long long)needed);
    else if (room == UINT64_MAX)
        finding_ok(out, "there is no limit");
    else
        finding_ok(out, "%llu more threads may be started, about %llu are needed",
                   (unsigned long long)room, (unsigned long long)needed);
}

const struct doctor_check check_threads = {"threads", "how many threads executors can start",
                                           examine_threads};

/* bf16: a processor with AMX multiplies it by that, if the kernel grants this process the tile
 * registers. */
#define ARCH_REQ_XCOMP_PERM 0x1023
#define XFEATURE_XTILEDATA 18

static int ask_for_tiles(void)
{
#ifdef SYS_arch_prctl
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 ? 0 : errno;
#else
    return ENOSYS;
#endif
}

static void examine_bf16(void *scene, struct findings *out)
{
    const struct examination *examination = scene;
    char text[16384];
    if (examination_accelerates(examination) ||
        !examination_read(examination->proc, "cpuinfo", text, sizeof text) ||
        !strstr(text, " amx_tile"))
        return; /* bf16 takes the same path as f32 here, which is no problem */
    int error = ask_for_tiles();
    if (error == 0)
        finding_ok(out, "the processor's AMX multiplies bf16");
    else
        finding_warn(out, "a kernel of 5.16 or newer, and a container that allows arch_prctl",
                     "the processor has AMX, but the kernel does not let this process use it: "
                     "%s; jobs in bf16 are no faster than in f32",
                     strerror(error));
}

const struct doctor_check check_bf16 = {"bf16", "whether bf16 products use AMX", examine_bf16};
