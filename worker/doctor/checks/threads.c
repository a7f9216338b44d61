/* threads.c - how many more threads the control group and the user may have. */
#include "worker/doctor/machine.h"

#include "common/base/memory.h"
#include "worker/hardware/cgroup.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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
    bool read = machine_read(proc, name, text, sizeof text);
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
static uint64_t user_room(const struct machine *machine)
{
    struct rlimit limit;
    if (getuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t there = threads_of_user(machine->proc);
    return limit.rlim_cur > there ? (uint64_t)limit.rlim_cur - there : 0;
}

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    const struct hardware_report *report = machine->report;
    struct error err;
    uint64_t group, user = user_room(machine);
    if (cgroup_threads(machine->cgroups, machine->cgroup_self, &group, &err) < 0) {
        finding_warn(out, "a control group whose limits can be read", "%s", err.text);
        return;
    }
    if (!report || machine->works)
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

const struct doctor_check check_threads = {
    .name = "threads",
    .about = "how many threads executors can start",
    .cb = look,
};
