/* limits.c - limits on the processes of this user, as shown by `ulimit -a`, which executors
 * inherit. Cluster schedulers pass on those of the shell from which a job was submitted. */
#include "worker/doctor/machine.h"

#include "common/base/units.h"

#include <sys/resource.h>

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

static bool look_at_files(const struct machine *machine, struct findings *out)
{
    static const char right[] = "'ulimit -n 65536', or LimitNOFILE=65536 of its unit";
    uint64_t files = limit_of(RLIMIT_NOFILE);
    uint64_t needed = WORKER_FILES(machine->report ? machine->report->device_count : 1);
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

static bool is_below_device(const struct machine *machine, uint64_t limit)
{
    return limit < device_bytes(machine->report);
}

static bool is_any(const struct machine *machine, uint64_t limit)
{
    (void)machine;
    return limit != UINT64_MAX;
}

static bool is_any_of_accelerator(const struct machine *machine, uint64_t limit)
{
    return machine_accelerates(machine) && limit != UINT64_MAX;
}

static const struct {
    int resource;
    const char *name;
    bool (*wrong)(const struct machine *machine, uint64_t limit);
    const char *words, *right;
    bool is_time;
} rows[] = {
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

static void look(void *scene, struct findings *out)
{
    const struct machine *machine = scene;
    char text[32];
    bool well = look_at_files(machine, out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t limit = limit_of(rows[i].resource);
        if (!rows[i].wrong(machine, limit))
            continue;
        well = false;
        if (rows[i].is_time)
            units_print_duration(text, sizeof text, (double)limit);
        else
            units_print_bytes(text, sizeof text, (double)limit);
        finding_warn(out, rows[i].right, "%s %s (%s)", text, rows[i].words, rows[i].name);
    }
    if (well)
        finding_ok(out, "%llu open files, and no other limit that matters",
                   (unsigned long long)limit_of(RLIMIT_NOFILE));
}

const struct doctor_check check_limits = {
    .name = "limits",
    .about = "the limits of this user's processes",
    .cb = look,
};
